"""Laws of tasks: feedback and impedance in task coordinates.

Input: a `Mechanism`, tasks, gains, and (q, v) with a reference at every tick. Output: motor
efforts. `law` has the data; `task_by_projection` is the general path, the reference of `task_tick`.
"""
