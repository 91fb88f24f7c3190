"""Dynamics under constraints: inverse, forward, impacts, certificates.

In: a `Projection` or `Terms`. Out: efforts or accelerations, each with a `Certificate`.
`tick` computes the same in a control loop; `other_methods` are for comparison.
"""
