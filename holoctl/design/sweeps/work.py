"""What a worker does with a share of the items, wherever it is. Nothing here starts anything.

A share is worked off item by item, for as long as patience lasts; what is left of it goes back, so
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
from holoctl.base.one_thread import one_thread

__all__ = ["Done", "Lost", "far_share", "packed", "said", "serve", "worked"]

SWEEP_FUNCTIONS = 4  # a count
"""Functions that a worker of somebody else's keeps."""


Function = Callable[[Any], Any]
Who = tuple[str, int, int]

_KNOWN: OrderedDict[str, Function] = OrderedDict()
_LOCK = threading.Lock()


class Done(NamedTuple):
    """What became of the first items of a share.

    Attributes
    ----------
    values : list
        What the function returned; of an item that failed, its error.
    failed : list of int
        Which failed, counted from the first of the share.
    seconds : float
        How long that took.
    who : (str, int, int)
        Host, process and thread.
    """

    values: list[Any]
    failed: list[int]
    seconds: float
    who: Who


class Lost(NamedTuple):
    """A share that nothing came back of.

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


def worked(function: Function, items: Sequence[Any], patience: float) -> Done:
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
    return Done(values, failed, time.perf_counter() - begun, who)


def packed(done: Done | Lost) -> bytes:
    """A pickle of it, whatever the values are."""
    try:
        return pickle.dumps(done, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        if isinstance(done, Lost):
            raise
        whole = error
    values, failed = list[Any](), list[int]()
    for i, value in enumerate(done.values):
        try:
            pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            values.append(
                SweepError(
                    f"the function returned {_article(value)}, which cannot be pickled to be sent "
                    f"back: {said(error)}; return numbers, arrays, or values that pickle"
                )
            )
        else:
            values.append(value)
        if i in done.failed or values[-1] is not value:
            failed.append(i)
    try:
        return pickle.dumps(done._replace(values=values, failed=failed), pickle.HIGHEST_PROTOCOL)
    except Exception:  # one by one they pickled
        return pickle.dumps(Lost(f"its values cannot be pickled: {said(whole)}", sure=True))


def far_share(digest: str, function: bytes, items: bytes, patience: float, attempt: str) -> bytes:
    """A share in a process of somebody else's, who knows this module; the function is unpickled
    once a process. No two attempts are called alike: who knows a task by its arguments, as Dask
    does, would answer the second as it answered the first."""
    try:
        known = _known(digest, function)
    except Exception as error:
        return packed(Lost(f"its worker could not load the function: {said(error)}", function=True))
    with one_thread():
        return _share(known, items, patience)


def serve(connection: Any, function: bytes) -> None:
    """Work in a process of our own, until nobody is at the other end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who started this
    one_thread().__enter__()
    np.random.seed()  # noqa: NPY002 (forked from one server, all would draw the same)
    pin.seed(secrets.randbits(31))
    with suppress(EOFError, OSError):  # nobody there any more
        try:
            known = pickle.loads(function)
        except Exception as error:
            connection.send_bytes(packed(Lost(said(error), function=True)))
            return
        connection.send_bytes(b"")
        while True:
            patience, items = pickle.loads(connection.recv_bytes())
            connection.send_bytes(_share(known, items, patience))


def said(error: BaseException) -> str:
    """An error in a sentence: its name and what it says, shortened."""
    text = " ".join(_text_of(error).split())
    text = text if len(text) <= 300 else f"{text[:300]} ..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(it cannot even be printed)"


def _share(function: Function, items: bytes, patience: float) -> bytes:
    try:
        given = pickle.loads(items)
    except Exception as error:
        return packed(Lost(f"it cannot be unpickled in a worker: {said(error)}", sure=True))
    return packed(worked(function, given, patience))


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
    try:
        again = pickle.loads(pickle.dumps(error, pickle.HIGHEST_PROTOCOL))
        if type(again) is type(error) and str(again) == str(error):
            return error
    except Exception:
        pass
    replaced = SweepError(f"{said(error)} (an error of its own class, which cannot be pickled)")
    for note in getattr(error, "__notes__", ()):
        replaced.add_note(note)
    return replaced


def _article(value: Any) -> str:
    return f"a value of type {type(value).__name__}"
