"""Parallel joints as transmissions: closed mechanisms between motors and serial joints.

In: a mechanism or a robot, and names of serial joints. Out: a `Transmission`: positions, rates,
efforts and inertia on both sides, on one branch. Uses an estimator's continuation.
"""
