"""NVIDIA's compiler of CUDA C++, NVRTC: kernels as machine code of a GPU. It needs no GPU."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import re
from collections.abc import Iterator, Sequence
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from holoctl.base.errors import HoloctlError, InputError
from holoctl.codegen.compiled.module_cache import cache_folder, keep, kept, private_folder
from holoctl.codegen.devices.kernels import Program

__all__ = ["ThreadMemory", "machine_code_of", "thread_memory"]

OPTIONS = ("-default-device", "--ptxas-options=-v")
"""C functions without a mark are those of the GPU; the log tells their registers."""

NEWEST = 99
"""Major version of CUDA: any."""

HEADERS = {
    "float.h": """
#define FLT_RADIX 2
#define FLT_EVAL_METHOD 0
#define FLT_MANT_DIG 24
#define FLT_MAX_EXP 128
#define FLT_MIN_EXP (-125)
#define FLT_EPSILON 1.1920928955078125e-07f
#define FLT_MAX 3.4028234663852886e+38f
#define FLT_MIN 1.1754943508222875e-38f
#define DBL_DIG 15
#define DBL_MANT_DIG 53
#define DBL_MAX_EXP 1024
#define DBL_MIN_EXP (-1021)
#define DBL_EPSILON 2.2204460492503131e-16
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
""",
    "limits.h": """
#define CHAR_BIT 8
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 0xffffffffU
#define LONG_MAX ((long)(~0UL >> 1))
#define LONG_MIN (-LONG_MAX - 1L)
#define ULONG_MAX (~0UL)
#define LLONG_MAX 9223372036854775807LL
#define LLONG_MIN (-LLONG_MAX - 1LL)
#define ULLONG_MAX (~0ULL)
""",
    "math.h": """
