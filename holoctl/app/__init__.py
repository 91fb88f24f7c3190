"""What a person starts: the command line, the demo, pictures.

In: arguments of a shell. Out: text, files, an exit code.
Nothing imports from here.
"""
