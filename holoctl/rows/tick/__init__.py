"""The rows once more, laid out for a control tick.

In: rows of a `Mechanism`, once; then (q, v, t). Out: G and -drift, scaled, and whether they hold.
One file for each sort of row; `fast_rows` puts them together and judges the state.
"""
