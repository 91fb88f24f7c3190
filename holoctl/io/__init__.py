"""Readers of robot descriptions: URDF, MJCF, SDF, and the YAML file beside them.

In: files. Out: a `Mechanism`, or an error that names the line.
`load` chooses the reader; each format has one, divided into several files where it is long.
"""
