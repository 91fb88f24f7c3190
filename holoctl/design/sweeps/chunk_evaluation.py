"""Evaluation of a chunk of items in a worker.

The items of a chunk are evaluated one after the other until a time limit; the rest of the chunk is
returned to the queue, so that no item waits for a long one before it. Values and errors that cannot
be pickled are replaced by an error that names them.
"""

from __future__ import annotations

import os
import pickle
import secrets
import signal
import socket
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.errors import SweepError
from holoctl.base.single_threaded_blas import one_thread

__all__ = [
    "Chunk", "ChunkResult", "Dumps", "LostChunk", "described", "far_chunk", "home",
    "pickled_items", "plain_pickle", "serve", "unpacked", "worked",
]  # fmt: skip

SWEEP_PATIENCE = 0.2  # s
"""Items of a chunk that were not begun after this time are returned to the queue."""

SWEEP_FUNCTIONS = 4
"""Number of functions that a worker of a user's executor keeps."""


Function = Callable[[Any], Any]
Dumps = Callable[[Any], bytes]
Who = tuple[str, int, int]

_KNOWN: OrderedDict[str, Function] = OrderedDict()
_LOCK = threading.Lock()


class Chunk(NamedTuple):
    """Items from `start` up to `stop`, without it."""

    start: int
    stop: int


class ChunkResult(NamedTuple):
    """The results of the first items of a chunk.

    Attributes
    ----------
    values : list
        The result of the function for each item; for an item that failed, its error.
    failed : list of int
        Indices of the items that failed, counted from the first of the chunk.
    seconds : float
        Time of the evaluation.
    who : (str, int, int)
        Host, process and thread of the worker.
    """

    values: list[Any]
    failed: list[int]
    seconds: float
    who: Who


class LostChunk(NamedTuple):
    """A chunk without results.

    Attributes
    ----------
    why : str
        The end of a sentence: "its worker process ended".
    sure : bool
        Whether another attempt would fail too, if the chunk is one item.
    function : bool
        Whether the cause is the function, and not the items.
    """

    why: str
    sure: bool = False
    function: bool = False


def worked(
    function: Function, items: Sequence[Any], patience: float = SWEEP_PATIENCE
) -> ChunkResult:
    """Evaluate items one after the other, at least one, until `patience` (s) is over."""
    values, failed = list[Any](), list[int]()
    begun = time.perf_counter()
    for item in items:
        try:
            values.append(function(item))
        except BaseException as error:  # the value of an item that fails is its error
            failed.append(len(values))
            values.append(_picklable(error))
        if time.perf_counter() - begun > patience:
            break
    who = socket.gethostname(), os.getpid(), threading.get_ident()
    return ChunkResult(values, failed, time.perf_counter() - begun, who)


def plain_pickle(x: Any) -> bytes:
    """A pickle of the highest protocol."""
    return pickle.dumps(x, pickle.HIGHEST_PROTOCOL)


def pickled_items(dumps: Dumps, items: Sequence[Any]) -> bytes | LostChunk:
    """The pickled items, or why they cannot be pickled."""
    try:
        return dumps(items)
    except Exception as error:
        return LostChunk(f"it cannot be pickled: {described(error)}", sure=True)


def unpacked(message: bytes) -> ChunkResult | LostChunk:
    """The result in a message of `packed`."""
    try:
        outcome: ChunkResult | LostChunk = pickle.loads(message)
    except Exception as error:
        return LostChunk(f"its result cannot be unpickled here: {described(error)}", sure=True)
    return outcome


def packed(done: ChunkResult) -> bytes:
    """A pickle of a result; values that cannot be pickled are replaced by a `SweepError`."""
    try:
        return plain_pickle(done)
    except Exception as error:
        whole = error
    values, failed = list[Any](), set(done.failed)
    for i, value in enumerate(done.values):
        try:
            plain_pickle(value)
            values.append(value)
        except Exception as error:
            values.append(
                SweepError(
                    f"the function returned a value of type {type(value).__name__}, which cannot "
                    f"be pickled to be sent back: {described(error)}; return numbers, arrays, or "
                    "values that pickle"
                )
            )
            failed.add(i)
    try:
        return plain_pickle(done._replace(values=values, failed=sorted(failed)))
    except Exception:  # each value alone could be pickled
        why = f"its values cannot be pickled: {described(whole)}"
        return plain_pickle(LostChunk(why, sure=True))


def far_chunk(digest: str, function: bytes, items: bytes, attempt: str) -> bytes:
    """Evaluate a chunk in a process of a user's executor; the function is unpickled once in each
    process.

    `attempt` differs between calls: an executor that identifies tasks by their arguments, as Dask
    does, would otherwise return the result of the first attempt for the second.
    """
    try:
        known = _known(digest, function)
    except Exception as error:
        why = f"its worker could not load the function: {described(error)}"
        return plain_pickle(LostChunk(why, function=True))
    with one_thread():
        return _answer(known, items)


def home() -> str:
    """The path of this file, which identifies the installed holoctl."""
    return os.path.realpath(__file__)


def serve(connection: Any, function: bytes, where: str) -> None:
    """Evaluate chunks in a process of the library until the connection is closed.

    `where` is the `home` of the process that started this one: a server of processes searches the
    working directory first, which may have another holoctl.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    one_thread().__enter__()
    np.random.seed()  # noqa: NPY002 (forked from one server, all would draw the same)
    pin.seed(secrets.randbits(31))
    with suppress(EOFError, OSError):  # the connection was closed
        try:
            if home() != where:
                raise ImportError(f"it has another holoctl, {home()}, than this process, {where}")
            known = pickle.loads(function)
        except Exception as error:
            connection.send_bytes(plain_pickle(LostChunk(described(error), function=True)))
            return
        connection.send_bytes(b"")
        while True:
            connection.send_bytes(_answer(known, connection.recv_bytes()))


def described(error: BaseException) -> str:
    """The class and the message of an error, shortened."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = "(its message cannot be printed)"
    text = text if len(text) <= 300 else f"{text[:300]} ..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _answer(function: Function, items: bytes) -> bytes:
    try:
        given = pickle.loads(items)
    except Exception as error:
        lost = LostChunk(f"it cannot be unpickled in a worker: {described(error)}", sure=True)
        return plain_pickle(lost)
    return packed(worked(function, given))


def _known(digest: str, data: bytes) -> Function:
    """The function with a digest, unpickled if it is new."""
    with _LOCK:
        if digest not in _KNOWN:
            _KNOWN[digest] = pickle.loads(data)
            while len(_KNOWN) > SWEEP_FUNCTIONS:
                _KNOWN.popitem(last=False)
        _KNOWN.move_to_end(digest)
        return _KNOWN[digest]


def _picklable(error: BaseException) -> Exception:
    """The error, or a `SweepError` in its place if it cannot be pickled, with a note of where in
    the function it was raised."""
    where = "".join(traceback.format_tb(error.__traceback__)[1:])
    if where:
        with suppress(Exception):
            error.add_note(f"In a worker:\n{where.rstrip()}")
    error.__traceback__ = None
    if not isinstance(error, Exception):  # SystemExit and other errors that end programs
        return SweepError(f"the function raised {described(error)}, which is no ordinary error")
    with suppress(Exception):
        again = pickle.loads(plain_pickle(error))
        if type(again) is type(error) and str(again) == str(error):
            return error
    replaced = SweepError(f"{described(error)} (an error of a class that cannot be pickled)")
    for note in getattr(error, "__notes__", ()):
        replaced.add_note(note)
    return replaced
