"""Time-optimal motion along a path.

In: a closed path, limits. Out: a `Trajectory` that keeps them.
`limit_rows` has the limits, `convex_programs` the programs; `solve` iterates over the speed.
"""
