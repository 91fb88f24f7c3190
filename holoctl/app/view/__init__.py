"""A mechanism in a browser: bodies, closures, motions, efforts.

In: a `Mechanism`, its file, a `Run`. Out: a page.
Only `scene`, `page`, `server` and `standalone_page` import viser; the rest are plain values.
"""
