"""The laws of a mechanism as functions of symbols, each with a guard.

In: expressions. Out: a `casadi.Function`; its last output is the doubt of the guard.
A result is valid where the doubt is below one; elsewhere Python answers, or a status.
"""
