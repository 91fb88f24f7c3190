"""What motors can do over a grid.

In: a `Mechanism`, a grid. Out: a `MotorMap`.
`neighbour_continuation` stays on one branch, `grid_filling` fills, `point_quantities` evaluates.
"""
