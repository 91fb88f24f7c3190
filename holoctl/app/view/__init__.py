"""A mechanism shown in a browser: bodies, closures, motions, efforts.

In: a `Mechanism`, the file it was read from, a `Run`. Out: a page.
Only `scene`, `page`, `server` and `standalone_page` import viser; the rest are plain values.
"""
