"""Tasks: the pose of a frame, a posture, the centre of mass.

Input: a mechanism, and its kinematics at a state. Output: value, error, Jacobian and drift of a
task. Each task has one module; no law depends on its class.
"""
