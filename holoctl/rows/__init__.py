"""The rows of a mechanism at a state: one description, several readers.

In: a `Mechanism` and (q, v, t). Out: `Terms`, or G and -drift laid out for a tick.
Also what rows do to bodies, and how far off a state may be.
"""
