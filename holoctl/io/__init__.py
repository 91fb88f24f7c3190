"""Readers of robot descriptions: URDF, MJCF, SDF, USD, and the accompanying YAML file.

In: files. Out: a `Mechanism`, or an error that names the line. `load` chooses the reader; each
format has one, divided into several files if it is long.
"""
