"""Controller design, offline: linear models, gains, the fastest way along a path, sweeps and maps.

In: a `Mechanism`, states, limits. Out: `Linearization`, `StateFeedback`, `Trajectory`, `MotorMap`.
Nothing here is asked in a tick, but for what `StateFeedback` and `Trajectory` say in one.
"""
