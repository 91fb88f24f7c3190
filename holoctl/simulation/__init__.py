"""Simulation of a plant, alone or under a controller at its rate.

In: a `Mechanism`, a controller, a state. Out: a `Run`.
The plant may be another mechanism than that of the controller.
"""
