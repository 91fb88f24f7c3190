"""How many cores there are to work with."""

from __future__ import annotations

import os

__all__ = ["cores"]


def cores() -> int:
    """How many this process may use, at least one."""
    if hasattr(os, "sched_getaffinity"):
        return max(len(os.sched_getaffinity(0)), 1)
    return os.cpu_count() or 1
