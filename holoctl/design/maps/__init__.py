"""What motors can do over a grid.

In: a `Mechanism`, a grid. Out: a `MotorMap`.
`walk` reaches the points on one branch, `fill` fills the grid, `numbers` says what is there.
"""
