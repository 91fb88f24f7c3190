"""Readers of robot descriptions: URDF, MJCF, SDF, and the YAML sheet beside them.

In: files. Out: a `Mechanism`, or an error that names the line.
One reader for each format, `load` chooses; what is long is divided: `sdf_...`, `mjcf_...`.
"""
