"""Published problems of multibody dynamics, simulated with holoctl and its peers.

`problems` has the mechanisms, their data with the sources, and references that know nothing of
holoctl; `own` and `peers` run them; `score` writes docs/referee.md.
"""
