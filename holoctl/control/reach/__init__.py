"""Inverse kinematics: closed configurations, velocities and accelerations for poses of frames.

Input: a `Mechanism`, poses, limits. Output: q, v, a; or the reason why a pose is out of reach.
For use offline; independent of all laws of control.
"""
