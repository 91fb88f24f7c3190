"""Idle motions: bodies that spin between two joints, such as a rod between ball joints.

In: a closed configuration, what is held at rest. Out: motions that move no other body.
How bodies are tied is read off the twists that joints allow, of the tree and cut ones alike.
"""
