"""The rows of all constraints of a mechanism at a state.

In: a `Mechanism` and (q, v, t). Out: `Terms`: G, -drift, errors and rates, M, h and F. Also the
wrenches of rows on bodies, and the errors at which a state is refused.
"""
