"""Closed configurations and velocities: how a mechanism is assembled.

In: a `Mechanism` and a guess. Out: a closed state, or the reason why there is none.
The rank of G is decided here, at closed states only.
"""
