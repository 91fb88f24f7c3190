"""The doctor: why a mechanism moves as it does, does not close, or closes in several ways.

In: a `Mechanism`. Out: a `MobilityReport` with explanations; `AssemblyModes`.
`mobility_analysis` calls the other modules, `report` and `report_sentences` write the text.
"""
