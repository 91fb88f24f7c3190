"""Controller design, offline: linear models, gains, the fastest way along a path, maps.

In: a mechanism, states, limits. Out: `Linearization`, `StateFeedback`, `Trajectory`, `Sweep`.
"""
