"""The devices by their names."""

from __future__ import annotations

from holoctl.base.checks import one_of, whole
from holoctl.codegen.devices.cuda import on_cuda
from holoctl.codegen.devices.host import on_cores
from holoctl.codegen.devices.kernels import Device

__all__ = ["DEVICES", "device_named"]

DEVICES = "cpu", "cuda"


def device_named(name: str, workers: int | None = None) -> Device:
    """All cores, or the first GPU.

    Raises
    ------
    InputError
        For another name; for a number of threads that is no whole number above zero; as `on_cuda`.
    """
    one_of("device", name, DEVICES)
    count = None if workers is None else whole("workers", workers, 1)
    return on_cuda() if name == "cuda" else on_cores(count)
