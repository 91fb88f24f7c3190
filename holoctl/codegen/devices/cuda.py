"""A GPU of NVIDIA's as a device: kernels by NVRTC, arrays in its memory."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import whole
from holoctl.codegen.devices.dlpack import (
    DeviceArray,
    empty_array,
    from_dlpack,
    on_gpu,
    uploaded,
)
from holoctl.codegen.devices.driver import Gpu, GpuModule, gpu, launch, loaded_module
from holoctl.codegen.devices.host import on_cores
from holoctl.codegen.devices.kernels import AXES, Program, Strided, strided
from holoctl.codegen.devices.nvrtc import machine_code_of

__all__ = ["Cuda", "on_cuda"]


@dataclass(frozen=True)
class Cuda:
    """The device; see `kernels.Device`.

    Attributes
    ----------
    gpu : Gpu
    """

    gpu: Gpu

    def array(self, name: str, value: Any, dtype: Any = np.float64) -> DeviceArray:
        if not on_gpu(value):
            return uploaded(self.gpu, on_cores(1).array(name, value, dtype))
        if isinstance(value, DeviceArray) and (value.gpu, value.dtype) == (self.gpu, dtype):
            return value
        return from_dlpack(name, value, self.gpu, dtype)

    def empty(self, shape: Sequence[int], dtype: Any = np.float64) -> DeviceArray:
        return empty_array(self.gpu, shape, dtype)

    def numpy(self, array: DeviceArray) -> NDArray[Any]:
        return array.numpy()

    def build(self, program: Program) -> _Loaded:
        code = machine_code_of(program, self.gpu.architecture, self.gpu.cuda)
        return _Loaded(loaded_module(self.gpu, code))


def on_cuda(ordinal: int = 0) -> Cuda:
    """A GPU of NVIDIA's.

    It needs NVIDIA's driver, and the compiler NVRTC: ``pip install 'holoctl[cuda]'``. The
    environment variables ``HOLOCTL_CUDA`` and ``HOLOCTL_NVRTC`` name other libraries of driver and
    compiler. Arrays of PyTorch, CuPy and JAX on this GPU are taken by DLPack, without a copy.

    Parameters
    ----------
    ordinal : int
        The number of the GPU, from 0, as the driver counts: that of PyTorch's ``cuda:0``.

    Raises
    ------
    InputError
        Where there is no driver, or no such GPU, with what to do about it.
    """
    return Cuda(gpu(whole("ordinal", ordinal, 0)))


@dataclass(frozen=True, eq=False)
class _Loaded:
    module: GpuModule

    def run(self, kernel: str, count: int, *arguments: Any) -> None:
        launch(self.module, kernel, count, list(map(_argument, arguments)))


def _argument(x: Any) -> Strided | ctypes.c_double | ctypes.c_longlong:
    if isinstance(x, float):
        return ctypes.c_double(x)
    if isinstance(x, int):
        return ctypes.c_longlong(x)
    array, axes = x if isinstance(x, tuple) else (x, AXES[len(x.shape)])
    return strided(array.address, array.strides, axes)
