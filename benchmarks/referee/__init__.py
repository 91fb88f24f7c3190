"""Published problems of multibody dynamics, simulated with holoctl and its peers.

`problems` has the mechanisms, their data with the sources, and references that do not use
holoctl; `own` and `with_...` run them, `plain_run` published methods in numpy. Single states are
asked by `spatial_v2_states`, `rbdl_states` and `sympy_five`, postures by `textbook`; `histories`
has published ones that do not agree. `score` writes docs/referee.md and docs/referee-states.md,
`disagreement` docs/referee-slider-crank.md, `pictures` docs/referee.json.
"""
