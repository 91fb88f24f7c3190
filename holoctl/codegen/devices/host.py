"""All cores of this computer as a device: kernels as a shared library, arrays of NumPy."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
            x = value if isinstance(value, np.ndarray) else _given(value)
            return x if x.dtype == dtype else x.astype(dtype)
        except (TypeError, ValueError, BufferError) as error:
            raise InputError(f"{name} must be an array of numbers: {error}") from None

    def empty(self, shape: Sequence[int], dtype: Any = np.float64) -> NDArray[Any]:
        return np.empty(tuple(shape), dtype)

    def numpy(self, array: NDArray[Any]) -> NDArray[Any]:
        return array

    def build(self, program: Program) -> _SharedLibrary:
        return _SharedLibrary(library(program.source, program.files), self.workers)


def on_cores(workers: int | None = None) -> Cores:
    """The device of this many threads; default: one for each core."""
    return Cores(cores() if workers is None else workers)


def _given(value: Any) -> NDArray[Any]:
    return np.asarray(np.from_dlpack(value) if hasattr(value, "__dlpack__") else value)


@dataclass(frozen=True, eq=False)
class _SharedLibrary:
    made: ctypes.CDLL
    workers: int

    def run(self, kernel: str, count: int, *arguments: Any) -> None:
        call, given = getattr(self.made, kernel), list(map(_argument, arguments))
        call.restype = None

        def work(first: int, last: int) -> None:  # without the GIL
            call(ctypes.c_longlong(first), ctypes.c_longlong(last), *given)

        piece = max(1, -(-count // (PIECES * self.workers)))
        if self.workers == 1 or count <= piece:
            work(0, count)
            return
        with ThreadPoolExecutor(self.workers) as pool:
            starts = range(0, count, piece)
            list(pool.map(work, starts, (min(x + piece, count) for x in starts)))


def _argument(x: Any) -> Strided | ctypes.c_double | ctypes.c_longlong:
    if isinstance(x, float):
        return ctypes.c_double(x)
    if isinstance(x, int):
        return ctypes.c_longlong(x)
    array, axes = x if isinstance(x, tuple) else (x, AXES[x.ndim])
    return strided(array.ctypes.data, [s // array.itemsize for s in array.strides], axes)
