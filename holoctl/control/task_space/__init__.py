"""Laws of tasks: feedback and impedance in task coordinates.

In: a `Mechanism`, tasks, gains, and (q, v) with a reference at every tick. Out: motor efforts.
`law` has the data; `task_by_projection` is the general path, and the reference of `task_tick`.
"""
