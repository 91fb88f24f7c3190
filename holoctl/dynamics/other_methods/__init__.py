"""Other methods for the same dynamics, for comparison.

In: `Terms`, or the matrices of the saddle point. Out: accelerations.
Direct, range space, null space, Pinocchio's own, and FDgq of spatial_v2.
"""
