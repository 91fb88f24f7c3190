"""The laws in machine code, called from Python.

In: expressions. Out: a `Compiled`; where its guard refuses, the path in Python answers.
Each such call is counted.
"""
