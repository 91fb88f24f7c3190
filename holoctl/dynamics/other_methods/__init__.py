"""Other methods for the same dynamics, for comparison.

In: `Terms`, or the matrices of the saddle point. Out: accelerations. Direct, range-space and
null-space methods, Pinocchio's own, and FDgq of spatial_v2.
"""
