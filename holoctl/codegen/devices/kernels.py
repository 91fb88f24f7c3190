"""Kernels: C functions that are called for each robot, on the cores of a computer or on a GPU.

The text is C99 and C++: the same for both. An array is passed as the address of its first number
and a stride for each of robot, step and entry; a stride of zero gives all robots the same numbers.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from holoctl.codegen.c_text import filled

__all__ = ["AXES", "Device", "Kernel", "Module", "Program", "Strided", "program", "strided"]


class Strided(ctypes.Structure):
    """What a kernel gets of an array: ``table`` or ``marks`` of ``templates/kernels.c.in``."""

    _fields_: ClassVar = [
        ("at", ctypes.c_void_p), ("robot", ctypes.c_longlong), ("step", ctypes.c_longlong),
        ("entry", ctypes.c_longlong),
    ]  # fmt: skip


@dataclass(frozen=True)
class Kernel:
    """One kernel.

    Attributes
    ----------
    name : str
    parameters : tuple of (str, str)
        C type (``table`` of doubles, ``marks`` of bytes, ``double``, ``long long``) and name of
        each.
    body : str
        C statements for robot ``k``, a ``long long``.
    """

    name: str
    parameters: tuple[tuple[str, str], ...]
    body: str


@dataclass(frozen=True)
class Program:
    """What a device compiles.

    Attributes
    ----------
    source : str
    files : mapping of str to str
        Name to text of what it includes, beside the headers of C.
    """

    source: str
    files: Mapping[str, str] = field(default_factory=dict)


class Module(Protocol):
    """A program that is ready to run."""

    def run(self, kernel: str, count: int, *arguments: Any) -> None:
        """Run a kernel for robots 0 to count - 1, to the end.

        For each parameter a float, an int, an array of the device, or (array, names of its axes);
        these are some of robot, step and entry.
        """


class Device(Protocol):
    """Cores or a GPU, and its arrays."""

    def array(self, name: str, value: Any, dtype: Any = np.float64) -> Any:
        """What is given as an array of the device: without a copy if it is there, contiguous or
        not."""

    def empty(self, shape: Sequence[int], dtype: Any = np.float64) -> Any:
        """A new array; the entries of one robot are not neighbours where that is faster."""

    def numpy(self, array: Any) -> Any:
        """The same numbers for NumPy."""

    def build(self, program: Program) -> Module:
        """The program, from the cache or compiled now."""


def program(
    laws: str, kernels: Sequence[Kernel], files: Mapping[str, str] | None = None
) -> Program:
    """Kernels, and the C functions that they call."""
    made = "\n".join(map(_text, kernels))
    source = filled("kernels.c", {"laws": _apart(laws), "kernels": made})
    return Program(source, {x: _apart(text) for x, text in (files or {}).items()})


AXES = {
    1: ("robot",), 2: ("robot", "entry"), 3: ("robot", "step", "entry"),
    4: ("robot", "block", "step", "entry"),
}  # fmt: skip
"""What the axes of an array are, by their number, if nothing else is said. The steps of a block
follow those of the block before it, as they lie in a new array."""


def strided(address: int, strides: Sequence[int], axes: Sequence[str]) -> Strided:
    """An array by its first number and its strides, in numbers; 0 along axes that it has not."""
    by_axis = dict(zip(axes, strides, strict=True))
    return Strided(address, *(by_axis.get(x, 0) for x in ("robot", "step", "entry")))


def _text(kernel: Kernel) -> str:
    parameters = "".join(f", {kind} {name}" for kind, name in kernel.parameters)
    arguments = "".join(f", {name}" for _, name in kernel.parameters)
    return filled("kernel.c", {
        "name": kernel.name, "parameters": parameters, "arguments": arguments, "body": kernel.body,
    })  # fmt: skip


_FUNCTION = re.compile(r"^static (?!inline |__noinline__ )(?=[^;={}]*\)\s*\{)", re.M)


def _apart(text: str) -> str:
    """Each function for itself on a GPU, where a compiler would make one of all that a kernel
    calls: no more than a function is kept in registers."""
    return _FUNCTION.sub("static __noinline__ ", text)
