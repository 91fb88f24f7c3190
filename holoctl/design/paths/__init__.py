"""Paths that are closed at every point, and trajectories along them.

In: way-points, poses or functions. Out: curves on the manifold; a `Trajectory`.
`inputs` checks, `path_continuation` keeps to one branch, `curve` interpolates between nodes.
"""
