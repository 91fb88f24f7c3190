"""A progress bar over the parts of an examination."""

from __future__ import annotations

import logging
from collections.abc import Callable

__all__ = ["PARTS", "stages"]

log = logging.getLogger(__name__)

PARTS = ("closing", "looking around", "rows", "motions", "coordinates")
"""What an examination consists of, in this order."""


def stages(show: bool) -> Callable[[], None]:
    """A function to be called when a part begins, and once more at the end."""
    if not show:
        return lambda: None
    try:
        from tqdm import tqdm
    except ImportError:
        log.info("no progress bar: tqdm is not installed")
        return lambda: None
    bar = tqdm(total=len(PARTS), desc="doctor", unit=" parts")
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
