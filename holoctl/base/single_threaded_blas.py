"""One thread for linear algebra in the whole process, as long as some context requires it.

The number of threads belongs to the process: the first context lowers it and the last one restores
it, so that loops and runs in several threads do not leave it lowered.
"""

from __future__ import annotations

import threading
from typing import Any

__all__ = ["one_thread"]

_LOCK = threading.Lock()
_UNDER_WAY: list[Any] = []
"""One entry for each open context."""


class one_thread:
    """A context with one BLAS thread. The matrices of a mechanism are small: more threads make
    their factorisation slower and delay it."""

    def __enter__(self) -> None:
        import scipy.linalg  # noqa: F401  (only libraries that are loaded can be limited)
        from threadpoolctl import threadpool_limits

        with _LOCK:
            limit = _UNDER_WAY[0] if _UNDER_WAY else threadpool_limits(limits=1, user_api="blas")
            _UNDER_WAY.append(limit)

    def __exit__(self, *_: object) -> None:
        with _LOCK:
            limit = _UNDER_WAY.pop()
            if not _UNDER_WAY:
                limit.restore_original_limits()
