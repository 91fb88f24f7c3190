"""The same work for many items, by all cores or many machines.

In: a function, items, who works. Out: a `Sweep`.
`chunks` deals out, `workers` work, `work` is what a worker does.
"""
