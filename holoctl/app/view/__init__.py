"""A mechanism in a browser: bodies, closures, motions, efforts.

In: a `Mechanism`, its file, a `Run`. Out: a page.
`scene`, `overlay_nodes`, `page`, `server` and `standalone_page` use viser; the rest are values.
"""
