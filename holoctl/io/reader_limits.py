"""Limits of readers: regular files of bounded size, bounded counts, bounded numbers.

A file may be hostile, or not a regular file. Anything beyond these limits is refused before it
costs time or memory, and the message names the limit.
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
"""Size of a URDF, MJCF or SDF; for an MJCF together with its included files."""

MOST_INCLUDES = 200
"""Files that an MJCF includes."""

MOST_DEEP_INCLUDES = 20
"""Depth of files that include each other."""

MOST_SHEET_BYTES = 1_000_000
"""Size of the YAML file."""

MOST_ELEMENTS = 100_000
"""Elements of an XML file."""

MOST_ATTRIBUTES = 100
"""Attributes of one XML element."""

MOST_VALUES = 20_000
"""Values of a YAML file: texts, numbers, lists, mappings."""

MOST_PARTS = 3000
"""Links or bodies, joints, and frames or sites together: the time grows partly with the square."""

MOST_GEOMS = 20_000
"""Geoms of an MJCF."""

MOST_MESH_BYTES = 200_000_000
"""Total size of the meshes of a robot that is shown."""

MOST_KEYS = 1000
"""Keyframes of an MJCF."""

MOST_REPLICATES = 100
"""Elements of an MJCF whose copies are written out."""

MOST_CLASSES = 1000
"""Default classes of an MJCF: each is a copy of its parent class."""

MOST_SAMPLES = 2000
"""Rows and columns of a height field of an MJCF, and other counts from which MuJoCo generates
elements."""

MOST_CONSTRAINTS = 500
"""Closures, couplings, equalities of a file."""

MOST_COORDINATES = 250
"""Pinocchio's workspace grows with the cube: with 250 coordinates it takes about a gigabyte, with
1000 no computer has the memory."""

FREE = 1e6
"""Position bound of a joint without limits, rad: finite, so that random configurations can be
drawn."""

LARGEST = 1e12
"""Lengths (m), masses (kg), moments of inertia (kg m^2), densities, ratios: no robot has larger
ones, and squares and products of them stay finite."""

DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
"""A decimal number; the expression takes linear time for every text."""


class FilePlace(Protocol):
    """A place in a file: errors name the file, the element and the line."""

    def error(self, message: str) -> LoadError:
        """An error at this place in the file."""
        ...


def check_count(place: FilePlace, count: int, most: int, what: str) -> None:
    """Raise an error, which names the limit, for too many objects."""
    if count > most:
        raise place.error(f"more than {most} {what} are not read")


def check_size(place: FilePlace, coordinates: int) -> None:
    """Raise an error for a robot whose workspace would not fit into memory."""
    if coordinates > MOST_COORDINATES:
        raise place.error(
            f"there are more than {MOST_COORDINATES} coordinates, for which Pinocchio needs too "
            "much memory"
        )


def content(path: Path, most: int) -> bytes:
    """The content of a regular file of at most `most` bytes.

    Other files are not opened: a pipe would block, a device has no end.

    Raises
    ------
    LoadError
        For a file that is not regular, or is larger.
    OSError, ValueError
        If the operating system, or Python, refuses the path.
    """
    _check_regular(path, os.stat(path).st_mode)
    with open(str(path), "rb", opener=_open_without_waiting) as file:
        _check_regular(path, os.fstat(file.fileno()).st_mode)
        found: bytes | None = file.read(most + 1)
    if found is None:  # some system files, such as kernel logs, block until there is data
        raise LoadError(
            "the file cannot be read: it has no data now, and readers do not wait",
            file=str(path),
        )
    if len(found) > most:
        raise LoadError(f"the file has more than {most} bytes, too many to read", file=str(path))
    return found


def text_in(path: Path, most: int) -> str:
    """The text of a regular file in UTF-8, of at most `most` bytes.

    Raises
    ------
    LoadError
        For another file, or one that cannot be read.
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
    """An opener that does not block, even if the file has been replaced by a pipe since it was
    checked."""
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
