"""Controllers: the law of a loop, and the loop itself.

In: a `Mechanism`, gains, and (q, v) at every tick. Out: motor efforts.
`realtime` keeps the loop free of what makes it wait.
"""
