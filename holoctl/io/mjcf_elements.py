"""The values that elements of MJCF hold: settings of the compiler, default classes, poses.

`Item` is an element with the values of its default class, in the units of the file.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector, listing, suggestion
from holoctl.base.errors import LoadError
from holoctl.io import rotations
from holoctl.io.limits import LARGEST, MOST_CLASSES, check_count
from holoctl.io.mjcf_words import ATTRIBUTES, MOTORS, NO_MOTORS
from holoctl.io.rotations import turn, z_to
from holoctl.io.xml import Element, decimals

__all__ = [
    "Compiler",
    "Defaults",
    "Item",
    "compiler_of",
    "flattened",
    "named",
    "quaternion",
    "sections",
    "unit",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Compiler:
    """Settings of ``<compiler>`` that change what the file means."""

    angle: float = math.pi / 180.0  # rad in a unit of angle
    autolimits: bool = True
    balanceinertia: bool = False
    boundinertia: float = 0.0
    boundmass: float = 0.0
    eulerseq: str = "xyz"
    inertiafromgeom: str = "auto"
    inertiagrouprange: tuple[float, ...] = (0.0, 5.0)
    settotalmass: float = -1.0


_ANY_SIZE = ("range", "actuatorfrcrange", "ctrlrange", "forcerange")
"""Limits, which may be as wide as they like: what else is large is a slip, or an attack."""


@dataclass(frozen=True)
class Item:
    """An element with the attributes of its default class, as numbers, words and poses."""

    element: Element
    attributes: Mapping[str, str]
    compiler: Compiler

    def error(self, message: str) -> LoadError:
        """An error at this place in the file."""
        return self.element.error(f"{self.element}: {message}")

    def __contains__(self, name: str) -> bool:
        return name in self.attributes

    def text(self, name: str, default: str = "") -> str:
        """An attribute as a text; empty where there is neither it nor a default."""
        return self.attributes.get(name, default)

    def word(self, name: str, valid: tuple[str, ...], default: str) -> str:
        """An attribute that is one of some words."""
        value = self.attributes.get(name, default)
        if value not in valid:
            raise self.error(
                f"{name} must be one of {', '.join(valid)}; got {value[:60]!r}"
                f"{suggestion(value, valid)}"
            )
        return value

    def true(self, name: str, default: bool = False) -> bool:
        """An attribute that is "true" or "false"."""
        return self.word(name, ("false", "true"), "true" if default else "false") == "true"

    def numbers(
        self, name: str, default: tuple[float, ...], least: int | None = None
    ) -> tuple[float, ...]:
        """As many finite numbers as the default has; or `least` or more, the rest by default."""
        if name not in self.attributes:
            return default
        n = len(default)
        least = n if least is None else least
        found = decimals(self.attributes[name], range(least, n + 1))
        most = sys.float_info.max if name in _ANY_SIZE else LARGEST
        if found is not None and max(map(abs, found)) > most:
            raise self.error(
                f"{name}: numbers of more than {most:g} in size are not read; "
                f"got {self.attributes[name][:60]!r}"
            )
        if found is None:
            many = f"{n}" if least == n else f"{least} to {n}"
            raise self.error(
                f"{name} must be {many} finite number{'s' if n > 1 else ''}; "
                f"got {self.attributes[name][:60]!r}"
            )
        return found + default[len(found) :]

    def number(self, name: str, default: float) -> float:
        """An attribute as a finite number."""
        return self.numbers(name, (default,))[0]

    def size(self, name: str, default: float) -> float:
        """An attribute as a finite number that is not negative."""
        x = self.number(name, default)
        if x < 0.0:
            raise self.error(f"{name} must not be negative; got {x}")
        return x

    def pose(self) -> pin.SE3:
        """Position and orientation of the element in what it stands in."""
        return pin.SE3(self._rotation(), np.array(self.numbers("pos", (0.0, 0.0, 0.0))))

    def _rotation(self) -> Array:
        given = [name for name in _ROTATIONS if name in self.attributes]
        if len(given) > 1:
            raise self.error(f"give one of {' and '.join(given)}, not both")
        if not given:
            return np.eye(3)
        read = _ROTATIONS[given[0]]
        return read(self, given[0])


def unit(item: Item, name: str, x: Vector) -> Vector:
    norm = float(np.linalg.norm(x))
    if not 1e-10 < norm < 1e10:
        raise item.error(f"{name}: {_words(x)} has no direction")
    return x / norm


def _words(x: Vector) -> str:
    """Numbers as they stand in a file."""
    return "'" + " ".join(f"{number:g}" for number in x) + "'"


def _quat(item: Item, name: str) -> Array:
    return quaternion(item, name, np.array(item.numbers(name, (1.0, 0.0, 0.0, 0.0))))


def quaternion(item: Item, name: str, wxyz: Vector) -> Array:
    """The rotation of MuJoCo's quaternion w x y z, which is normalised."""
    w, x, y, z = unit(item, name, wxyz)
    return rotations.quaternion(w, x, y, z)


