"""Linear models about a state, at rest or in motion.

In: a `Mechanism` or its compiled laws, a closed state. Out: a `Linearization`, its `Mode`s.
`linearize` is the public function, `minimal_coordinates` and `plant_derivatives` the equations.
"""
