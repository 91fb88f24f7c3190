"""The number of processor cores that this process may use."""

from __future__ import annotations

import os

__all__ = ["cores"]


def cores() -> int:
    """The number of cores, at least one."""
    if hasattr(os, "sched_getaffinity"):
        return max(len(os.sched_getaffinity(0)), 1)
    return os.cpu_count() or 1
