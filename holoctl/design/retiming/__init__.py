"""The fastest way along a path.

In: a closed path, limits. Out: a `Trajectory` that keeps them.
`dynamics` and `rows` are the program, `by_cvxpy` and `by_toppra` solve it.
"""
