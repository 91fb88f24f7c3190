"""How much a reader takes: regular files of bounded size, bounded counts, bounded numbers.

A file may be hostile, or no file at all. What is beyond these limits is refused before it costs
time or memory, and the message names the limit.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Protocol

from holoctl.base.errors import LoadError

__all__ = [
    "DECIMAL",
    "FREE",
    "LARGEST",
    "MOST_ATTRIBUTES",
    "MOST_BYTES",
    "MOST_CLASSES",
    "MOST_CONSTRAINTS",
    "MOST_COORDINATES",
    "MOST_DEEP_INCLUDES",
    "MOST_ELEMENTS",
    "MOST_GEOMS",
    "MOST_INCLUDES",
    "MOST_KEYS",
    "MOST_MESH_BYTES",
    "MOST_PARTS",
    "MOST_REPLICATES",
    "MOST_SAMPLES",
    "MOST_SHEET_BYTES",
    "MOST_VALUES",
    "FilePlace",
    "check_count",
    "check_size",
    "content",
    "text_in",
]

MOST_BYTES = 16_000_000
"""Of a URDF, MJCF or SDF; of all that an MJCF includes together."""

MOST_INCLUDES = 200
"""Files that an MJCF includes."""

MOST_DEEP_INCLUDES = 20
"""Files that include each other."""

MOST_SHEET_BYTES = 1_000_000
"""Of the YAML file beside it."""

MOST_ELEMENTS = 100_000
"""Of a file in XML."""

MOST_ATTRIBUTES = 100
"""Of one element."""

MOST_VALUES = 20_000
"""Of a YAML file: texts, numbers, lists, mappings."""

MOST_PARTS = 3000
"""Links or bodies, joints, and frames or sites together: some of the work grows with the square."""

MOST_GEOMS = 20_000
"""Geoms of an MJCF."""

MOST_MESH_BYTES = 200_000_000
"""Of all meshes of a robot that is to be looked at, together."""

MOST_KEYS = 1000
"""Keyframes of an MJCF."""

MOST_REPLICATES = 100
"""Elements of an MJCF whose copies are written out."""

MOST_CLASSES = 1000
"""Default classes of an MJCF: each is a copy of the one it stands in."""

MOST_SAMPLES = 2000
"""Rows and columns of a height field of an MJCF, and of what else MuJoCo makes of a count."""

MOST_CONSTRAINTS = 500
"""Closures, couplings, equalities of a file."""

MOST_COORDINATES = 250
"""Pinocchio's workspace grows with the cube: with 250 coordinates it takes about a gigabyte, with
1000 no computer has the memory."""

FREE = 1e6
"""Bound of a joint that may turn as far as it likes, rad: finite, so that random configurations
can be drawn."""

LARGEST = 1e12
"""Lengths (m), masses (kg), moments of inertia (kg m^2), densities, ratios: no robot has larger
ones, and squares and products of them stay finite."""

DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
"""A decimal number; for every text it is decided in one pass."""


class FilePlace(Protocol):
    """Something in a file that may be at fault: errors name the file, the element, the line."""

    def error(self, message: str) -> LoadError:
        """An error at this place in the file."""
        ...


def check_count(place: FilePlace, count: int, most: int, what: str) -> None:
    """Refuse what there is too much of, and name the limit."""
    if count > most:
        raise place.error(f"more than {most} {what} are not read")


def check_size(place: FilePlace, coordinates: int) -> None:
    """Refuse a robot whose workspace would not fit into memory."""
    if coordinates > MOST_COORDINATES:
        raise place.error(
            f"there are more than {MOST_COORDINATES} coordinates, for which Pinocchio needs too "
            "much memory"
        )


def content(path: Path, most: int) -> bytes:
    """What is in a regular file of at most so many bytes.

    Nothing else is opened: a pipe would block, a device has no end.

    Raises
    ------
    LoadError
        For what is no regular file, or is larger.
    OSError, ValueError
        As the operating system, or Python, refuses the path.
    """
    _check_regular(path, os.stat(path).st_mode)
    with open(str(path), "rb", opener=_open_without_waiting) as file:
        _check_regular(path, os.fstat(file.fileno()).st_mode)
        found: bytes | None = file.read(most + 1)
    if found is None:  # some files of the system, such as logs of the kernel, have to be waited for
        raise LoadError(
            "the file cannot be read: it has nothing to give now, and readers do not wait",
            file=str(path),
        )
    if len(found) > most:
        raise LoadError(f"the file has more than {most} bytes, too many to read", file=str(path))
    return found


def text_in(path: Path, most: int) -> str:
    """The text of a regular file in UTF-8, of at most so many bytes.

    Raises
    ------
    LoadError
        For what is no such file, or cannot be read.
    FileNotFoundError
    """
    try:
        return content(path, most).decode("utf-8-sig")
    except FileNotFoundError:
        raise
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise LoadError("this is not a text in UTF-8", file=str(path), line=line) from None
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        reason = getattr(error, "strerror", None) or error
        raise LoadError(f"the file cannot be read: {reason}", file=str(path)) from None


def _open_without_waiting(path: str, flags: int) -> int:
    """Were the file exchanged for a pipe since it was looked at, opening it must not block."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def _check_regular(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        raise LoadError(
            f"the file cannot be read: this is {kind}, and only regular files are read; write it "
            "to a file first",
            file=str(path),
        )
