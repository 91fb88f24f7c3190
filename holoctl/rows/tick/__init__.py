"""The rows prepared for evaluation at every tick; the general path uses them too.

In: rows of a `Mechanism`, once for each thread; then (q, v, t). Out: G and -drift, scaled. One file
for each sort of row; `fast_rows` combines them and checks the state.
"""
