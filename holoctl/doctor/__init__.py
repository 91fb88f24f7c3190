"""The doctor: why a mechanism moves as it does, or does not close.

In: a `Mechanism`. Out: a `MobilityReport` that explains itself.
`examination` asks, the others look, `report` speaks.
"""
