"""Simulation of a plant, alone or under a controller that runs at a fixed rate.

In: a `Mechanism`, a controller, a state. Out: a `Run`.
The plant may be another mechanism than the controller's model.
"""
