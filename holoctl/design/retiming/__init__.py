"""Time-optimal motion along a path.

In: a closed path, limits. Out: a `Trajectory` within the limits.
`limit_rows` has the limits, `convex_programs` the programs, `solve` the rounds over the speed.
"""
