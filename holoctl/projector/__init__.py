"""The projector: gamma, a basis of the admissible velocities, and the bias.

In: `Terms` and a `Partition`. Out: a `Projection`; multipliers; states projected onto the manifold.
`partition` decides once, `projection` computes at each state, `multipliers` come last.
"""
