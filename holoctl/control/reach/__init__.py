"""Where frames can be: closed configurations, and motions, in which they are where they should be.

In: a `Mechanism`, poses of frames, limits. Out: q, v, a; or why a pose is out of reach.
Off line: nothing here is for the rate of a loop, and nothing of it depends on a law.
"""
