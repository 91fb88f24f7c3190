"""The dynamics once more, laid out for a control loop.

In: (q, v) and a target, at every tick. Out: efforts or accelerations, nothing else.
What is doubtful goes to the general path, once.
"""
