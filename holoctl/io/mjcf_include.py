"""Files that an MJCF includes: what is in them stands where their ``<include>`` stood.

Only files below the folder of the main file, or below one that the user names, are opened,
wherever links lead; how many, how deep and how large they are together is limited.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from holoctl.base.errors import LoadError
from holoctl.io.limits import (
    MOST_BYTES,
    MOST_DEEP_INCLUDES,
    MOST_ELEMENTS,
    MOST_INCLUDES,
    content,
)
from holoctl.io.xml import DEEPEST, Element, parsed

__all__ = ["include_files"]

_ROOTS = ("mujoco", "mujocoinclude")


def include_files(root: Element, folder: Path | None, below: Path | None = None) -> None:
    """Put the elements of all included files in the place of their ``<include>``.

    As in MuJoCo: a file is looked for in the folder of the main file, then in that of the file
    that includes it; its outermost element is dropped, and each file may be included once.

    Parameters
    ----------
    root : Element
        The main file; changed in place.
    folder : path or None
        Where it is; None if it is a text without a file.
    below : path, optional
        The folder that included files must be in. Default: `folder`.

    Raises
    ------
    LoadError
        At the ``<include>``: for a file that is not there, is not below the folder, stands twice or
        includes itself, and for more files, bytes, elements or levels than are read.
    """
    first = next((element for element in root.each() if element.tag == "include"), None)
    if first is None:
        return
    if folder is None:
        raise first.error(
            f"{first} is not read: this MJCF is a text, so there is no folder to look in"
        )
    waiting = _includes(root, folder, 1)
    top = Path(os.path.realpath(below or folder))
    seen = {os.path.realpath(root.file)}
    size, elements = 0, sum(1 for _ in root.each())
    while waiting:
        found = waiting.pop(0)
        path = _path(found, folder, top)
        if str(path) in seen:
            raise found.place.error(
                f"<include>: {_file(found)!r} is included twice, or includes itself; a file may "
                "be included once"
            )
        seen.add(str(path))
        if len(seen) > MOST_INCLUDES + 1:
            raise found.place.error(f"more than {MOST_INCLUDES} included files are not read")
        if found.depth > MOST_DEEP_INCLUDES:
            raise found.place.error(
                f"files that include each other more than {MOST_DEEP_INCLUDES} deep are not read"
            )
        inside, length = _read(found, path, MOST_BYTES - size)
        size += length
        elements += sum(1 for _ in inside.each())
        if elements > MOST_ELEMENTS:
            raise found.place.error(f"more than {MOST_ELEMENTS} elements are not read")
        nested = _includes(inside, path.parent, found.depth + 1)
        for one in nested:
            if one.parent is inside:
                one.parent = found.parent
        # By identity: elements that say the same are equal.
        i = next(i for i, x in enumerate(found.parent.children) if x is found.place)
        found.parent.children[i : i + 1] = inside.children
        waiting += nested
    _check_depth(root)


@dataclass
class _Include:
    """An ``<include>``, the element that it stands in, the folder of its file, its depth."""

    place: Element
    parent: Element
    folder: Path
    depth: int


def _includes(root: Element, folder: Path, depth: int) -> list[_Include]:
    """All ``<include>`` of one file, in its order."""
    return [
        _Include(child, element, folder, depth)
        for element in root.each()
        for child in element.children
        if child.tag == "include"
    ]


def _file(found: _Include) -> str:
    return found.place.attributes.get("file", "")


def _path(found: _Include, folder: Path, top: Path) -> Path:
    """The file that is meant, without links: below `top`, and there."""
    place, name = found.place, _file(found)
    others = [word for word in place.attributes if word != "file"]
    if not name or others or place.children:
        raise place.error(
            "<include> has one attribute, file=, and no elements"
            + (f"; got {others[0]!r}" if others else "")
        )
    if os.path.isabs(name) or "\\" in name or ":" in name or "\0" in name:
        raise place.error(
            f"<include>: {name[:200]!r} is not read: file= must be a path relative to the folder "
            "of the main file, with / between folders"
        )
    for start in dict.fromkeys((folder, found.folder)):
        path = Path(os.path.realpath(start / name))
        if os.path.lexists(start / name):
            if not path.is_relative_to(top):
                raise place.error(
                    f"<include>: {name[:200]!r} is not read: it leads out of the folder "
                    f"{str(top)!r}, and only files below it are opened; "
                    "hc.load(..., include_root=folder) chooses another one"
                )
            return path
    raise place.error(f"<include>: there is no file {name[:200]!r} in the folder of the main file")


def _read(found: _Include, path: Path, most: int) -> tuple[Element, int]:
    """The root of an included file, and how many bytes the file has."""
    try:
        data = content(path, max(most, 0))
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise found.place.error(f"<include>: {_file(found)!r} is not a text in UTF-8") from None
    except LoadError as error:
        raise found.place.error(f"<include>: {error}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise found.place.error(f"<include>: {_file(found)!r} cannot be read: {reason}") from None
    inside = parsed(text, str(path))
    if inside.tag not in _ROOTS:
        raise inside.error(
            f"an included file starts with <mujoco> or <mujocoinclude>; this one with "
            f"<{inside.tag[:60]}>"
        )
    if not inside.children:
        raise found.place.error(f"<include>: there is nothing in {_file(found)!r}")
    return inside, len(data)


def _check_depth(root: Element) -> None:
    level, depth = [root], 0
    while level:
        level, depth = [child for element in level for child in element.children], depth + 1
        if depth > DEEPEST and level:
            raise level[0].error(f"elements are nested more than {DEEPEST} deep")
