"""Laws of tasks: feedback and impedance in the coordinates of what is to be done.

In: a `Mechanism`, tasks, gains, and (q, v) with a reference at every tick. Out: motor efforts.
A law is data, `law`; `general_path` answers where ticks are in doubt, and is their oracle.
"""
