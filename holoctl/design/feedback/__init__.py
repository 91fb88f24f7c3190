"""Feedback: regulators about a point or along a motion, gains for a bandwidth.

In: a `Linearization`, or a motion. Out: `StateFeedback`, `Gains`.
`riccati` solves, `stabilisability` tests models, `sampled_loop` has the effect of ticks and delays.
"""
