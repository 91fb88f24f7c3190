"""The laws of a mechanism as functions of symbols, each with a guard.

In: expressions. Out: a `casadi.Function`; the last output is the guard.
A result is valid if it is below one; else Python computes it, or a status is returned.
"""