def _axisangle(item: Item, name: str) -> Array:
    *axis, angle = item.numbers(name, (0.0, 0.0, 1.0, 0.0))
    return turn(unit(item, name, np.array(axis)), angle * item.compiler.angle)


def _xyaxes(item: Item, name: str) -> Array:
    given = np.array(item.numbers(name, (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)))
    x = unit(item, name, given[:3])
    y = unit(item, name, given[3:] - (x @ given[3:]) * x)
    return np.column_stack((x, y, np.cross(x, y)))


def _zaxis(item: Item, name: str) -> Array:
    return z_to(unit(item, name, np.array(item.numbers(name, (0.0, 0.0, 1.0)))))


def _euler(item: Item, name: str) -> Array:
    rotation = np.eye(3)
    angles = item.numbers(name, (0.0, 0.0, 0.0))
    for letter, angle in zip(item.compiler.eulerseq, angles, strict=True):
        one = turn(np.eye(3)["xyz".index(letter.lower())], angle * item.compiler.angle)
        rotation = rotation @ one if letter.islower() else one @ rotation
    return rotation


_ROTATIONS = {
    "quat": _quat,
    "axisangle": _axisangle,
    "xyaxes": _xyaxes,
    "zaxis": _zaxis,
    "euler": _euler,
}


# -------------------------------------------------------------------------------- settings


def compiler_of(root: Element) -> Compiler:
    """The settings of all ``<compiler>`` of a file; of two that differ the later one counts."""
    found = Compiler()
    for element in root.children:
        if element.tag != "compiler":
            continue
        item = Item(element, element.attributes, found)
        for name, valid, only in _MUST_BE:
            if item.word(name, valid, only) != only:
                raise item.error(f"{name}={item.text(name)!r} is not read; only {only!r} is")
        degree = "degree" if found.angle == Compiler.angle else "radian"
        degree = item.word("angle", ("degree", "radian"), degree)
        eulerseq = item.text("eulerseq", found.eulerseq)
        if len(eulerseq) != 3 or set(eulerseq.lower()) - set("xyz"):
            raise item.error(f"eulerseq must be three letters of xyzXYZ; got {eulerseq[:60]!r}")
        found = replace(
            found,
            angle=Compiler.angle if degree == "degree" else 1.0,
            autolimits=item.true("autolimits", found.autolimits),
            balanceinertia=item.true("balanceinertia", found.balanceinertia),
            boundinertia=item.size("boundinertia", found.boundinertia),
            boundmass=item.size("boundmass", found.boundmass),
            eulerseq=eulerseq,
            inertiafromgeom=item.word(
                "inertiafromgeom", ("false", "true", "auto"), found.inertiafromgeom
            ),
            inertiagrouprange=item.numbers("inertiagrouprange", found.inertiagrouprange),
            settotalmass=item.number("settotalmass", found.settotalmass),
        )
    return found


