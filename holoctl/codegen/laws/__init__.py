"""The laws of a mechanism as functions of symbols, each with a guard.

In: expressions. Out: a `casadi.Function`; its last output is the doubt of the guard.
A result is valid if the doubt is below one; else Python computes it, or a status is returned.
"""
