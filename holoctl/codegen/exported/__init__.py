"""A controller as C99 that needs no library but libm.

Input: expressions. Output: a folder of sources, with a self-test. If the guard refuses, a status is
returned, and the last torque is held for a limited number of calls.
"""
