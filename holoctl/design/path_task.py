"""Poses of a frame, or values of another task, along a path. (See next commit.)"""

from __future__ import annotations

from typing import Any

from holoctl.base.checks import Vector

__all__ = ["is_task_path", "task_path"]


def is_task_path(path: Any) -> bool:
    """Whether a path is a pair (task, values)."""
    return (
        isinstance(path, tuple)
        and len(path) == 2
        and (hasattr(path[0], "bind") or isinstance(path[0], str))
    )


def task_path(mech: Any, path: Any, q: Vector, owner: str) -> Any:
    """The drive, the function of s, its knots, and the first configuration."""
    raise NotImplementedError
