"""Who works in a sweep: processes of our own, or an executor; and how the function travels."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

from holoctl.base.checks import whole
from holoctl.base.cores import cores
from holoctl.base.errors import InputError
from holoctl.design.sweeps.executor import Hired
from holoctl.design.sweeps.processes import Processes
from holoctl.design.sweeps.shares import Crew
from holoctl.design.sweeps.work import said

__all__ = ["crew_of"]

MOST_PROCESSES = 1024
"""A sweep starts so many processes of its own at most: machines have fewer cores."""


def crew_of(owner: str, function: Any, executor: Any, count: int) -> Crew | None:
    """Those who will work; None where there is nothing to do."""
    if executor is not None and not isinstance(executor, Executor):
        if not isinstance(executor, int) or isinstance(executor, bool):
            hint = "; of a Client of Dask, client.get_executor()" if _is_client(executor) else ""
            raise InputError(
                f"{owner}: executor must be a concurrent.futures.Executor, a number of processes, "
                f"or None; got {type(executor).__name__}{hint}"
            )
        executor = whole("executor", executor, 1)
        if executor > MOST_PROCESSES:
            raise InputError(
                f"{owner}: executor must be at most {MOST_PROCESSES} processes; got {executor} "
                f"(this machine has {cores()} cores)"
            )
    if isinstance(executor, ThreadPoolExecutor):
        return Hired(executor, function, None) if count else None
    near = executor is None or isinstance(executor, (int, ProcessPoolExecutor))
    dumps = _plain if near else _any_pickle()
    data = _pickled(owner, function, dumps)
    if not count:
        return None
    if isinstance(executor, Executor):
        return Hired(executor, data, dumps)
    return Processes(data, min(executor or cores(), count))


def _pickled(owner: str, function: Any, dumps: Callable[[Any], bytes]) -> bytes:
    try:
        return dumps(function)
    except Exception as error:
        raise InputError(
            f"{owner}: the function does not pickle, so no other process can have it: "
            f"{said(error)}. Take a function of a module (no lambda, none defined in another "
            "function), with what it needs bound by functools.partial; or an executor that takes "
            "it: ThreadPoolExecutor, or that of Dask"
        ) from None


def _plain(x: Any) -> bytes:
    return pickle.dumps(x, pickle.HIGHEST_PROTOCOL)


def _any_pickle() -> Callable[[Any], bytes]:
    """That of cloudpickle where it is installed, as it is with Dask: far workers do not know the
    script that runs here."""
    try:
        import cloudpickle
    except ImportError:
        return _plain
    return lambda x: bytes(cloudpickle.dumps(x, protocol=pickle.HIGHEST_PROTOCOL))


def _is_client(x: Any) -> bool:
    return hasattr(x, "get_executor")
