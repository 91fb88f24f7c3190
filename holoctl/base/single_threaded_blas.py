"""One thread for linear algebra, for the whole process, as long as anybody asks for it.

The number of threads belongs to the process: the first who asks lowers it and the last one puts it
back, so that loops and runs in several threads do not leave it lowered.
"""

from __future__ import annotations

import threading
from typing import Any

__all__ = ["one_thread"]

_LOCK = threading.Lock()
_UNDER_WAY: list[Any] = []
"""The limit, once for each who asks."""


class one_thread:
    """A context. Matrices of a mechanism are small: more threads of BLAS make them slower, and
    late."""

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
