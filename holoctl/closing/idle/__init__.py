"""Idle motions: bodies that spin between two joints, such as a rod between ball joints.

In: a closed configuration, and coordinates that are held. Out: motions that move no other body.
The twists that joints allow tell how bodies are connected, by the tree and by loops alike.
"""
