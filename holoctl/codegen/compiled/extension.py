"""C functions as functions of Python, by the C compiler of this computer.

An extension module is compiled for this computer, and kept by the hash of source, flags, compiler
and Python.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from holoctl.base.errors import HoloctlError, InputError
from holoctl.codegen.compiled.module_cache import (
    cache_folder,
    keep,
    kept,
    loaded,
    loaded_library,
    private_folder,
)

__all__ = ["built", "cache_folder", "library"]

FLAGS = (
    "-O2", "-fno-math-errno", "-fno-trapping-math", "-fno-tree-slp-vectorize", "-fPIC", "-w",
)  # fmt: skip
"""Without packing of straight-line code: it makes no law faster, and with it GCC 12.2 computes the
correction of a closed chain of eight joints wrong where it may use AVX-512."""


def built(source_of: Callable[[str], str], flags: Sequence[str] = ()) -> Any:
    """An extension module, of which `source_of` gives the C by its name: from the cache, or
    compiled now.

    Raises
    ------
    InputError
        Without a C compiler or the headers of Python, and with what to do about it.
    HoloctlError
        If the compiler fails, with its message; if others could change what is in the cache.
    """
    include = [f"-I{x}" for x in _headers()]
    suffix = sysconfig.get_config_var("EXT_SUFFIX") or ".so"
    more = f"{sys.version}\n{np.__version__}"
    return loaded(*_made(source_of, {}, (*flags, *include), suffix, more))


def library(source: str, files: Mapping[str, str]) -> ctypes.CDLL:
    """A shared library of a source that includes `files`: from the cache, or compiled now.

    Raises
    ------
    InputError, HoloctlError
        As `built`.
    """
    return loaded_library(*_made(lambda _: source, files, (), ".so", ""))


def _made(
    source_of: Callable[[str], str], files: Mapping[str, str], flags: Sequence[str], suffix: str,
    more: str,
) -> tuple[str, bytes, Path]:  # fmt: skip
    """Name, bytes and folder of what the compiler makes; kept by all that it depends on."""
    compiler = _compiler()
    all_flags = (*FLAGS, *_machine_flags(compiler), *flags)
    texts = [source_of("holoctl_law"), *(f"{x}\n{y}" for x, y in sorted(files.items()))]
    key = "\n".join([
        *texts, " ".join(all_flags), _identity(compiler, all_flags), more, sysconfig.get_platform(),
    ])  # fmt: skip
    module = f"holoctl_law_{hashlib.sha256(key.encode()).hexdigest()[:24]}"
    folder = private_folder(cache_folder())
    path = folder / f"{module}{suffix}"
    data = kept(path)
    if data is None:
        source = source_of(module)
        try:
            data = _compile(compiler, list(all_flags), source, files, folder)
            keep(path, data)
        except OSError as error:
            raise HoloctlError(
                f"the compiled law cannot be kept in {folder}: {error}; name another folder in "
                "the environment variable HOLOCTL_CACHE"
            ) from error
    return module, data, folder


def _compiler() -> tuple[str, ...]:
    """The command of a C compiler."""
    given = os.environ.get("CC")
    candidates = [given] if given else [sysconfig.get_config_var("CC"), "cc", "gcc", "clang"]
    for candidate in candidates:
        try:
            words = tuple(shlex.split(str(candidate or "")))
        except ValueError as error:
            raise InputError(f"CC={given!r} is no command: {error}") from None
        if words and shutil.which(words[0]):
            return words
    raise InputError(
        "hc.compile needs a C compiler, and none was found"
        + (f" (CC={given!r})" if given else "")
        + ": install gcc or clang (Debian, Ubuntu: apt install gcc; macOS: xcode-select "
        "--install), or name one in the environment variable CC"
    )


def _headers() -> list[str]:
    folder = sysconfig.get_path("include")
    if not (Path(folder) / "Python.h").exists():
        raise InputError(
            f"hc.compile needs the headers of Python, and there is no Python.h in {folder}: "
            "install them (Debian, Ubuntu: apt install python3-dev)"
        )
    return [folder, np.get_include()]


@cache
def _machine_flags(compiler: tuple[str, ...]) -> tuple[str, ...]:
    """The flags with which the compiler uses all instructions of this processor, if it has them."""
    done = _run([*compiler, "-march=native", "-E", "-x", "c", os.devnull])
    return ("-march=native",) if done.returncode == 0 else ()


@cache
def _identity(compiler: tuple[str, ...], flags: tuple[str, ...]) -> str:
    """The version of the compiler, and the processor that it compiles for."""
    return _run([*compiler, *flags, "-dM", "-E", "-x", "c", os.devnull]).stdout


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(command), capture_output=True, text=True, check=False)


def _compile(
    compiler: tuple[str, ...], flags: list[str], source: str, files: Mapping[str, str], folder: Path
) -> bytes:
    """The shared object of a source, made in a new folder of this user's alone in `folder`."""
    with tempfile.TemporaryDirectory(dir=folder) as private:
        c, made = Path(private) / "law.c", Path(private) / "law.so"
        for name, text in files.items():
            (Path(private) / name).write_text(text, encoding="utf-8")
        c.write_text(source, encoding="utf-8")
        shared = ["-bundle", "-undefined", "dynamic_lookup"]
        shared = shared if sys.platform == "darwin" else ["-shared"]
        done = _run([*compiler, *flags, *shared, str(c), "-o", str(made), "-lm"])
        if done.returncode:
            raise HoloctlError(
                f"{' '.join(compiler)} could not compile the law (exit code "
                f"{done.returncode}): {done.stderr.strip()[-2000:]}"
            )
        if not made.exists():
            raise HoloctlError(
                f"{' '.join(compiler)} ended without an error and made nothing; is it a C "
                "compiler? The environment variable CC names another"
            )
        return made.read_bytes()
