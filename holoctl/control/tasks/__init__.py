"""Tasks: the pose of a frame, a posture, the centre of mass.

In: a mechanism, and its kinematics at a state. Out: value, error, Jacobian and drift of a task.
Each task has one module; no law depends on its class.
"""
