"""The number of calls in which machine code was in doubt and Python computed the result."""

from __future__ import annotations

import logging
import threading

__all__ = ["Fallbacks"]

log = logging.getLogger("holoctl")


class Fallbacks:
    """A counter that logs its first event, and may be shared by several threads."""

    def __init__(self, mechanism: str) -> None:
        self._mechanism, self._lock, self._count = mechanism, threading.Lock(), 0

    @property
    def count(self) -> int:
        """The number of calls that Python computed."""
        return self._count

    def note(self, name: str) -> None:
        """Count a call of the function of this name."""
        with self._lock:
            self._count += 1
            first = self._count == 1
        if first:
            log.warning(
                "%s: the guard of the compiled %s refused a state, and Python computed the result; "
                "further states are only counted, in .fallbacks", self._mechanism, name,
            )  # fmt: skip
