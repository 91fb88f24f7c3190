"""Parallel joints as transmissions: a closed mechanism between the motors and serial joints.

A mechanism, or one loop of a robot, and the names of its serial joints; out come positions, rates,
efforts and inertia on both sides: a `Transmission`.
"""
