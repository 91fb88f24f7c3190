"""Progress bars on long work, where tqdm is installed."""

from __future__ import annotations

import logging
from typing import Any

__all__ = ["progress_bar"]

log = logging.getLogger(__name__)


def progress_bar(total: int, what: str, unit: str, scaled: bool = False) -> Any:
    """A bar of tqdm over `total` units; None, and a line in the log, where that is missing."""
    try:
        from tqdm import tqdm
    except ImportError:
        log.info("no progress bar: tqdm is not installed")
        return None
    return tqdm(total=total, desc=what, unit=f" {unit}", unit_scale=scaled)
