"""The laws, each one text over the constraints and the tree: for numbers and for expressions.

in: the operators of `contract`, which every machine has. out: efforts and motions.
"""
