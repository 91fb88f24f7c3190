"""Feedback: regulators about a point or along a motion, gains for a bandwidth.

In: a `Linearization`, or a motion. Out: `StateFeedback`, `Gains`.
`riccati` solves the Riccati equations, `stabilisability` refuses models that no regulator can hold,
`sampled_loop` computes the effect of ticks and delays.
"""
