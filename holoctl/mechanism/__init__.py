"""The mechanism: tree, constraints, motors, forces and limits, all checked once.

In: a model and constraints, or the bodies and joints of a `Linkage`. Out: a `Mechanism`.
Also the tree without constraints, in `open_tree`: M, h, ``M a + h``, energy.
"""
