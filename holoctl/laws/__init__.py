"""The laws, each one text for numbers and for expressions.

In: constraints with a border, and a tree, as in `operators`. Out: efforts and motions.
A law does not depend on how vectors are stored, where motors are, or on guards.
"""
