"""Arrays on a GPU, and their exchange with other libraries by DLPack, without a copy.

DLPack: the Python array API standard, version 1.0, and the form without a version before it.
"""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Sequence
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holoctl.base.errors import InputError
from holoctl.codegen.devices.driver import Gpu, GpuMemory, copied_from, copied_to

__all__ = ["DeviceArray", "empty_array", "from_dlpack", "on_gpu", "uploaded"]

CPU, CUDA, MANAGED = 1, 2, 13
"""Devices in DLPack; managed memory is that of both."""

KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}
"""Numbers in DLPack; with the bits, "float64"."""

NAMES = (b"dltensor", b"used_dltensor"), (b"dltensor_versioned", b"used_dltensor_versioned")
"""Of a capsule, and after what is in it got an owner; without and with a version."""

DEFAULT_STREAM = 1


class DLTensor(ctypes.Structure):
    """DLPack's description of an array."""

    _fields_: ClassVar = [
        ("data", c_void_p), ("device", c_int32), ("ordinal", c_int32), ("ndim", c_int32),
        ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)), ("byte_offset", c_uint64),
    ]  # fmt: skip


_Deleter = ctypes.CFUNCTYPE(None, c_void_p)


class DLManaged(ctypes.Structure):
    """An array, and how to let it go."""

    _fields_: ClassVar = [("tensor", DLTensor), ("context", c_void_p), ("deleter", _Deleter)]


class DLVersioned(ctypes.Structure):
    """The same of DLPack 1.0."""

    _fields_: ClassVar = [
        ("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", _Deleter),
        ("flags", c_uint64), ("tensor", DLTensor),
    ]  # fmt: skip


@dataclass(frozen=True, eq=False)
class DeviceArray:
    """An array on a GPU: NumPy copies it, PyTorch, CuPy and JAX take it by ``from_dlpack``.

    Attributes
    ----------
    gpu : Gpu
    address : int
        Of the first number.
    shape, strides : tuple of int
        Strides in numbers, not in bytes.
    dtype : numpy.dtype
    owner : object
        Keeps the memory.

    Examples
    --------
    ``torch.from_dlpack(array)`` is the same memory; ``numpy.asarray(array)`` is a copy.
    """

    gpu: Gpu
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    owner: Any

    def numpy(self) -> NDArray[Any]:
        """A copy for NumPy."""
        steps = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        if min(self.shape, default=1) == 0:
            return np.empty(self.shape, self.dtype)
        before = -sum(x for x in steps if x < 0)
        count, size = before + sum(x for x in steps if x > 0) + 1, self.dtype.itemsize
        found = copied_from(self.gpu, self.address - before * size, count, self.dtype)
        view = np.lib.stride_tricks.as_strided(
            found[before:], self.shape, [s * size for s in self.strides]
        )
        return view if math.prod(self.shape) == count else view.copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("an array on a GPU is copied for NumPy")
        return np.asarray(self.numpy(), dtype)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.gpu.ordinal

    def __dlpack__(
        self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None, copy: bool | None = None,
    ) -> Any:  # fmt: skip
        """A capsule; every stream may read it at once, for kernels have come to their end."""
        if dl_device is not None and dl_device[0] == CPU and copy is not False:
            return self.numpy().__dlpack__()
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("an array of holoctl is given as it is, or copied to the CPU")
        more: dict[str, Any] = {} if max_version is None else {"max_version": max_version}
        capsule = np.asarray(_AsOfNumPy(self)).__dlpack__(**more)  # with C that ends it at any time
        tensor = _content(capsule)[0].tensor
        tensor.device, tensor.ordinal = self.__dlpack_device__()
        return capsule


class _AsOfNumPy:
    """What NumPy makes an array of without a look at the numbers, which it could not read."""

    def __init__(self, array: DeviceArray) -> None:
        self.array = array
        self.__array_interface__ = {
            "version": 3, "shape": array.shape, "typestr": array.dtype.str,
            "data": (array.address, False),
            "strides": tuple(s * array.dtype.itemsize for s in array.strides),
        }  # fmt: skip


