"""The closed state from what is measured: the motors, or any joints, cut ones too; what pushes.

In: positions and rates of some joints, at every tick. Out: the closed (q, v) of the same branch,
or an error that says why there is none; and from states and efforts, what else acted.
"""
