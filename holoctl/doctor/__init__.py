"""The doctor: why a mechanism moves as it does, does not close, or closes in several ways.

Input: a `Mechanism`. Output: a `MobilityReport` with explanations; `AssemblyModes`.
`mobility_analysis` calls the other modules, `report` and `report_sentences` write the text.
"""
