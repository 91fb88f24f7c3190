"""Progress bars for long computations, if tqdm is installed."""

from __future__ import annotations

import logging
from typing import Any

__all__ = ["progress_bar"]

log = logging.getLogger(__name__)


class _NoBar:
    """Replaces a bar that is not shown: it accepts the same calls."""

    n = total = 0

    def __enter__(self) -> _NoBar:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def progress_bar(
    total: int, what: str, unit: str, scaled: bool = False, *, show: bool = True
) -> Any:
    """A tqdm bar over `total` units, a context manager; a silent one if it is not to be shown, or,
    with a line in the log, if tqdm is missing."""
    if not show:
        return _NoBar()
    try:
        from tqdm import tqdm
    except ImportError:
        log.info("no progress bar: tqdm is not installed")
        return _NoBar()
    return tqdm(total=total, desc=what, unit=f" {unit}", unit_scale=scaled)
