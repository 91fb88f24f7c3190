"""A function of many items (states, designs, scenarios) on all cores, or on many computers.

sweep[i] = function(items[i])        the error of an item that fails is its value
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, overload

from holoctl.base.checks import flag
from holoctl.base.errors import InputError
from holoctl.base.progress import progress_bar
from holoctl.design.sweeps.chunk_evaluation import described
from holoctl.design.sweeps.chunks import dealt_out
from holoctl.design.sweeps.workers import at_work, workers_of

__all__ = ["Sweep", "sweep"]


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Sequence[Any]):
    """The result of `sweep`: a sequence of the values, in the order of the items.

    Attributes
    ----------
    values : tuple
        The result of the function for each item; for an item that failed, its error.
    failed : tuple of int
        Indices of the items that failed, increasing.

    See Also
    --------
    sweep : returns it.
    results.SweepError : the value of an item for a technical reason.

    Examples
    --------
    >>> import math
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> import holoctl as hc
    >>> with ThreadPoolExecutor(1) as here:
    ...     roots = hc.sweep(math.sqrt, [4.0, -1.0, 9.0], here)
    >>> roots
    <Sweep: 3 items, 1 failed: item 1, ValueError: math domain error>
    >>> roots[2], roots.failed
    (3.0, (1,))
    """

    values: tuple[Any, ...]
    failed: tuple[int, ...]

    @property
    def errors(self) -> list[tuple[int, Exception]]:
        """Index and error of each item that failed."""
        return [(i, self.values[i]) for i in self.failed]

    def raise_if_bad(self) -> Sweep:
        """This result, or the first error if an item failed."""
        if self.failed:
            raise self.values[self.failed[0]]
        return self

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, i: int) -> Any: ...
    @overload
    def __getitem__(self, i: slice) -> tuple[Any, ...]: ...
    def __getitem__(self, i: int | slice) -> Any:
        return self.values[i]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __repr__(self) -> str:
        n = len(self.values)
        items = f"{n:,} item{'' if n == 1 else 's'}"
        if not self.failed:
            return f"<Sweep: {items}, none failed>"
        first = self.failed[0]
        more = ", the first: " if len(self.failed) > 1 else ": "
        return (
            f"<Sweep: {items}, {len(self.failed):,} failed{more}item {first}, "
            f"{described(self.values[first])}>"
        )


def sweep(
    function: Callable[[Any], Any],
    items: Iterable[Any],
    executor: Executor | int | None = None,
    progress: bool = False,
) -> Sweep:
    """Call a function for each of many items, in parallel on all cores or on many computers.

    Items are given to workers in chunks, from single items that take long to thousands that take
    microseconds, so that all workers finish together. The function is sent to a worker once, not
    with each item; large arguments, such as a mechanism and its partition, should be bound to it by
    ``functools.partial(f, mech, partition)``. Workers use one thread for linear algebra.

    Parameters
    ----------
    function : callable
        A function of one item. For processes it must be picklable: a function of a module, or a
        `functools.partial` of one.
    items : iterable
        For processes each item must be picklable. It is read to its end before the first call.
    executor : concurrent.futures.Executor or int, optional
        Default: one process for each core of this computer, for this call alone. A number is the
        number of such processes. Any executor, which stays open: ``client.get_executor()`` of Dask,
        ``MPIPoolExecutor`` of mpi4py; ``ThreadPoolExecutor(1)`` works in this process, for
        debugging, and pickles nothing.
    progress : bool, optional
        Show a progress bar, of tqdm.

    Returns
    -------
    Sweep
        Values in the order of the items. The value of an item that fails is its error, with a note
        of where it was raised. If an item has no value for another reason (its worker died, or it
        cannot be pickled), the value is a `SweepError` that says why; the worker is replaced, and
        all other items are evaluated. An executor that breaks when a worker dies, as
        ProcessPoolExecutor does, accepts no more work: the remaining items are then `SweepError`
        values too.

    Raises
    ------
    InputError
        For a function that cannot be pickled, or that a worker cannot load; for a wrong type of
        items or executor; if workers cannot be started.

    See Also
    --------
    motor_map : efforts and workspace over a grid.
    results.Sweep : the result.

    Notes
    -----
    Processes import the script that started them: it must start the sweep under
    ``if __name__ == "__main__":``. Items whose worker was lost are tried again, so a function with
    side effects may be called twice for an item. Ctrl-C ends the processes.

    Examples
    --------
    >>> import math
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> import holoctl as hc
    >>> with ThreadPoolExecutor(1) as here:  # without it: a process for each core
    ...     hc.sweep(math.factorial, range(4), here).values
    (1, 1, 2, 6)
    """
    if not callable(function):
        raise InputError(f"sweep: function must be callable; got {type(function).__name__}")
    flag("progress", progress)
    given = _listed(items)
    workers = workers_of("sweep", function, executor, len(given))
    if workers is None:
        return Sweep((), ())
    bar = progress_bar(len(given), "sweep", "items") if progress else None
    try:
        with at_work(workers):
            values, failed = dealt_out(workers, given, bar)
    finally:
        if bar is not None:
            bar.close()
    return Sweep(tuple(values), tuple(failed))


def _listed(items: Any) -> list[Any]:
    try:
        found = iter(items)
    except TypeError:
        raise InputError(
            f"sweep: items must be iterable: a list, an array, a generator; got "
            f"{type(items).__name__}"
        ) from None
    return list(found)
