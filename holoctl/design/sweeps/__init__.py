"""The same work for many items, by all cores or many machines.

In: a function, items, who works. Out: a `Sweep`.
`shares` deals out, crews work, `work` is what a worker does.
"""