def empty_array(on: Gpu, shape: Sequence[int], dtype: Any) -> DeviceArray:
    """A new array: equal entries of neighbouring robots are neighbours in memory."""
    n, kind = tuple(map(int, shape)), np.dtype(dtype)
    strides = tuple(n[0] * math.prod(n[i + 1 :]) if i else 1 for i in range(len(n)))
    memory = GpuMemory(on, math.prod(n) * kind.itemsize)
    return DeviceArray(on, memory.address, n, strides, kind, memory)


def uploaded(on: Gpu, x: NDArray[Any]) -> DeviceArray:
    """A copy of an array of NumPy; where all robots share numbers, they do so there too."""
    if not x.size:
        return empty_array(on, x.shape, x.dtype)
    once = x[tuple(slice(None) if s else slice(0, 1) for s in x.strides)]
    made = empty_array(on, once.shape, x.dtype)
    copied_to(on, made.address, np.ascontiguousarray(np.moveaxis(once, 0, -1) if x.ndim else once))
    strides = tuple(s if own else 0 for s, own in zip(made.strides, x.strides, strict=True))
    return DeviceArray(on, made.address, x.shape, strides, x.dtype, made.owner)


def on_gpu(value: Any) -> bool:
    """Whether it is an array on a GPU of NVIDIA's."""
    try:
        return value.__dlpack_device__()[0] in (CUDA, MANAGED)
    except Exception:  # nothing for DLPack
        return False


def from_dlpack(name: str, value: Any, on: Gpu, dtype: Any) -> DeviceArray:
    """An array of another library on the GPU, without a copy.

    Raises
    ------
    InputError
        If it is on another GPU or has another type of numbers; the argument is `name`.
    """
    ordinal = value.__dlpack_device__()[1]
    if ordinal != on.ordinal:
        raise InputError(f"{name} is on GPU {ordinal}, and this is GPU {on.ordinal}: move it there")
    try:
        try:
            capsule = value.__dlpack__(stream=DEFAULT_STREAM, max_version=(1, 0))
        except TypeError:  # a library older than DLPack 1.0
            capsule = value.__dlpack__(stream=DEFAULT_STREAM)
        managed, used = _content(capsule)
    except Exception as error:
        raise InputError(f"{name} cannot be exchanged by DLPack: {error}") from error
    if getattr(managed, "major", 1) != 1:
        raise InputError(f"{name} comes by DLPack {managed.major}; holoctl knows DLPack 1")
    x, wanted = managed.tensor, np.dtype(dtype)
    found = f"{KINDS.get(x.code, 'number')}{x.bits}" + (f" times {x.lanes}" if x.lanes > 1 else "")
    if found != wanted.name and (found, wanted.name) != ("bool8", "uint8"):
        raise InputError(f"{name} must be an array of {wanted.name} on the GPU; it is of {found}")
    shape = tuple(x.shape[: x.ndim])
    strides = tuple(x.strides[: x.ndim]) if x.strides else _compact(shape)
    _rename(capsule, used)  # what is in it is ours from here on
    return DeviceArray(
        on, int(x.data or 0) + x.byte_offset, shape, strides, wanted, _Borrowed(managed)
    )


class _Borrowed:
    """Memory of another library, which gets it back when this dies."""

    def __init__(self, managed: Any) -> None:
        if managed.deleter:
            done = weakref.finalize(self, managed.deleter, ctypes.addressof(managed))
            done.atexit = False


def _compact(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def _content(capsule: Any) -> tuple[Any, bytes]:
    """What is in a capsule, and the name that it has when this is taken."""
    versioned = bool(_is_valid(capsule, NAMES[1][0]))
    valid, used = NAMES[versioned]
    kind = DLVersioned if versioned else DLManaged
    return kind.from_address(_pointer(capsule, valid)), used


def _python(name: str, result: Any, *arguments: Any) -> Any:
    """A function of Python's C interface."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_is_valid = _python("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_pointer = _python("PyCapsule_GetPointer", c_void_p, ctypes.py_object, ctypes.c_char_p)
_rename = _python("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
