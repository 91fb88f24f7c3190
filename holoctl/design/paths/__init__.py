"""Paths that are closed at every point, and trajectories along them.

In: way-points, poses or functions. Out: curves on the manifold; a `Trajectory`.
`inputs` checks a path, `path_continuation` follows it on one branch, `curve` interpolates nodes.
"""
