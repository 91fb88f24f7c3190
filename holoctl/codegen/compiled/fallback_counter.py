"""How often machine code left an answer to Python."""

from __future__ import annotations

import logging
import threading

__all__ = ["Fallbacks"]

log = logging.getLogger("holoctl")


class Fallbacks:
    """A count, told of once, which several threads may share."""

    def __init__(self, mechanism: str) -> None:
        self._mechanism, self._lock, self._count = mechanism, threading.Lock(), 0

    @property
    def count(self) -> int:
        """How many answers or errors came from Python."""
        return self._count

    def note(self, name: str) -> None:
        """One more, of the function of this name."""
        with self._lock:
            self._count += 1
            first = self._count == 1
        if first:
            log.warning(
                "%s: the guard of the compiled %s is in doubt at a state, and the Python path "
                "answers; further ones are only counted, in .fallbacks", self._mechanism, name,
            )  # fmt: skip
