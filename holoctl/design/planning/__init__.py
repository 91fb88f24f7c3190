"""Paths between two configurations, on one side of the singularities of the motors.

In: a `Mechanism`, two closed configurations, limits. Out: a `ConnectedPath`; a `SheetSigns`.
`manifold_steps` proves a step, `search_trees` finds a path, `path_smoothing` makes it short.
"""
