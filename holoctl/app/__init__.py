"""What a person starts: the command line, the demo, plots.

In: arguments of a shell. Out: text, files, an exit code.
No other package imports from here.
"""
