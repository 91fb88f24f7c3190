"""What a worker does with a chunk of the items, wherever it is. Nothing here starts anything.

A chunk is worked off item by item, for as long as patience lasts; what is left of it goes back, so
that nobody waits behind a long item. What comes back is made to travel: values and errors that no
pickle takes are replaced by an error that names them.
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
    "Chunk", "ChunkResult", "Dumps", "LostChunk", "far_chunk", "home", "pickled_items",
    "plain_pickle", "said", "serve", "unpacked", "worked",
]  # fmt: skip

SWEEP_PATIENCE = 0.2  # s
"""What of a chunk is not begun after this goes back to the others."""

SWEEP_FUNCTIONS = 4  # a count
"""Functions that a worker of somebody else's keeps."""


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
    """What became of the first items of a chunk.

    Attributes
    ----------
    values : list
        What the function returned; of an item that failed, its error.
    failed : list of int
        Which failed, counted from the first of the chunk.
    seconds : float
        How long that took.
    who : (str, int, int)
        Host, process and thread.
    """

    values: list[Any]
    failed: list[int]
    seconds: float
    who: Who


class LostChunk(NamedTuple):
    """A chunk that nothing came back of.

    Attributes
    ----------
    why : str
        The end of a sentence: "its worker process ended".
    sure : bool
        Whether another attempt would end the same, if it is one item.
    function : bool
        Whether it is for the function, not for the items.
    """

    why: str
    sure: bool = False
    function: bool = False


def worked(
    function: Function, items: Sequence[Any], patience: float = SWEEP_PATIENCE
) -> ChunkResult:
    """The items one after the other, at least one, and no more when `patience` (s) is over."""
    values, failed = list[Any](), list[int]()
    begun = time.perf_counter()
    for item in items:
        try:
            values.append(function(item))
        except BaseException as error:  # an item may fail as it likes: it is its own value then
            failed.append(len(values))
            values.append(_carried(error))
        if time.perf_counter() - begun > patience:
            break
    who = socket.gethostname(), os.getpid(), threading.get_ident()
    return ChunkResult(values, failed, time.perf_counter() - begun, who)


def plain_pickle(x: Any) -> bytes:
    """A pickle of the newest kind."""
    return pickle.dumps(x, pickle.HIGHEST_PROTOCOL)


def pickled_items(dumps: Dumps, items: Sequence[Any]) -> bytes | LostChunk:
    """The items on their way to a worker, or why they cannot travel."""
    try:
        return dumps(items)
    except Exception as error:
        return LostChunk(f"it cannot be pickled: {said(error)}", sure=True)


def unpacked(message: bytes) -> ChunkResult | LostChunk:
    """What `packed` made, back here."""
    try:
        outcome: ChunkResult | LostChunk = pickle.loads(message)
    except Exception as error:
        return LostChunk(f"what came back cannot be unpickled here: {said(error)}", sure=True)
    return outcome


def packed(done: ChunkResult) -> bytes:
    """A pickle of it, whatever the values are."""
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
                    f"be pickled to be sent back: {said(error)}; return numbers, arrays, or "
                    "values that pickle"
                )
            )
            failed.add(i)
    try:
        return plain_pickle(done._replace(values=values, failed=sorted(failed)))
    except Exception:  # one by one they pickled
        return plain_pickle(LostChunk(f"its values cannot be pickled: {said(whole)}", sure=True))


def far_chunk(digest: str, function: bytes, items: bytes, attempt: str) -> bytes:
    """A chunk in a process of somebody else's, who knows this module; the function is unpickled
    once a process. No two attempts are called alike: who knows a task by its arguments, as Dask
    does, would answer the second as it answered the first."""
    try:
        known = _known(digest, function)
    except Exception as error:
        lost = LostChunk(f"its worker could not load the function: {said(error)}", function=True)
        return plain_pickle(lost)
    with one_thread():
        return _answer(known, items)


def home() -> str:
    """Where this holoctl is."""
    return os.path.realpath(__file__)


def serve(connection: Any, function: bytes, where: str) -> None:
    """Work in a process of our own, until nobody is at the other end; `where` is the `home` of who
    started it: a server of processes looks into the working directory first, where another holoctl
    may be."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who started this
    one_thread().__enter__()
    np.random.seed()  # noqa: NPY002 (forked from one server, all would draw the same)
    pin.seed(secrets.randbits(31))
    with suppress(EOFError, OSError):  # nobody there any more
        try:
            if home() != where:
                raise ImportError(f"it has another holoctl, {home()}, than this process, {where}")
            known = pickle.loads(function)
        except Exception as error:
            connection.send_bytes(plain_pickle(LostChunk(said(error), function=True)))
            return
        connection.send_bytes(b"")
        while True:
            connection.send_bytes(_answer(known, connection.recv_bytes()))


def said(error: BaseException) -> str:
    """An error in a sentence: its name and what it says, shortened."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = "(it cannot even be printed)"
    text = text if len(text) <= 300 else f"{text[:300]} ..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _answer(function: Function, items: bytes) -> bytes:
    try:
        given = pickle.loads(items)
    except Exception as error:
        lost = LostChunk(f"it cannot be unpickled in a worker: {said(error)}", sure=True)
        return plain_pickle(lost)
    return packed(worked(function, given))


def _known(digest: str, data: bytes) -> Function:
    """The function of a digest, unpickled where it is new."""
    with _LOCK:
        if digest not in _KNOWN:
            _KNOWN[digest] = pickle.loads(data)
            while len(_KNOWN) > SWEEP_FUNCTIONS:
                _KNOWN.popitem(last=False)
        _KNOWN.move_to_end(digest)
        return _KNOWN[digest]


def _carried(error: BaseException) -> Exception:
    """The error as it can travel, with a note of where in the function it was raised."""
    where = "".join(traceback.format_tb(error.__traceback__)[1:])
    if where:
        with suppress(Exception):
            error.add_note(f"In a worker:\n{where.rstrip()}")
    error.__traceback__ = None
    if not isinstance(error, Exception):  # SystemExit, and what else ends programs
        return SweepError(f"the function raised {said(error)}, which is no ordinary error")
    with suppress(Exception):
        again = pickle.loads(plain_pickle(error))
        if type(again) is type(error) and str(again) == str(error):
            return error
    replaced = SweepError(f"{said(error)} (an error of its own class, which cannot be pickled)")
    for note in getattr(error, "__notes__", ()):
        replaced.add_note(note)
    return replaced
