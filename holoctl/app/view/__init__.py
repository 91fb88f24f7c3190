"""A mechanism to look at in a browser: bodies, closures, motions, efforts.

In: a `Mechanism`, the file it was read from, a `Run`. Out: a page, and what is shown on it.
Only what draws the page imports viser; all else here is plain values.
"""
