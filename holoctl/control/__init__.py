"""Controllers: laws of motors and of tasks, limits, and the loop itself.

In: a `Mechanism`, gains, limits, and (q, v) at every tick. Out: motor efforts.
`realtime` runs a loop at a fixed rate, without garbage collection.
"""
