"""Controllers: the law of a loop, of motors or of tasks, limits, and the loop itself.

In: a `Mechanism`, gains, limits, and (q, v) at every tick. Out: motor efforts.
`realtime` keeps the loop free of what makes it wait.
"""
