"""Dynamics prepared for a control loop: everything constant is computed once.

In: (q, v) and a target, at every tick. Out: efforts or accelerations, nothing else. If the tick is
ill-conditioned, `inverse_by_projection` computes the result instead.
"""
