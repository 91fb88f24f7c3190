"""Files of a C library: names that C can read, templates to fill, a folder to write them to.

The straight-line code of `c_source` is arranged for short waiting: see `source`.

The texts are in ``templates/``, with ``@{name}`` where something is filled in. What the names
stand for is decided in `exported`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from holoctl.base.errors import HoloctlError, InputError
from holoctl.codegen.c_source import c_function

__all__ = [
    "MARK",
    "array",
    "comment",
    "filled",
    "identifier",
    "number",
    "source",
    "stack_bytes",
    "write_files",
]

MARK = "Written by holoctl"
"""Stands in the first line of every file that may be overwritten."""

_TEMPLATES = Path(__file__).parent / "templates"


class _At(Template):
    """``@{name}``, for C and CMake use the dollar or nothing."""

    delimiter = "@"


def filled(name: str, values: Mapping[str, object]) -> str:
    """A template with its names filled in; `name` is that of the file without ``.in``."""
    text = (_TEMPLATES / f"{name}.in").read_text(encoding="utf-8")
    return _At(text).substitute(values)


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


# ---------------------------------------------------------------------- shared slow steps

_TURN = re.compile(r"  const double (x\d+) = (sin|cos)\((\S+)\);")
_LOAD = re.compile(r"  const double (x\d+) = (\w+\[\d+\]);")
_QUOTIENT = re.compile(r"  const double (x\d+) = (\S+) / (\S+);")
_AT_ONCE = 4
"""Angles are filled up with zeros to a multiple of this, for processors that take several."""


def source(functions: Iterable[Any], qualifier: str = "static", symbols: Any = None) -> str:
    """The C of several functions, without slow steps that can be shared.

    `qualifier` and `symbols` are those of `c_function`.
    """
    found = "\n".join(
        _shared(c_function(f, qualifier=qualifier, symbols=symbols)) for f in functions
    )
    return filled("sines_cosines.c", {}) + found if "sines_cosines" in found else found


def _shared(source: str) -> str:
    """Sines and cosines of all angles together; one division for all quotients by a value.

    A product is there three times as soon as a quotient, and most of a tick is waiting for what
    was computed before. Within each C function, for its values are its own.
    """
    return "\n".join(map(_shared_in, source.split("\n}\n")))


def _shared_in(function: str) -> str:
    if not function.strip():
        return ""
    given = function.splitlines()
    loads = {m.group(1): m.group(2) for m in map(_LOAD.fullmatch, given) if m}
    turned = dict.fromkeys(str(m.group(3)) for m in map(_TURN.fullmatch, given) if m)
    angles = [x for x in turned if x in loads or not x.startswith("x")]
    divisors = Counter(m.group(3) for m in map(_QUOTIENT.fullmatch, given) if m)
    lines, inverses = list[str](), set[str]()
    for old in given:
        line, turn, quotient = old, _TURN.fullmatch(old), _QUOTIENT.fullmatch(old)
        if turn is not None and turn.group(3) in angles:
            value, kind, angle = turn.groups()
            line = f"  const double {value} = {kind}_of[{angles.index(angle)}];"
        elif quotient is not None and divisors[quotient.group(3)] > 1:
            value, above, below = quotient.groups()
            inverse = f"per_{re.sub(r'[^a-z0-9]+', '_', below).strip('_')}"
            if below not in inverses:
                inverses.add(below)
                lines.append(f"  const double {inverse} = 1.0 / {below};")
            line = f"  const double {value} = {above} * {inverse};"
        lines.append(line)
        if angles and line.endswith("{"):
            lines += _together([loads.get(x, x) for x in angles])
    return "\n".join([*_without_unused(lines, angles), "}", ""])


def _without_unused(lines: list[str], angles: list[str]) -> Iterator[str]:
    """Angles are read from their array now; elsewhere they may be needed still, or not."""
    uses = Counter(re.findall(r"\bx\d+\b", "\n".join(lines)))
    for line in lines:
        load = _LOAD.fullmatch(line)
        if load is None or load.group(1) not in angles or uses[load.group(1)] > 1:
            yield line


def _together(angles: list[str]) -> list[str]:
    n = len(angles)
    if angles == [f"q[{i}]" for i in range(n)]:
        return [
            f"  double sin_of[{n}], cos_of[{n}];",
            f"  sines_cosines(q, {n}, sin_of, cos_of);",
        ]
    n = -(-len(angles) // _AT_ONCE) * _AT_ONCE
    filling = ["0.0"] * (n - len(angles))
    return [
        f"  const double angle[{n}] = {{{', '.join([*angles, *filling])}}};",
        f"  double sin_of[{n}], cos_of[{n}];",
        f"  sines_cosines(angle, {n}, sin_of, cos_of);",
    ]
