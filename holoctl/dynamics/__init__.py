"""Dynamics under constraints: inverse, forward, impacts, and what a result is worth.

In: a `Projection` or `Terms`. Out: efforts or accelerations, each with a `Certificate`.
`tick` does the same at the rate of a loop; `reference` by other methods, to compare.
"""