_MUST_BE: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("coordinate", ("local", "global"), "local"),
    ("alignfree", ("false", "true"), "false"),  # true would move the frame that q describes
)


@dataclass
class Defaults:
    """The default classes of a file: class name to kind of element to attributes."""

    compiler: Compiler
    classes: dict[str, dict[str, dict[str, str]]] = field(default_factory=lambda: {"main": {}})

    def read(self, root: Element) -> None:
        """Add all ``<default>`` of a file, in their order."""
        for element in root.children:
            if element.tag != "default":
                continue
            if element.attributes.get("class", "main") != "main":
                raise element.error("the class of the outermost <default> is 'main'")
            self._own(element, "main")
            waiting = [(child, "main") for child in reversed(element.children)]
            while waiting:
                child, parent = waiting.pop()
                if child.tag != "default":
                    continue
                name = child.attributes.get("class", "")
                if not name or name in self.classes:
                    what = f"the class {name!r} stands twice" if name else "the class is missing"
                    raise child.error(f"<default>: {what}")
                check_count(child, len(self.classes), MOST_CLASSES, "default classes")
                self.classes[name] = {k: dict(v) for k, v in self.classes[parent].items()}
                self._own(child, name)
                waiting += [(grandchild, name) for grandchild in reversed(child.children)]

    def _own(self, element: Element, name: str) -> None:
        for child in element.children:
            if child.tag != "default":
                for word in ("name", "class"):
                    if word in child.attributes and child.tag in ATTRIBUTES:
                        raise child.error(f"<{child.tag}> in <default> has no attribute {word!r}")
                kind = _shared(child.tag)
                values = self.classes[name].get(kind, {})
                self.classes[name][kind] = _over(values, child.attributes)

    def item(self, element: Element, kind: str, childclass: str = "main") -> Item:
        """An element with the values of its class, or else of the class of its body."""
        name = self.known(element, "class", childclass)
        values = _over(self.classes[name].get(_shared(kind), {}), element.attributes)
        return Item(element, values, self.compiler)

    def plain(self, element: Element) -> Item:
        """An element that has no defaults."""
        return Item(element, element.attributes, self.compiler)

    def known(self, element: Element, attribute: str, default: str) -> str:
        """A class named by an attribute of an element."""
        name = element.attributes.get(attribute, default)
        if name not in self.classes:
            raise element.error(
                f"{element}: there is no default class {name!r}"
                f"{suggestion(name, self.classes)}; valid: {', '.join(self.classes)}"
            )
        return name


def _over(values: dict[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Attributes of a class and those that replace them; one orientation replaces any other."""
    if any(name in own for name in _ROTATIONS):
        values = {name: value for name, value in values.items() if name not in _ROTATIONS}
    return {**values, **own}


def _shared(tag: str) -> str:
    """Actuators of all kinds share their defaults, as in MuJoCo."""
    return "actuator" if tag in MOTORS or tag in NO_MOTORS else tag


def flattened(
    body: Element, childclass: str, defaults: Defaults
) -> Iterator[tuple[Element, pin.SE3, str]]:
    """The elements in a body, also those in its frames, with their frame and class."""
    waiting = [(child, pin.SE3.Identity(), childclass) for child in reversed(body.children)]
    while waiting:
        element, frame, name = waiting.pop()
        if element.tag != "frame":
            yield element, frame, name
            continue
        frame = frame * defaults.plain(element).pose()
        name = defaults.known(element, "childclass", name)
        waiting += [(child, frame, name) for child in reversed(element.children)]


def sections(root: Element, tag: str) -> list[Element]:
    """The elements in all sections of one kind: a file may have several."""
    return [child for section in root.children if section.tag == tag for child in section.children]


def named(item: Item, attribute: str, valid: Collection[str], what: str) -> str:
    """A name that an attribute holds and the file knows."""
    name = item.text(attribute)
    if name not in valid:
        raise item.error(
            f"{attribute}: there is no {what} called {name[:60]!r}{suggestion(name, valid)}; "
            f"valid names: {listing(list(valid))}"
        )
    return name
