"""Machine code: the laws as expressions, and C made of them.

In: a `Mechanism` or a controller. Out: expressions, and plain C.
`compiled` runs it here, `exported` sends it to the robot.
"""
