"""The closed state from what is measured: the motors, or any joints, cut ones too.

In: positions and rates of some joints, at every tick. Out: the closed (q, v) of the same branch,
or an error that says why there is none.
"""
