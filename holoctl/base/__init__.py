"""Utilities that all other packages use: errors, checks of arguments, linear algebra, tolerances.

In: arguments of any kind. Out: floats of the right shape, or an error that explains what is wrong.
Nothing here depends on a robot model.
"""
