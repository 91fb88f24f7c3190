"""An MJCF as one checked and complete text for MuJoCo's compiler.

The compiler opens any file, makes any number of copies, and accepts values that are not numbers. So
the file is read here first: document types are refused, included files are inserted (only those
below a folder), the number of elements with all copies and the sizes of numbers are bounded, and
deformable bodies are refused. Elements without influence on the motion are left out: appearance,
sensors, contacts. Then each element is written on its own line, by which errors and compiled parts
are traced back to the file.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import quoteattr

from holoctl.base.checks import suggestion
from holoctl.base.errors import LoadError
from holoctl.io import reader_limits
from holoctl.io.reader_limits import LARGEST, MOST_ELEMENTS, check_count, text_in
from holoctl.io.xml import DEEPEST, Element, check_root, parsed

__all__ = ["NO_MOTORS", "MjcfText", "mjcf_text", "sections"]

NO_MOTORS = {
    "muscle": "a muscle is not a motor; leave it out and pass its force as an effort",
    "adhesion": "adhesion is not a motor; leave it out and pass its force as an effort",
    "damper": "a damper is not a motor; leave it out and pass its force as an effort",
    "orientation": "it drives a site or several coordinates; give motors on joints",
    "plugin": "the effect of a plugin is unknown",
}
"""Actuators that are not motors, and what to do about them."""

_BENDS = "a deformable body is not a rigid body"
_REFUSED = {
    "flex": _BENDS, "flexcomp": _BENDS, "flexvert": _BENDS, "flexstrain": _BENDS,
    "plugin": NO_MOTORS["plugin"], "distance": "use hc.Rod on the mechanism",
}  # fmt: skip
_HARMLESS_PLUGINS = ("extension", "geom", "mesh", "actuator")
"""Elements in which a plugin adds no force to the equation of motion."""

_LEFT_OUT = {
    "mujoco": "visual statistic size sensor contact custom keyframe",
    "asset": "texture skin material",
    "default": "texture material pair camera light",
    "deformable": "skin",
    "compiler": "lengthrange",
    "material": "layer",
    "worldbody": "camera light",
    "body": "camera light",
    "frame": "camera light",
    "replicate": "camera light",
}
"""Element, and the elements in it that have no influence on the motion."""

_WITHOUT = {
    "compiler": "meshdir assetdir texturedir strippath convexhull exactmeshinertia",
    "option": "apirate mpr_iterations mpr_tolerance",
    "flag": "passive",
    "material": "texture",
}
"""Element, and its attributes that are not passed to MuJoCo, or that only former versions had."""

_OF_ACTUATORS = (
    "name class gear armature damping joint jointinparent tendon site refsite slidersite cranksite "
    "cranklength body"
)
_TARGETS = "joint jointinparent tendon site cranksite body"
_OF_REPLICATES = "count offset euler sep childclass"
_NUMBERS = (
    "pos quat axisangle xyaxes zaxis euler axis ref armature damping frictionloss stiffness "
    "springref springdamper springlength springyield size fromto mass density diaginertia "
    "fullinertia anchor relpose torquescale polycoef gear coef offset gravity boundmass viscosity "
    "boundinertia settotalmass scale refpos refquat cranklength gainprm vertex qpos gravcomp"
)
_COUNTS = "nrow ncol params nsample actdim"
_NOT_NEGATIVE = "mass density diaginertia armature frictionloss boundmass boundinertia"
_RANGES = "range actuatorfrcrange ctrlrange forcerange"
"""Limits, which may be arbitrarily wide: other large numbers are mistakes, or an attack."""

_SMALLEST = 1e-15  # m, the size of a geom: volumes and their reciprocals stay in range


@dataclass
class MjcfText:
    """The text for MuJoCo, and the place of its lines in the files.

    Attributes
    ----------
    root : Element
        The whole file, with included files.
    text : str
        The elements that influence the motion, one on each line.
    lines : list of Element
        The element of each line; lines of attached models follow those of the file.
    models : dict of str to str
        The texts of attached models, each after as many empty lines as there are lines before it.
    """

    root: Element
    text: str = ""
    lines: list[Element] = field(default_factory=list)
    models: dict[str, str] = field(default_factory=dict)

    def at(self, words: str) -> Element:
        """The element of the line that a message of MuJoCo names; else the root."""
        found = re.search(r"line (\d+)", words)
        i = int(found[1]) - 1 if found else -1
        return self.lines[i] if 0 <= i < len(self.lines) else self.root

    def error(self, error: Exception, schema: str) -> LoadError:
        """An error of MuJoCo's compiler, with its place in the file; `schema` has all names of
        MJCF."""
        cut = r"(XML )?Error: |\bElement (name )?'.*|engine error: | line \d+$"
        message = re.sub(cut, "", str(error))
        message, place = " ".join(message.split())[:300], self.at(str(error))
        found = re.search(r"(?:unknown|unrecognized).*'([^']+)'|'([^']+)' not found", message)
        if "Schema" in message and "unrecognized" in message:
            word = found[1] if found else place.tag
            message += suggestion(word, set(schema.split()) - {word})
        elif found:
            names = (element.attributes.get("name", "") for element in self.root.each())
            message += suggestion(found[1] or found[2], set(names))
        what = "" if place is self.root else f"{place}: "
        return place.error(f"{what}MuJoCo's compiler refuses this: {message}")


def mjcf_text(
    text: str, file: str, folder: Path | None, include_root: Path | None, *, looks: bool = False
) -> MjcfText:
    """The checked text of an MJCF.

    Parameters
    ----------
    text, file : str
        The text, and the name of its file for messages.
    folder : path or None
        Its folder, in which files are searched; None for a text without a file.
    include_root : path or None
        The folder that included files must be in. Default: `folder`.
    looks : bool
        Keep materials.

    Raises
    ------
    LoadError
        With the line: for text that is not an MJCF, for files that must not be opened, for more
        elements than allowed, for values that are not numbers, and for bodies that are not rigid.
    """
    root = parsed(text, file)
    check_root(root, "mujoco", "an MJCF")
    files = _Files(include_root or folder, elements=sum(1 for _ in root.each()))
    files.include(root, folder)
    found = MjcfText(root)
    found.text = files.written(root, folder, found, looks)
    return found


def sections(root: Element, tag: str) -> list[Element]:
    """The elements in all sections of one kind: a file may have several."""
    return [child for section in root.children if section.tag == tag for child in section.children]


# -------------------------------------------------------------------------------- other files


@dataclass
class _Files:
    """Files that an MJCF includes or attaches: each below a folder, with a bounded total size."""

    below: Path | None
    files: int = 0
    size: int = 0
    elements: int = 0

    def include(self, root: Element, main: Path | None, depth: int = 1) -> None:
        """Replace every ``<include>`` by the elements of the included file.

        As in MuJoCo: a file is searched in the folder of the `main` file, then in that of the file
        that includes it; its outermost element is dropped, and each may be included once.
        """
        seen = {os.path.realpath(root.file)}
        waiting = [(*found, main, depth) for found in _includes(root)]
        while waiting:
            parent, place, own, level = waiting.pop(0)
            inside, path = self.opened(place, (main, own), level, ("mujoco", "mujocoinclude"))
            if str(path) in seen:
                raise place.error(
                    f"<include>: {place.attributes['file']!r} is included twice, or includes "
                    "itself; a file may be included once"
                )
            seen.add(str(path))
            nested = [
                (parent if above is inside else above, other, path.parent, level + 1)
                for above, other in _includes(inside)
            ]
            # By identity, because elements with equal content are equal.
            i = next(i for i, x in enumerate(parent.children) if x is place)
            parent.children[i : i + 1] = inside.children
            waiting += nested
        _check_depth(root)

    def opened(
        self, place: Element, folders: tuple[Path | None, ...], depth: int, roots: tuple[str, ...]
    ) -> tuple[Element, Path]:
        """The root of the file that an element names, and its path without links."""
        path, name = self._path(place, folders), place.attributes["file"]
        self.files += 1
        check_count(place, self.files, reader_limits.MOST_INCLUDES, "included files")
        if depth > reader_limits.MOST_DEEP_INCLUDES:
            raise place.error(
                "files that include each other more than "
                f"{reader_limits.MOST_DEEP_INCLUDES} deep are not read"
            )
        try:
            text = text_in(path, max(reader_limits.MOST_BYTES - self.size, 0))
        except (LoadError, FileNotFoundError) as error:
            raise place.error(f"<{place.tag}>: {name[:200]!r}: {error}") from None
        inside = parsed(text, str(path))
        if inside.tag not in roots:
            raise inside.error(
                f"an included file starts with <mujoco> or <mujocoinclude>; this one with "
                f"<{inside.tag[:60]}>"
            )
        if not inside.children:
            raise place.error(f"<{place.tag}>: {name!r} is empty")
        self.size += len(text.encode())
        self.elements += sum(1 for _ in inside.each())
        check_count(place, self.elements, MOST_ELEMENTS, "elements")
        return inside, path

    def _path(self, place: Element, folders: tuple[Path | None, ...]) -> Path:
        """The path of a file without symbolic links: below the folder, and existing."""
        name, tag = place.attributes.get("file", ""), place.tag
        others = [word for word in place.attributes if word != "file"] if tag == "include" else []
        if not name or others or (tag == "include" and place.children):
            raise place.error(
                f"<{tag}> has one attribute, file=, and no elements"
                + (f"; got {others[0]!r}" if others else "")
            )
        if self.below is None or None in folders:
            raise place.error(
                f"{place} is not read: this MJCF is a text without a folder in which to search"
            )
        if os.path.isabs(name) or "\\" in name or ":" in name or "\0" in name:
            raise place.error(
                f"<{tag}>: {name[:200]!r} is not read: file= must be a path relative to the folder "
                "of the main file, with / between folders"
            )
        top = Path(os.path.realpath(self.below))
        for start in filter(None, dict.fromkeys(folders)):
            path = Path(os.path.realpath(start / name))
            if os.path.lexists(start / name):
                if not path.is_relative_to(top):
                    raise place.error(
                        f"<{tag}>: {name[:200]!r} is not read: it leads out of the folder "
                        f"{str(top)!r}, and only files below it are opened; "
                        "hc.load(..., include_root=folder) chooses another one"
                    )
                return path
        raise place.error(
            f"<{tag}>: there is no file {name[:200]!r} in the folder of the main file"
        )

    # ------------------------------------------------------------------------- as one text

    def written(
        self, root: Element, folder: Path | None, found: MjcfText, looks: bool, depth: int = 1
    ) -> str:
        """The text of a file without includes; the texts of attached models are added to
        `found`."""
        attached = {}
        for model in (e for e in sections(root, "asset") if e.tag == "model"):
            inside, path = self.opened(model, (folder,), depth, ("mujoco",))
            self.include(inside, path.parent, depth)
            name = model.attributes.get("name") or inside.attributes.get("model", "")
            text = self.written(inside, path.parent, found, looks, depth + 1)
            model.attributes = {"name": name, "file": f"{len(found.models)}.xml"}
            found.models[model.attributes["file"]] = text
            attached[name] = sum(1 for _ in inside.each())
        _check_counts(root, attached)
        return _written(root, folder, found.lines, looks)


def _includes(root: Element) -> Iterator[tuple[Element, Element]]:
    """All ``<include>`` of one file, in order, each with its parent element first."""
    return (
        (element, child)
        for element in root.each()
        for child in element.children
        if child.tag == "include"
    )


def _check_depth(root: Element) -> None:
    level, depth = [root], 0
    while level:
        level, depth = [child for element in level for child in element.children], depth + 1
        if depth > DEEPEST and level:
            raise level[0].error(f"elements are nested more than {DEEPEST} deep")


# --------------------------------------------------------------------------------- checks


def _check_counts(root: Element, attached: dict[str, int]) -> None:
    """Raise an error for a file that would take too long, or too much memory, with all its copies;
    joints are limited by their coordinates. `attached`: the numbers of elements of each model that
    may be attached."""
    counts: Counter[str] = Counter()
    waiting, most = [(root, 1)], 1
    while waiting:
        element, times = waiting.pop()
        counts[element.tag] += times
        model = element.attributes.get("model", "") if element.tag == "attach" else ""
        counts[""] += times * (1 + attached.get(model, 0))
        check_count(element, counts[""], MOST_ELEMENTS, "elements, all copies written out,")
        if element.tag == "replicate":
            most = max(most, times := times * _copies(element))
        waiting += [(child, times) for child in reversed(element.children)]
    naming = {tag: len(sections(root, tag)) for tag in ("equality", "tendon", "actuator")}
    for count, largest, what in (
        (
            counts["body"] + counts["frame"] + counts["site"],
            reader_limits.MOST_PARTS,
            "bodies, frames and sites",
        ),
        (counts["geom"], reader_limits.MOST_GEOMS, "geoms"),
        (counts["key"], reader_limits.MOST_KEYS, "keys"),
        (counts["replicate"], reader_limits.MOST_REPLICATES, "<replicate>"),
        (counts["default"] - 1, reader_limits.MOST_CLASSES, "default classes"),
        (naming["equality"], reader_limits.MOST_CONSTRAINTS, "equalities"),
        (naming["tendon"], reader_limits.MOST_CONSTRAINTS, "tendons"),
        (naming["actuator"], reader_limits.MOST_PARTS, "actuators"),
        (most * sum(naming.values()), MOST_ELEMENTS, "elements, all copies written out,"),
    ):
        check_count(root, count, largest, what)


def _copies(element: Element) -> int:
    count, valid = element.attributes.get("count", "1"), _OF_REPLICATES.split()
    if not re.fullmatch(" *0*[1-9][0-9]* *", count):
        raise element.error(
            f"{element}: count must be a whole number above zero; got {count[:60]!r}"
        )
    for name in set(element.attributes) - set(valid):  # MuJoCo ignores these silently
        raise element.error(
            f"{element} has no attribute {name!r}{suggestion(name, valid)}; valid: {_OF_REPLICATES}"
        )
    return int(count[:12])


def _check(element: Element, parent: str) -> None:
    """Raise an error for bodies that are not rigid, and for values that MuJoCo would accept
    silently."""
    if element.tag in _REFUSED and not (element.tag == "plugin" and parent in _HARMLESS_PLUGINS):
        raise element.error(f"{element} in <{parent}> is not read: {_REFUSED[element.tag]}")
    given = {} if element.tag == "flag" else element.attributes
    for name in (x for x in given if x in _IS_NUMBERS):  # in the order of the file
        words, shown = given[name].split(), f"got {given[name][:60]!r}"
        if name in _RANGES.split():
            fine = not any("nan" in word.lower() for word in words)
        else:
            decimal = reader_limits.DECIMAL
            fine = all(decimal.fullmatch(x) and abs(float(x)) <= LARGEST for x in words)
        if not fine:
            raise element.error(
                f"{element}: {name} must be finite numbers, of no more than {LARGEST:g} in size; "
                f"{shown}"
            )
        most = reader_limits.MOST_SAMPLES
        if name in _COUNTS.split() and any(abs(float(x)) > most for x in words):
            raise element.error(f"{element}: {name} of more than {most} are not read; {shown}")
        least = min(map(float, words), default=0.0) if name in _NOT_NEGATIVE.split() else 0.0
        if least < 0.0:
            raise element.error(f"{element}: {name} must not be negative; got {least:g}")
        if name == "size" and any(0.0 < abs(float(x)) < _SMALLEST for x in words):
            raise element.error(f"{element}: sizes must be of at least {_SMALLEST:g} m; {shown}")
    if parent == "actuator" and len(given.keys() & _TARGETS.split()) > 1:
        raise element.error(
            f"{element}: an actuator drives one joint or tendon: give joint= or tendon="
        )


_IS_NUMBERS = {*_NUMBERS.split(), *_RANGES.split(), *_COUNTS.split()}


# -------------------------------------------------------------------------------- as one text


def _written(root: Element, folder: Path | None, lines: list[Element], looks: bool) -> str:
    """Each element on a line, after empty lines for those that `lines` has already."""
    rows, waiting, directory = [""] * len(lines), [(root, "", False)], _directory(root, folder)
    shapes = (e for e in root.each() if e.tag in ("geom", "mesh"))
    plugins = any(child.tag == "plugin" for shape in shapes for child in shape.children)
    while waiting:
        element, parent, ends = waiting.pop()
        if ends:
            rows[-1] += f"</{element.tag}>"
            continue
        _check(element, parent)
        left_out = _LEFT_OUT.get(element.tag, "").split()
        if element is root and not plugins:
            left_out.append("extension")
        kept = [
            child for child in element.children
            if child.tag not in left_out or (looks and child.tag == "material")
        ]  # fmt: skip
        tag, attributes = _said(element, parent, directory, looks)
        if parent == "actuator":
            kept = []
        said = "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items())
        lines.append(element)
        rows.append(f"<{tag}{said}" + (">" if kept else "/>"))
        if kept:
            waiting.append((element, parent, True))
            waiting += [(child, element.tag, False) for child in reversed(kept)]
    return "\n".join(rows)


def _said(
    element: Element, parent: str, directory: tuple[Path, bool], looks: bool
) -> tuple[str, dict[str, str]]:
    """The tag and attributes that are passed to MuJoCo."""
    tag, given = element.tag, element.attributes
    if parent == "actuator" and tag in NO_MOTORS:  # only its rotor, damping and names are kept
        return "general", {k: v for k, v in given.items() if k in _OF_ACTUATORS.split()}
    without = _WITHOUT.get(tag, "" if looks else "material").split()
    attributes = {k: v for k, v in given.items() if k not in without}
    if tag == "flag" and "passive" in given:
        of_old = dict.fromkeys(("spring", "damper"), given["passive"])
        attributes |= {k: v for k, v in of_old.items() if attributes.get(k) != "disable"}
    if parent == "asset" and tag in ("mesh", "hfield") and "file" in given:
        name, (start, stripped) = given["file"].replace("\\", "/"), directory
        attributes.setdefault("name", Path(name).stem)
        attributes["file"] = str(start / (Path(name).name if stripped else name))
    return tag, attributes


def _directory(root: Element, folder: Path | None) -> tuple[Path, bool]:
    """The absolute folder of meshes, so that MuJoCo searches nowhere else; and whether the folders
    in mesh names are stripped."""
    directory, stripped = "", "false"
    for given in (e.attributes for e in root.children if e.tag == "compiler"):
        directory = given.get("meshdir", given.get("assetdir", directory))
        stripped = given.get("strippath", stripped)
    return Path(os.path.abspath(folder or "")) / directory, stripped == "true"
