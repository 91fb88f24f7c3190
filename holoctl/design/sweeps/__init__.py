"""Evaluation of a function for many items by several processes or a cluster.

In: a function, items, workers. Out: a `Sweep`.
`chunks` divides the items, `workers` runs processes, `chunk_evaluation` runs in them.
"""
