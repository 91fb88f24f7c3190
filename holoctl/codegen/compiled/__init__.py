"""The laws in machine code, within Python.

In: expressions. Out: a `Compiled`, with the Python path behind it.
What is doubtful goes to that path, and is counted.
"""
