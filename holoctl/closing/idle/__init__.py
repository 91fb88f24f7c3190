"""Idle motions: bodies that spin between two joints, such as a rod between spherical joints.

In: a closed configuration, and coordinates that are held. Out: motions that move no other body. The
twists allowed by joints describe how bodies are connected, in the tree and in loops alike.
"""
