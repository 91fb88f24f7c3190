"""All cores of this computer as a device: kernels as a shared library, arrays of NumPy."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import numbers
from holoctl.base.cores import cores
from holoctl.base.errors import InputError
from holoctl.codegen.compiled.extension import library
from holoctl.codegen.devices.kernels import AXES, Program, Strided, strided

__all__ = ["Cores", "on_cores"]

PIECES = 8
"""Pieces of a batch for each core, so that all end at about the same time."""


@dataclass(frozen=True)
class Cores:
    """The device; see `kernels.Device`.

    Attributes
    ----------
    workers : int
        The number of threads.
    """

    workers: int

    def array(self, name: str, value: Any, dtype: Any = np.float64) -> NDArray[Any]:
        try:
            foreign = hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray)
            x = np.asarray(np.from_dlpack(value) if foreign else value)
        except (TypeError, ValueError, BufferError, RuntimeError) as error:
            raise InputError(f"{name} must be an array of numbers: {error}") from None
        if x.dtype != dtype or isinstance(value, (np.ma.MaskedArray, list, tuple)):
            x = numbers(name, x if foreign else value).astype(dtype, copy=False)
        return np.require(x, requirements="A")  # strides are in numbers

    def empty(self, shape: Sequence[int], dtype: Any = np.float64) -> NDArray[Any]:
        return np.empty(tuple(shape), dtype)

    def numpy(self, array: NDArray[Any]) -> NDArray[Any]:
        return array

    def build(self, program: Program) -> _SharedLibrary:
        return _SharedLibrary(library(program.source, program.files), self.workers)


def on_cores(workers: int | None = None) -> Cores:
    """The device of this many threads; default: one for each core."""
    return Cores(cores() if workers is None else workers)


@dataclass(frozen=True, eq=False)
class _SharedLibrary:
    made: ctypes.CDLL
    workers: int

    def run(self, kernel: str, count: int, *arguments: Any) -> None:
        call, given = getattr(self.made, kernel), list(map(_argument, arguments))
        call.restype = None
        piece = max(1, -(-count // (PIECES * self.workers)))
        starts = iter(range(0, count, piece))

        def work(_: Any = arguments) -> None:  # without the GIL; arrays live as long as it runs
            for first in starts:
                last = min(first + piece, count)
                call(ctypes.c_longlong(first), ctypes.c_longlong(last), *given)

        others: list[Thread] = []
        try:
            for _ in range(min(self.workers, -(-count // piece)) - 1):
                thread = Thread(target=work)
                thread.start()
                others.append(thread)
            work()
        finally:  # after Ctrl-C too nothing is written any more: other pieces are not begun
            for _ in starts:
                pass
            for thread in others:
                thread.join()


def _argument(x: Any) -> Strided | ctypes.c_double | ctypes.c_longlong:
    if isinstance(x, float):
        return ctypes.c_double(x)
    if isinstance(x, int):
        return ctypes.c_longlong(x)
    array, axes = x if isinstance(x, tuple) else (x, AXES[x.ndim])
    return strided(array.ctypes.data, [s // array.itemsize for s in array.strides], axes)
