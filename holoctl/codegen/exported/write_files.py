"""Files of a C library: names that C can read, templates to fill, a folder to write them to.

The texts are in ``templates/``, with ``@{name}`` where something is filled in. What the names
stand for is told by the fields of the values in `contexts`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from holoctl.base.errors import HoloctlError, InputError

__all__ = [
    "MARK",
    "array",
    "comment",
    "filled",
    "identifier",
    "number",
    "stack_bytes",
    "write_files",
]

MARK = "Written by holoctl"
"""Stands in the first line of every file that may be overwritten."""

_TEMPLATES = Path(__file__).parent / "templates"


class _At(Template):
    """``@{name}``, for C and CMake use the dollar or nothing."""

    delimiter = "@"


def filled(name: str, shared: Any = None, own: Any = None) -> str:
    """A template with its names filled in; `name` is that of the file without ``.in``.

    Parameters
    ----------
    name : str
    shared, own : dataclass, optional
        Their fields are what the names of the template stand for: what several templates share,
        and what is of this one alone.

    Raises
    ------
    ValueError
        For a name of the template that is no field, a field that is in both, and one of its own
        that the template does not use.
    """
    template = _At((_TEMPLATES / f"{name}.in").read_text(encoding="utf-8"))
    fields = [vars(x) if x is not None else {} for x in (shared, own)]
    names = set(template.get_identifiers())
    for wrong, what in (
        (names - fields[0].keys() - fields[1].keys(), "without a field"),
        (fields[0].keys() & fields[1].keys(), "told twice"),
        (fields[1].keys() - names, "not in the template"),
    ):
        if wrong:
            raise ValueError(f"template {name}: {', '.join(sorted(wrong))}: {what}")
    return template.substitute(fields[0] | fields[1])


def identifier(name: str) -> str:
    """A name as a part of C identifiers: lower case, with underscores for what C does not take.

    Raises
    ------
    InputError
        If nothing is left of it.
    """
    if not isinstance(name, str):
        raise InputError(f"name must be a string; got {name!r}")
    found = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    if not found:
        raise InputError(f"name: nothing of {name!r} can stand in a C identifier; give name=")
    return found


def comment(text: str) -> str:
    """A text that may stand in a comment of C, CMake and Markdown, whatever is in it."""
    plain = "".join(x if " " <= x <= "~" else "?" for x in text)
    for mark in ("*/", "/*", "-->", "<!--", "??"):
        plain = plain.replace(mark, " ".join(mark))
    return plain.replace("\\", "/")


def number(x: float) -> str:
    """A finite double as C reads it back exactly."""
    text = f"{x:.17g}"
    shorter = repr(float(x))
    text = shorter if float(shorter) == x and len(shorter) <= len(text) else text
    return text if any(c in text for c in ".en") else f"{text}.0"


def array(name: str, values: ArrayLike, sizes: str) -> str:
    """``static const double name[sizes] = {...};``, a row in a line."""
    rows = np.atleast_2d(np.asarray(values, dtype=float))
    flat = np.asarray(values).ndim == 1
    lines = [", ".join(number(x) for x in row) for row in rows]
    body = lines[0] if flat else ",\n".join(f"  {{{line}}}" for line in lines)
    inside = f"{{{body}}}" if flat else f"{{\n{body}\n}}"
    return f"static const double {name}{sizes} = {inside};\n"


_ENUM = re.compile(r"^enum \{(.*)\};$", re.MULTILINE)
_LOCAL = re.compile(r" +(?:for \()?(?:const |volatile )*(?:double|int) (\w.*)")
_FRAME = 96
"""Bytes of a call beside its values: the return address, kept registers, parameters, alignment."""


def stack_bytes(text: str) -> int:
    """At most so many bytes of stack are needed by a file of C of ours, libm's aside.

    Every value of every function has a place of its own, 8 bytes, as without optimisation, and
    every function is taken to be called by every other: what compilers put together is never more.
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
            found = _LOCAL.match(line)
            if found is None:
                continue
            names = re.sub(r"\{.*?\}|\(.*?\)", "", found.group(1)).split(";")[0]
            for name in names.split(","):
                dimensions = re.findall(r"\[([^\]]+)\]", name.split("=")[0])
                factors = [x.strip() for d in dimensions for x in d.split("*")]
                total += 8 * math.prod(sizes[x] if x in sizes else int(x) for x in factors)
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
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in paths.items():
            path.write_text(text, encoding="ascii", newline="\n")
    except OSError as error:
        raise HoloctlError(f"the C library cannot be written to {folder}: {error}") from error
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
