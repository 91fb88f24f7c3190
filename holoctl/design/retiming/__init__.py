"""The fastest way along a path.

In: a closed path, limits. Out: a `Trajectory` that keeps them.
`limit_rows` are the limits, `programs` solve, `solve` repeats it where limits change with speed.
"""
