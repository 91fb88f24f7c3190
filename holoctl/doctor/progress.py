"""A progress bar over the parts of an examination."""

from __future__ import annotations

from collections.abc import Callable

from holoctl.base.progress import progress_bar

__all__ = ["PARTS", "stages"]

PARTS = ("closing", "looking around", "rows", "motions", "coordinates")
"""What an examination consists of, in this order."""


def stages(show: bool) -> Callable[[], None]:
    """A function to be called when a part begins, and once more at the end."""
    bar = progress_bar(len(PARTS), "doctor", "parts") if show else None
    if bar is None:
        return lambda: None
    left = list(PARTS)
    begun = False

    def begin() -> None:
        nonlocal begun
        if begun:
            bar.update()
        begun = True
        if left:
            bar.set_postfix_str(left.pop(0))
        else:
            bar.close()

    return begin
