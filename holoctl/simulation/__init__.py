"""A controller at its rate against a plant.

In: a `Mechanism`, a controller, a state. Out: a `Run`.
The plant may be another mechanism than the controller's.
"""
