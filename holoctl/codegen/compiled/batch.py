"""A compiled law at many states, by several threads that share them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector, instant, numbers, whole
from holoctl.base.errors import HoloctlError, InputError
from holoctl.base.progress import progress_bar
from holoctl.codegen.compiled.extension_source import Law

__all__ = ["answers"]

Array = NDArray[np.float64]

PIECE = 1024
"""States of a batch that one thread takes at a time, at most."""


def answers(
    module: Any,
    law: Law,
    tables: Sequence[Any],
    t: Any,
    out: Array | None,
    workers: int | None,
    progress: bool,
    otherwise: Callable[..., Vector],
) -> Array:
    """The first output of a law of (q, v, target), a row for each row of the tables.

    ``otherwise(q, v, target, t)`` answers where the guard is in doubt.
    """
    Q, V, T = (
        _table(name, x, size) for name, x, (_, size) in zip("QVT", tables, law.inputs, strict=True)
    )
    N, size = len(Q), law.outputs[0][1]
    if not N == len(V) == len(T):
        raise InputError(f"Q, V and T must have as many rows; got {N}, {len(V)}, {len(T)}")
    t = instant(t)
    U = np.empty((N, size)) if out is None else _place(out, (N, size))
    if out is not None:  # inputs are read again where the guard is in doubt
        Q, V, T = (x.copy() if np.may_share_memory(x, U) else x for x in (Q, V, T))
    count = _cores() if workers is None else whole("workers", workers, 1)
    doubt, taken = np.zeros(N, dtype=np.uint8), np.zeros(1, dtype=np.int64)
    piece = max(1, min(PIECE, N // (8 * count)))
    count = max(1, min(count, -(-N // piece)))

    def work() -> None:
        module.batch(Q, V, T, t, U, doubt, taken, piece, N)

    if count == 1 and not progress:
        work()
    else:
        with ThreadPoolExecutor(count) as pool:
            jobs = [pool.submit(work) for _ in range(count)]
            if progress:
                _show(jobs, taken, N)
        for job in jobs:
            job.result()
    for i in np.flatnonzero(doubt).tolist():
        try:
            U[i] = otherwise(Q[i], V[i], T[i], t)
        except HoloctlError as error:
            error.add_note(f"at state {i} of the batch")
            raise
    return U


def _cores() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _table(name: str, value: Any, size: int) -> Array:
    x = numbers(name, value)
    if x.ndim != 2 or x.shape[1] != size:
        raise InputError(f"{name} must have shape (N, {size}); got {x.shape}")
    return np.require(x, requirements=["C", "A"])


def _place(out: Any, shape: tuple[int, int]) -> Array:
    good = (
        type(out) is np.ndarray and out.dtype == np.float64 and out.shape == shape
        and out.flags.carray
    )  # fmt: skip
    if not good:
        raise InputError(
            f"out must be a contiguous array of floats that can be written to, shape {shape}"
        )
    place: Array = out
    return place


def _show(jobs: Sequence[Future[None]], taken: NDArray[np.int64], count: int) -> None:
    """A progress bar until all jobs are done."""
    bar = progress_bar(count, "inverse dynamics", "states", scaled=True)
    if bar is None:
        return
    with bar:
        left = True
        while left:
            left = bool(wait(jobs, timeout=0.1).not_done)
            bar.update(min(int(taken[0]), count) - bar.n)
