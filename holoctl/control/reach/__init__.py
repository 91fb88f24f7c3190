"""Inverse kinematics: closed configurations, velocities and accelerations for poses of frames.

In: a `Mechanism`, poses, limits. Out: q, v, a; or the reason why a pose is out of reach.
For use offline; independent of all laws of control.
"""
