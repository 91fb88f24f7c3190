"""Assembly: closed configurations and velocities of a mechanism.

In: a `Mechanism` and a guess. Out: a closed state, or the reason why there is none. The rank of G
is determined here, at closed configurations only.
"""
