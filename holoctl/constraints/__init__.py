"""The constraints, and the rows that each has on a model.

In: a description, then a `pin.Model`. Out: bound rows, evaluated at `Kinematics`.
A kind of row is one value of `kinds`; a constraint is one file.
"""
