"""Maps of motor efforts and other quantities over a grid of poses.

In: a `Mechanism`, a grid. Out: a `MotorMap`.
`neighbour_continuation` continues on one branch, `grid_filling` visits all points, and
`point_quantities` evaluates each.
"""
