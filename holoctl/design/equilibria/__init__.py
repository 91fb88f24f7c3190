"""Closed configurations at rest, and the efforts that hold them.

In: a `Mechanism`, a guess, efforts or none. Out: an `Equilibrium`.
`balance_residual` has the equation, `equilibrium_stability` the stiffness at a solution.
"""
