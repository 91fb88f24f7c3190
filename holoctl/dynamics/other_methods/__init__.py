"""Methods for the same dynamics without a basis of motions.

In: `Terms`, or the matrices of the saddle point. Out: accelerations. Direct, range-space and
null-space methods, Pinocchio's own, and FDgq of spatial_v2.
"""
