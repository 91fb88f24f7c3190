"""A controller as C99 that needs no library but libm.

In: expressions. Out: a folder of sources, with a self-test.
If the guard refuses, a status is returned, and the last torque held for a limited time.
"""
