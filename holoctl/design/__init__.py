"""Controller design, offline: linear models, gains, time-optimal motions, sweeps and maps.

In: a `Mechanism`, states, limits. Out: `Linearization`, `StateFeedback`, `Trajectory`, `MotorMap`.
Only the methods of `StateFeedback` and `Trajectory` are called in a control loop.
"""
