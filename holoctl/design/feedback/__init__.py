"""Feedback: regulators about a point or along a motion, gains for a bandwidth.

In: a `Linearization`, or a motion. Out: `StateFeedback`, `Gains`.
`riccati` solves, `reachable_modes` refuses, `sampled_loop` knows what ticks and delays do.
"""
