"""Closed configurations at rest, and what holds them.

In: a `Mechanism`, a guess, efforts or none. Out: an `Equilibrium`.
`balance` is what is to vanish, `standing` says what becomes of a push.
"""
