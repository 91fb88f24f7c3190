"""Controllers: laws of motors and of tasks, limits, and the loop itself.

Input: a `Mechanism`, gains, limits, and (q, v) at every tick. Output: motor efforts.
`realtime` runs a loop at a fixed rate, without garbage collection.
"""
