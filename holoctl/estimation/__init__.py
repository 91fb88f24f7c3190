"""The closed state from measurements of motors or any joints; external forces.

Input: positions and rates of some joints, at every tick. Output: the closed (q, v) on the same
branch, or an error that states the cause. The momentum observer estimates external efforts from
states and motor efforts.
"""
