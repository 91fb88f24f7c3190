"""Queries on a plain `pin.Model`: names, frames, supports, motion at (q, v).

In: a model and a state. Out: frames, masks of coordinates, `Kinematics` in world axes.
Also which joints a model may have, and a check that it does not change.
"""
