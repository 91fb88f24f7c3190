"""The projector: gamma, a basis of the admissible velocities, and the bias.

In: `Terms` and a `Partition`. Out: a `Projection`; multipliers; states projected onto the manifold.
`partition` is decided once, `projection` computed at each state.
"""
