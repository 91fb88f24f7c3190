"""What every other room stands on: errors, checks of arguments, linear algebra.

In: anything a caller may give. Out: floats of the right shape, or an error that explains.
Nothing here knows a robot.
"""
