"""The rows laid out once for each thread: for control ticks, and for the general path.

In: rows of a `Mechanism`, once; then (q, v, t). Out: G and -drift, scaled, and whether they hold.
One file for each sort of row; `fast_rows` puts them together and judges the state.
"""
