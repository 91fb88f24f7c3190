"""Machine code: the laws as expressions of CasADi, and C made of them.

In: a `Mechanism` or a controller. Out: expressions, and plain C.
`compiled` runs the C in this process, `exported` writes it for the robot's computer.
"""
