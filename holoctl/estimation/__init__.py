"""The closed state from measurements of motors or any joints; external forces.

In: positions and rates of some joints, at every tick. Out: the closed (q, v) on the same branch,
or an error that states its cause; from states and efforts, the momentum observer's estimates.
"""
