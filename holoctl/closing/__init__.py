"""How a mechanism is closed: configurations and velocities on the constraints.

In: a `Mechanism` and a guess. Out: a closed state, or why not; of rounded geometry, an exact one.
The rank of G is decided here, at closed states only.
"""
