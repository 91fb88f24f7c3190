"""A controller as C99 with nothing around it.

In: expressions. Out: a folder of sources, with a self-test.
What is doubtful becomes a status, and the torque a held one, for a while.
"""
