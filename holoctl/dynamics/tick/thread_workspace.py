"""A workspace for each thread, used by one call at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from holoctl.base.errors import InputError

__all__ = ["in_own_workspace", "prepared_now"]


def in_own_workspace(local: threading.local, prepare: Callable[[], Any], *args: Any) -> Any:
    """``tick(*args)`` with the tick that ``prepare()`` made for this thread; None without one, or
    if the caller has set numpy to raise floating-point errors and one was raised. During the call
    it cannot be called again in the same thread, because its workspace is in use.
    """
    try:
        tick = local.tick
    except AttributeError:
        tick = local.tick = prepare()
    if tick is None:
        return None
    local.tick = _busy
    try:
        return tick(*args)
    except (FloatingPointError, RuntimeWarning):
        return None
    finally:
        local.tick = tick


def prepared_now(local: threading.local, prepare: Callable[[], Any]) -> None:
    """Prepare the workspace of this thread before the first call."""
    local.tick = prepare()


def _busy(*_: Any) -> None:
    raise InputError(
        "called while another call in this thread was under way, from a signal handler or a "
        "callback; the workspace of the thread is in use: set a flag there instead"
    )
