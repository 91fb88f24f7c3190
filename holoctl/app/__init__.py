"""The command line, the demo and plots.

In: arguments of a shell. Out: text, files, an exit code.
No other package imports from here.
"""
