"""Maps of motor efforts and other quantities over a grid of poses.

In: a `Mechanism`, a grid. Out: a `MotorMap`.
`neighbour_continuation` keeps the branch, `grid_filling` the order, `point_quantities` evaluates.
"""
