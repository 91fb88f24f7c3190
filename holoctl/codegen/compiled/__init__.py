"""The laws in machine code, called from Python.

In: expressions. Out: a `Compiled`; if its guard refuses, the Python path computes the result.
Each such call is counted.
"""
