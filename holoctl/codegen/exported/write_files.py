"""Files of a C library: names that C can read, the stack they need, a folder to write them to."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from holoctl.base.checks import quoted
from holoctl.base.errors import HoloctlError, InputError

__all__ = [
    "MARK",
    "identifier",
    "stack_bytes",
    "version_number",
    "write_files",
]

MARK = "Written by holoctl"
"""Stands in the first line of every file that may be overwritten."""


def identifier(name: str) -> str:
    """A name as a part of C identifiers: lower case, with underscores for what C does not take.

    Raises
    ------
    InputError
        If nothing is left of it.
    """
    if not isinstance(name, str):
        raise InputError(f"name must be a string; got {quoted(name)}")
    found = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    if not found:
        raise InputError(f"name: nothing of {name!r} can stand in a C identifier; give name=")
    return found


def version_number(text: str) -> int:
    """A version as one number, for comparisons by the preprocessor: 0.1.2 is 102."""
    major, minor, patch = (int(x) for x in (*re.findall(r"\d+", text), "0", "0")[:3])
    return 10000 * major + 100 * minor + patch


_ENUM = re.compile(r"^enum \{(.*)\};$", re.MULTILINE)
_LOCAL = re.compile(r" +(?:for \()?(?:const |volatile )*(?:double|float|int) (\w.*)")
_MEMORY = re.compile(r" +\w+_memory \w+(?: = .*)?;")
_PROGRAM = re.compile(r" +(?:const )?program \w+ = .*;")
_FRAME = 96
"""Bytes of a call beside its values: the return address, kept registers, parameters, alignment."""


def stack_bytes(text: str, size: int = 8) -> int:
    """An upper bound of the stack, bytes, that an exported file of C needs, without libm.

    Every value of every function has a place of its own, of `size` bytes, as without
    optimisation, and every function is taken to be called by every other: what compilers put
    together is never more.
    """
    sizes = {
        name.strip(): int(value)
        for line in _ENUM.findall(text)
        for name, value in (x.split("=") for x in line.split(","))
    }
    total = 0
    for function in text.split("\n}\n"):
        total += _FRAME
        for line in function.splitlines():
            if _MEMORY.fullmatch(line):
                total += 8 * sizes["MEMORY"]
            if _PROGRAM.fullmatch(line):
                total += 9 * 8
            found = _LOCAL.match(line)
            if found is None:
                continue
            names = re.sub(r"\{.*?\}|\(.*?\)", "", found.group(1)).split(";")[0]
            for name in names.split(","):
                dimensions = re.findall(r"\[([^\]]+)\]", name.split("=")[0])
                factors = [x.strip() for d in dimensions for x in d.split("*")]
                total += size * math.prod(sizes[x] if x in sizes else int(x) for x in factors)
    return -(-total // 16) * 16


def write_files(folder: Path, files: Mapping[str, str]) -> tuple[Path, ...]:
    """Write all files, or none where one is in the way that holoctl did not write.

    Raises
    ------
    InputError
        If `folder` is a file, or a file in it lacks the mark.
    HoloctlError
        If the folder cannot be made, read or written.
    """
    paths = {folder / name: text for name, text in files.items()}
    try:
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is not a folder")
        _refuse(_not_ours(paths))
        for path in paths:  # all folders before the first file
            path.parent.mkdir(parents=True, exist_ok=True)
        for path, text in paths.items():
            path.write_text(text, encoding="ascii", newline="\n")
    except OSError as error:
        raise HoloctlError(f"the export cannot be written to {folder}: {error}") from error
    return tuple(paths)


def _not_ours(paths: Iterable[Path]) -> list[Path]:
    found = []
    for path in paths:
        if not path.exists():
            continue
        if not path.is_file():
            found.append(path)
            continue
        with path.open("rb") as file:
            if MARK.encode() not in file.readline(200):
                found.append(path)
    return found


def _refuse(paths: list[Path]) -> None:
    if paths:
        raise InputError(
            f"{', '.join(map(str, paths))}: there already, and without the mark {MARK!r} in the "
            "first line, so nothing is overwritten; move it away, or name another folder"
        )
