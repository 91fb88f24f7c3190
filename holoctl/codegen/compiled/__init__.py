"""The laws in machine code, called from Python.

Input: expressions. Output: a `Compiled`; if its guard refuses, the Python path computes the result,
and the call is counted.
"""
