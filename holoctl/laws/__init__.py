"""The laws of dynamics, control and limits, each written once for numbers and expressions.

In: the bordered constraints and the tree, as in `operators`. Out: efforts and motions. A law does
not depend on how vectors are stored, where motors are, or on guards.
"""
