"""The fastest way along a path.

In: a closed path, limits. Out: a `Trajectory` that keeps them.
`limit_rows` are the limits, `programs` find the fastest way within them; `solve` repeats that
where limits change with the speed, `result` checks what is between the nodes.
"""
