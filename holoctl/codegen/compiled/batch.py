"""A compiled law at many states, by several threads that share them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Array, Vector, instant, numbers, whole
from holoctl.base.cores import cores
from holoctl.base.errors import HoloctlError, InputError
from holoctl.base.progress import progress_bar
from holoctl.codegen.compiled.extension_source import Law
from holoctl.dynamics.batch_certificate import BatchCertificate, certificates, measures_of
from holoctl.dynamics.certificate import Certificate

__all__ = ["BatchInputs", "answers", "certified"]


PIECE = 1024
"""States of a batch that one thread takes at a time, at most."""


@dataclass(frozen=True, eq=False)
class BatchInputs:
    """The arguments of a batch: states, the task, and options.

    Attributes
    ----------
    tables : sequence of array_like
        The inputs of a law, a row for each state.
    names : tuple of str
        The names of the tables, for messages.
    what : str
        The title of the progress bar.
    t : float
        Time, s, of all states.
    out : array or None
        The array for the first output.
    workers : int or None
        The number of threads; None: one for each core.
    progress : bool
        Whether to show a progress bar.
    """

    tables: Sequence[Any]
    names: tuple[str, ...]
    what: str
    t: Any
    out: Array | None
    workers: int | None
    progress: bool


def answers(
    module: Any, law: Law, given: BatchInputs, otherwise: Callable[..., Sequence[Vector]]
) -> list[Array]:
    """The first outputs of a law, as many as it has tables, a row for each state.

    ``otherwise(*inputs, t)`` computes a state if the guard is in doubt, a vector for each table.
    """
    inputs = [
        _table(name, x, size)
        for name, x, (_, size) in zip(given.names, given.tables, law.inputs, strict=True)
    ]
    counts = [len(x) for x in inputs]
    N = counts[0]
    if any(count != N for count in counts):
        *some, last = given.names
        got = ", ".join(map(str, counts))
        raise InputError(f"{', '.join(some)} and {last} must have as many rows; got {got}")
    t, shapes = instant(given.t), [(N, size) for _, size in law.outputs[: law.tables]]
    found = [
        np.empty(shape) if i or given.out is None else _place(given.out, shape)
        for i, shape in enumerate(shapes)
    ]
    if given.out is not None:  # inputs are read again where the guard is in doubt
        inputs = [x.copy() if np.may_share_memory(x, found[0]) else x for x in inputs]
    guard = _in_pieces(module, inputs, t, found, given)
    for i in np.flatnonzero(guard).tolist():
        try:
            answer = otherwise(*(x[i] for x in inputs), t)
        except HoloctlError as error:
            error.add_note(f"at state {i} of the batch")
            raise
        for table, row in zip(found, answer, strict=True):
            table[i] = row
    return found


def certified(
    module: Any, law: Law, given: BatchInputs, otherwise: Callable[..., tuple[Vector, Certificate]],
    tolerance: float,
) -> tuple[Array, BatchCertificate]:  # fmt: skip
    """The same of a law whose second output is its certificate: apart from the first.

    `otherwise` gives the certificate of a state as a value; `tolerance` is that of the partition.
    """

    def measured(*state: Any) -> tuple[Vector, Vector]:
        found, certificate = otherwise(*state)
        return found, measures_of(certificate)

    found, numbers = answers(module, law, given, measured)
    return found, certificates(numbers, tolerance)


def _in_pieces(
    module: Any, inputs: Sequence[Array], t: float, found: Sequence[Array], given: BatchInputs
) -> NDArray[np.uint8]:
    """Fill the outputs; returns the states at which the guard is in doubt."""
    N = len(inputs[0])
    count = cores() if given.workers is None else whole("workers", given.workers, 1)
    guard, taken = np.zeros(N, dtype=np.uint8), np.zeros(1, dtype=np.int64)
    piece = max(1, min(PIECE, N // (8 * count)))
    count = max(1, min(count, -(-N // piece)))

    def work() -> None:
        module.batch(*inputs, t, *found, guard, taken, piece, N)

    if count == 1 and not given.progress:
        work()
    else:
        with ThreadPoolExecutor(count) as pool:
            jobs = [pool.submit(work) for _ in range(count)]
            if given.progress:
                _show(given.what, jobs, taken, N)
        for job in jobs:
            job.result()
    return guard


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


def _show(what: str, jobs: Sequence[Future[None]], taken: NDArray[np.int64], count: int) -> None:
    """A progress bar until all jobs are done."""
    bar = progress_bar(count, what, "states", scaled=True)
    if bar is None:
        return
    with bar:
        left = True
        while left:
            left = bool(wait(jobs, timeout=0.1).not_done)
            bar.update(min(int(taken[0]), count) - bar.n)
