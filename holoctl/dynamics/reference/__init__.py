"""Other methods for the same dynamics, to compare with.

In: `Terms`, or the matrices of the saddle point. Out: accelerations.
Direct, range space, null space, Pinocchio's own, spatial_v2's FDgq.
"""