#define HUGE_VAL __builtin_bit_cast(double, 0x7ff0000000000000ULL) /* in tables too */
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)
""",
    "string.h": "",
}
"""Headers of C, which NVRTC has none of; it knows the functions by itself."""


@dataclass(frozen=True)
class ThreadMemory:
    """What one thread needs for one function.

    Attributes
    ----------
    registers : int or None
        For a kernel, with all that it calls.
    stack : int
        For a kernel, bytes with all that it calls; the compiler tells none of other functions.
    spill_stores, spill_loads : int
        Bytes of the instructions that move registers to the stack and back.
    """

    registers: int | None
    stack: int
    spill_stores: int
    spill_loads: int


def machine_code_of(program: Program, architecture: int, newest: int = NEWEST) -> bytes:
    """A cubin for GPUs of an architecture, 90 for 9.0: from the cache, or compiled now. PTX where
    the compiler is older than the architecture.

    `newest` is the latest major version of CUDA that the driver knows.

    Raises
    ------
    InputError
        Without NVRTC, and with what to do about it.
    HoloctlError
        If it fails, with its message; if others could change what is in the cache.
    """
    compiler = _compiler(newest)
    options = (f"--gpu-architecture={_target(compiler, architecture)}", *OPTIONS)
    texts = [program.source, *(f"{x}\n{y}" for x, y in _headers(program))]
    key = "\n".join([*texts, *options, str(_version(compiler))])
    folder = private_folder(cache_folder())
    path = folder / f"holoctl_kernels_{hashlib.sha256(key.encode()).hexdigest()[:24]}.cubin"
    data = kept(path)
    if data is None:
        data, _ = _compile(compiler, program, options)
        try:
            keep(path, data)
        except OSError as error:
            raise HoloctlError(
                f"the compiled kernels cannot be kept in {folder}: {error}; name another folder "
                "in the environment variable HOLOCTL_CACHE"
            ) from error
    return data


def thread_memory(program: Program, architecture: int) -> dict[str, ThreadMemory]:
    """What each kernel, and each function that is not part of another, needs; compiled now.

    Raises
    ------
    InputError, HoloctlError
        As `machine_code_of`.
    """
    compiler = _compiler(NEWEST)
    options = (f"--gpu-architecture={_target(compiler, architecture)}", *OPTIONS)
    _, log = _compile(compiler, program, options)
    found: dict[str, ThreadMemory] = {}
    for part in log.split("Function properties for ")[1:]:
        frame = re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part
        )
        used = re.search(r"Used (\d+) registers", part)
        if frame:
            registers = int(used[1]) if used else None
            found[_name(part.split()[0])] = ThreadMemory(registers, *map(int, frame.groups()))
    return found


def _name(symbol: str) -> str:
    """The last name in a symbol of C++, such as ``_ZN5space8functionEd``."""
    name, rest = symbol, re.sub(r"^_Z[NL]*", "", symbol)
    while found := re.match(r"\d+", rest):
        end = found.end() + int(found[0])
        name, rest = rest[found.end() : end], rest[end:]
    return name


def _headers(program: Program) -> list[tuple[str, str]]:
    return sorted({**HEADERS, **program.files}.items())


def _compiler(newest: int) -> ctypes.CDLL:
    return _found(newest, os.environ.get("HOLOCTL_NVRTC"))


@cache
def _found(newest: int, given: str | None) -> ctypes.CDLL:
    refused = []
    for place in [given] if given else _places():
        try:
            found = ctypes.CDLL(place)
            if given or _version(found)[0] <= newest:
                return found
            refused.append(f"{place} is newer than the driver, which knows CUDA {newest}")
        except (OSError, AttributeError) as error:
            refused.append(f"{place}: {error}")
    raise InputError(
        "kernels for a GPU need NVIDIA's compiler NVRTC, and none was found"
        + (f" (HOLOCTL_NVRTC={given!r})" if given else "")
        + ": pip install 'holoctl[cuda]', or name its library in the environment variable "
        "HOLOCTL_NVRTC" + "".join(f"; {x}" for x in refused)
    )


def _places() -> Iterator[str]:
    """The libraries of the wheels, latest version first; then those of the system."""
    spec = importlib.util.find_spec("nvidia")
    folders = [Path(x) for x in (spec.submodule_search_locations or ())] if spec else []
    patterns = ("*/lib/libnvrtc.so.*", "*/bin/nvrtc64_*_0.dll", "*/bin/*/nvrtc64_*_0.dll")
    found = [x for folder in folders for y in patterns for x in folder.glob(y)]
    yield from map(str, sorted(found, key=lambda x: x.name, reverse=True))
    yield from ("nvrtc64_120_0.dll",) if os.name == "nt" else (
        "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
    )  # fmt: skip


def _version(compiler: ctypes.CDLL) -> tuple[int, int]:
    major, minor = c_int(), c_int()
    compiler.nvrtcVersion(byref(major), byref(minor))
    return major.value, minor.value


def _target(compiler: ctypes.CDLL, architecture: int) -> str:
    count = c_int()
    compiler.nvrtcGetNumSupportedArchs(byref(count))
    known = (c_int * count.value)()
    compiler.nvrtcGetSupportedArchs(known)
    below = [x for x in known if x <= architecture]
    if not below:
        major, minor = _version(compiler)
        raise HoloctlError(
            f"NVRTC {major}.{minor} compiles for GPUs of compute capability {min(known) / 10:.1f} "
            f"and later; this one has {architecture / 10:.1f}. Name an earlier NVRTC in the "
            "environment variable HOLOCTL_NVRTC"
        )
    best = max(below)  # its machine code runs on later ones of the same major version
    return f"{'sm' if best // 10 == architecture // 10 else 'compute'}_{best}"


def _compile(compiler: ctypes.CDLL, program: Program, options: Sequence[str]) -> tuple[bytes, str]:
    """The cubin, or PTX for a ``compute`` architecture, and the log."""
    handle, headers = c_void_p(), _headers(program)
    strings = c_char_p * len(headers)
    names, texts = (strings(*(x[i].encode() for x in headers)) for i in (0, 1))
    _check(compiler, compiler.nvrtcCreateProgram(
        byref(handle), program.source.encode(), b"kernels.cu", len(headers), texts, names
    ))  # fmt: skip
    try:
        given = (c_char_p * len(options))(*(x.encode() for x in options))
        code = compiler.nvrtcCompileProgram(handle, len(options), given)
        log = _text(compiler, handle, "ProgramLog").decode(errors="replace").rstrip("\0")
        if code:
            errors = [x for x in log.splitlines() if "error" in x]
            _check(compiler, code, "\n".join(errors[:10]) or log[-2000:])
        return _text(compiler, handle, "PTX" if "compute_" in options[0] else "CUBIN"), log
    finally:
        compiler.nvrtcDestroyProgram(byref(handle))


def _text(compiler: ctypes.CDLL, handle: c_void_p, what: str) -> bytes:
    size = c_size_t()
    _check(compiler, getattr(compiler, f"nvrtcGet{what}Size")(handle, byref(size)))
    text = ctypes.create_string_buffer(size.value)
    _check(compiler, getattr(compiler, f"nvrtcGet{what}")(handle, text))
    return text.raw


def _check(compiler: ctypes.CDLL, code: int, log: str = "") -> None:
    if code:
        compiler.nvrtcGetErrorString.restype = c_char_p
        name = compiler.nvrtcGetErrorString(code).decode()
        raise HoloctlError(f"NVRTC could not compile the kernels: {name}: {log}".rstrip(": "))
