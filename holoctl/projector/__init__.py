"""The projector: gamma, a basis of the admissible velocities, and the bias.

In: `Terms` and a `Partition`. Out: a `Projection`; multipliers; states projected onto the manifold.
The partition is determined once, the projection is computed at each state.
"""
