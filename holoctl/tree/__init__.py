"""What is asked of a bare `pin.Model`: names, frames, supports, motion at (q, v).

In: a model and a state. Out: frames, masks of coordinates, `Kinematics` in world axes.
Also what a model may hold, and that it does not change.
"""
