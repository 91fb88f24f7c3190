"""Dynamic parameters of a mechanism from measurements, through its closed loops.

In: a mechanism, and measured positions and efforts. Out: physically consistent parameters.
Conventions: parameters of bodies are in the axes of their joint, about its origin.
"""
