"""The constraints, and the rows of each on a model.

In: a description, then a `pin.Model`. Out: bound rows, evaluated at `Kinematics`. Each kind of row
is one value of `kinds`; each constraint is one file.
"""
