"""Laws for many robots at once: C, compiled for all cores of this computer or for a GPU.

In: C functions of one state. Out: kernels that call them for each robot, and their arrays.
A status for each robot; one that fails does not stop the others.
"""
