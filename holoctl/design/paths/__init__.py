"""Paths that are closed at every point, and trajectories along them.

In: way-points, poses or functions. Out: curves on the manifold; a `Trajectory`.
`inputs` checks, `following` keeps to one branch; what is between the nodes is `curve`.
"""
