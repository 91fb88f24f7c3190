"""The same function of many items, by several processes or a cluster.

In: a function, items, workers. Out: a `Sweep`.
`chunks` divides the items, `workers` runs processes, `chunk_evaluation` is what they evaluate.
"""
