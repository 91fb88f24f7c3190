"""Forces besides motors and constraints: friction, springs, forces of the user.

In: a description, bound to a `pin.Model`. Out: F in ``M a + h = B u + J' f + F + G' lambda``.
A force is one file: its efforts, its stored energy, its tick, its expression.
"""
