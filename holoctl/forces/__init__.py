"""Forces besides motors and constraints: friction, springs, forces of the user.

In: a description, bound to a `pin.Model`. Out: F in ``M a + h = B u + J' f + F + G' lambda``. Each
force is one file with its efforts, stored energy, fast evaluation and expression.
"""
