"""The laws of a mechanism, each a function of symbols with a guard that tells where it holds.

In: `Expressions`. Out: a `casadi.Function`, its last output the doubt.
A law may be trusted where its doubt is below one; elsewhere Python answers, or a status.
"""
