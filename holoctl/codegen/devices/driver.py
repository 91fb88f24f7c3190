"""NVIDIA's driver: GPUs, their memory, and the start of kernels, without a toolkit.

In each thread the GPU is the current one for the time of a call only, so that other libraries in
this process, such as PyTorch, find theirs. Context and memory are those that they use too.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from ctypes import byref, c_char_p, c_int, c_longlong, c_size_t, c_uint, c_void_p
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.errors import HoloctlError, InputError

__all__ = [
    "Gpu", "GpuMemory", "GpuModule", "copied_from", "copied_to", "gpu", "launch", "loaded_module",
]  # fmt: skip

BLOCK = 64
"""Threads of a block: two warps, since each thread needs many registers."""

LAUNCH = 2**22
"""Robots of one launch, a multiple of `BLOCK`: none takes so long that a display stands still."""

OUT_OF_MEMORY = 2
NO_DEVICE = 100
CANNOT_LOAD = (200, 209, 218, 222)
"""Errors: an image that is invalid, or not for this GPU; PTX that is invalid, or too new."""

IN_A_KERNEL = range(700, 720)
"""Errors that end the context."""

CAPABILITY = 75, 76
"""Attributes: the compute capability, major and minor."""


@dataclass(frozen=True)
class Gpu:
    """A GPU.

    Attributes
    ----------
    ordinal : int
        From 0, as the driver counts.
    name : str
    architecture : int
        The compute capability: 90 for 9.0.
    cuda : int
        The major version of CUDA that the driver knows.
    context : int
        The primary context.
    library : ctypes.CDLL
        The driver.
    """

    ordinal: int
    name: str
    architecture: int
    cuda: int
    context: int
    library: ctypes.CDLL


class GpuMemory:
    """Memory of a GPU; freed when this dies.

    Attributes
    ----------
    address : int
    """

    def __init__(self, on: Gpu, size: int) -> None:
        address = c_void_p()
        with _current(on):
            code = on.library.cuMemAlloc_v2(byref(address), c_size_t(max(size, 1)))
            task = f"make an array of {_bytes(size)}; give fewer robots or steps at once"
            _check(on.library, code, task)
        self.address = int(address.value or 0)
        weakref.finalize(self, _freed, on, "cuMemFree_v2", self.address).atexit = False


class GpuModule:
    """Kernels on a GPU; unloaded when this dies.

    Attributes
    ----------
    on : Gpu
    handle : int
    """

    def __init__(self, on: Gpu, handle: int) -> None:
        self.on, self.handle = on, handle
        weakref.finalize(self, _freed, on, "cuModuleUnload", handle).atexit = False


def gpu(ordinal: int) -> Gpu:
    """The GPU of this number.

    Raises
    ------
    InputError
        Where there is no driver, or no such GPU.
    """
    given = os.environ.get("HOLOCTL_CUDA")
    return _gpu(given or ("nvcuda.dll" if os.name == "nt" else "libcuda.so.1"), ordinal)


def copied_to(on: Gpu, address: int, numbers: NDArray[Any]) -> None:
    """Numbers of NumPy, contiguous, to an address on the GPU."""
    if numbers.nbytes:
        host, size = c_void_p(numbers.ctypes.data), c_size_t(numbers.nbytes)
        with _current(on):
            code = on.library.cuMemcpyHtoD_v2(c_void_p(address), host, size)
            _check(on.library, code, "copy from NumPy")


def copied_from(on: Gpu, address: int, count: int, dtype: Any) -> NDArray[Any]:
    """Numbers from an address on the GPU, for NumPy."""
    numbers = np.empty(count, dtype)
    if numbers.nbytes:
        host, size = c_void_p(numbers.ctypes.data), c_size_t(numbers.nbytes)
        with _current(on):
            code = on.library.cuMemcpyDtoH_v2(host, c_void_p(address), size)
            _check(on.library, code, "copy for NumPy")
    return numbers


def loaded_module(on: Gpu, code: bytes) -> GpuModule:
    """Kernels from a cubin, or from PTX.

    Raises
    ------
    HoloctlError
        Where the driver is too old for it.
    """
    handle = c_void_p()
    with _current(on):
        failed = on.library.cuModuleLoadData(byref(handle), code)
        if failed in CANNOT_LOAD:
            raise HoloctlError(
                f"the driver of {on.name}, for CUDA {on.cuda}, cannot load these kernels "
                f"({_said(on.library, failed)}): install a newer driver, or name an earlier NVRTC "
                "in the environment variable HOLOCTL_NVRTC"
            )
        _check(on.library, failed, "load the kernels")
    return GpuModule(on, int(handle.value or 0))


def launch(module: GpuModule, kernel: str, count: int, arguments: Sequence[Any]) -> None:
    """Run a kernel for robots 0 to count - 1, to the end; arguments as values of ctypes.

    Raises
    ------
    HoloctlError
        If it fails.
    """
    library, function, handle = module.on.library, c_void_p(), c_void_p(module.handle)
    with _current(module.on):
        code = library.cuModuleGetFunction(byref(function), handle, kernel.encode())
        _check(library, code, f"find the kernel {kernel}")
        for first in range(0, count, LAUNCH):
            last = min(first + LAUNCH, count)
            given = [c_longlong(first), c_longlong(last), *arguments]
            places = (c_void_p * len(given))(*map(ctypes.addressof, given))
            blocks, threads, shared = (-(-(last - first) // BLOCK), 1, 1), (BLOCK, 1, 1), 0
            sizes = map(c_uint, (*blocks, *threads, shared))
            code = library.cuLaunchKernel(function, *sizes, None, places, None)
            _check(library, code, f"start {kernel}, which has a stack for each thread")
        _check(library, library.cuCtxSynchronize(), f"run the kernel {kernel}")


@cache
def _gpu(name: str, ordinal: int) -> Gpu:
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        raise InputError(
            f"there is no NVIDIA GPU here, or no driver for it ({error}): install NVIDIA's driver, "
            "or name its library in the environment variable HOLOCTL_CUDA"
        ) from None
    count, device, version, context = c_int(), c_int(), c_int(), c_void_p()
    code = library.cuInit(c_uint(0))
    if code != NO_DEVICE:
        _check(library, code, "start")
        _check(library, library.cuDeviceGetCount(byref(count)), "be counted")
    if ordinal >= count.value:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        raise InputError(
            f"there is no GPU {ordinal}: the driver finds {count.value}"
            + ("" if visible is None else f", with CUDA_VISIBLE_DEVICES={visible!r}")
        )
    text, capability = ctypes.create_string_buffer(100), (c_int(), c_int())
    for code in (
        library.cuDeviceGet(byref(device), c_int(ordinal)),
        library.cuDeviceGetName(text, c_int(len(text)), device),
        *(library.cuDeviceGetAttribute(byref(x), c_int(attribute), device)
          for x, attribute in zip(capability, CAPABILITY, strict=True)),
        library.cuDriverGetVersion(byref(version)),
        library.cuDevicePrimaryCtxRetain(byref(context), device),
    ):  # fmt: skip
        _check(library, code, "be taken")
    architecture = 10 * capability[0].value + capability[1].value
    return Gpu(
        ordinal, text.value.decode(), architecture, version.value // 1000, int(context.value or 0),
        library,
    )  # fmt: skip


@contextmanager
def _current(on: Gpu) -> Iterator[None]:
    """The GPU is this thread's for the time of a block."""
    code = on.library.cuCtxPushCurrent_v2(c_void_p(on.context))
    _check(on.library, code, "be taken by a thread")
    try:
        yield
    finally:
        on.library.cuCtxPopCurrent_v2(byref(c_void_p()))


def _freed(on: Gpu, by: str, what: int) -> None:
    with suppress(HoloctlError), _current(on):  # after an error in a kernel nothing is left to free
        getattr(on.library, by)(c_void_p(what))


def _check(library: ctypes.CDLL, code: int, task: str) -> None:
    if code == OUT_OF_MEMORY:
        free, total = c_size_t(), c_size_t()
        library.cuMemGetInfo_v2(byref(free), byref(total))
        raise HoloctlError(
            f"the GPU has {_bytes(free.value)} of {_bytes(total.value)} free, too little to {task}"
        )
    if code:
        lost = "; its memory is lost to this process: start anew" if code in IN_A_KERNEL else ""
        raise HoloctlError(f"the GPU could not {task}: {_said(library, code)}{lost}")


def _said(library: ctypes.CDLL, code: int) -> str:
    name, text = c_char_p(), c_char_p()
    library.cuGetErrorName(c_int(code), byref(name))
    library.cuGetErrorString(c_int(code), byref(text))
    return b": ".join(x.value for x in (name, text) if x.value).decode() or f"error {code}"


def _bytes(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"
