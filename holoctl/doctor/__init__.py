"""The doctor: why a mechanism moves as it does, does not close, or closes in several ways.

In: a `Mechanism`. Out: a `MobilityReport` that explains itself; `AssemblyModes`.
`examination` asks, the others look, `report` speaks.
"""
