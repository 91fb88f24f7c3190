"""Linear models about a state, at rest or in motion.

In: a `Mechanism` or what is compiled of it, a closed state. Out: a `Linearization`, its `Mode`s.
`linearize` is the door, `minimal_coordinates` and `plant_derivatives` are the law.
"""
