"""The constraints: what each is, and its rows on a model.

In: a description without a model, then a model. Out: bound rows, evaluated at `Kinematics`.
A kind of row is one value, as in `kinds`; a constraint is one file.
"""
