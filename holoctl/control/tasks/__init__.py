"""What a controller can be asked for besides motors: the pose of a frame, a posture, a point.

In: a mechanism, and its kinematics at a state. Out: value, error, Jacobian and drift of a task.
A task is one file; no law knows one by its name.
"""
