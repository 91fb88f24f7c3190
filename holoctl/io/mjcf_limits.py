"""How large the forces of an MJCF's actuators may be: what is within reach of u.

    u = gain ctrl       gain ctrlrange and forcerange bound u; gear stands in B, or is 1
    u                   forcerange alone: of servos, which add a force of their own
    efforts = B u       actuatorfrcrange of a joint bounds its effort, that of a tendon gear u

Where several actuators are one motor, u is their sum.
"""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import listing
from holoctl.base.tolerances import LARGEST_LIMIT
from holoctl.io.given_limits import GivenLimits
from holoctl.io.limits import FilePlace
from holoctl.io.mjcf_elements import Item
from holoctl.io.mjcf_tendons import Tendon
from holoctl.io.mjcf_tree import MjcfTree, ascending, limited
from holoctl.io.xml import Element

__all__ = [
    "Range",
    "added",
    "common",
    "limits_of_motors",
    "range_of",
    "range_on_tendon",
    "switched_off",
]

log = logging.getLogger(__name__)

Array = NDArray[np.float64]
Range = tuple[float, float]

_INF = float("inf")
_FREE: Range = (-_INF, _INF)
_GAIN = (1.0, *(0.0,) * 9)


def range_of(item: Item, clamped: bool) -> Range:
    """The forces that an actuator can give; `clamped`: whether it is kept to its ctrlrange."""
    force, control = (_range(item, f"{of}range", f"{of}limited") for of in ("force", "ctrl"))
    gain = _gain(item) if clamped else 0.0
    if not gain or control == _FREE:
        return force
    least, most = sorted(gain * x for x in control)
    return common(force, (least, most), item)


def common(one: Range, other: Range, place: FilePlace) -> Range:
    """What two ranges have in common.

    Raises
    ------
    LoadError
        Where that is nothing.
    """
    lower, upper = max(one[0], other[0]), min(one[1], other[1])
    if lower < upper:
        return lower, upper
    raise place.error(
        f"no force of the actuator is within all its ranges: ({one[0]:g}, {one[1]:g}) and "
        f"({other[0]:g}, {other[1]:g})"
    )


def range_on_tendon(tendon: Tendon, gear: float) -> Range:
    """The forces of its actuators that a tendon allows."""
    lower, upper = sorted(x / gear for x in _range(tendon.item, *_ACTUATORS))
    return lower, upper


def added(one: Range, other: Range) -> Range:
    """The range of a sum."""
    return one[0] + other[0], one[1] + other[1]


_ACTUATORS = ("actuatorfrcrange", "actuatorfrclimited")


def _range(item: Item, name: str, switch: str) -> Range:
    if not limited(item, name, switch):
        return _FREE
    if item.text(switch, "auto") == "auto" and not any(item.numbers(name, (0.0, 0.0))):
        return _FREE  # as MuJoCo says none
    lower, upper = ascending(item, name)
    return (
        lower if lower > -LARGEST_LIMIT else -_INF,
        upper if upper < LARGEST_LIMIT else _INF,
    )


def _gain(item: Item) -> float:
    """Force over control, where that is all there is; else 0."""
    if item.element.tag == "motor":
        return 1.0
    proportional = (
        item.element.tag == "general"
        and item.text("gaintype", "fixed") == "fixed"
        and item.text("biastype", "none") == "none"
        and item.text("dyntype", "none") in ("none", "filter", "filterexact")
    )
    return item.numbers("gainprm", _GAIN, least=1)[0] if proportional else 0.0


def switched_off(root: Element, tree: MjcfTree) -> bool:
    """Whether the file says that controls are not kept to their ranges."""
    off = "enable"
    for option in root.children:
        for flag in option.children if option.tag == "option" else ():
            off = tree.defaults.plain(flag).word("clampctrl", ("enable", "disable"), off)
    return off == "disable"


def limits_of_motors(
    root: Element,
    tree: MjcfTree,
    names: list[str],
    B: Array | None,
    ranges: list[tuple[Range, FilePlace]],
) -> GivenLimits:
    """The limits of the motors; a warning for bounds of joints that no single motor keeps."""
    found = GivenLimits(root)
    for i, (one, place) in enumerate(ranges):
        if one != _FREE:
            found.given.append(("effort", names[i] if names else f"u[{i}]", one, place))
    if B is not None:
        _warn_of_shared(root, tree, B)
    return found


def _warn_of_shared(root: Element, tree: MjcfTree, B: Array) -> None:
    shared = list[str]()
    for name, joint in tree.joints.items():
        if joint.item.element.tag == "body" or not limited(joint.item, *_ACTUATORS):
            continue
        first, n = tree.model.idx_vs[joint.index], tree.model.nvs[joint.index]
        acting = np.flatnonzero(B[first : first + n].any(axis=0))
        if acting.size > 1 or any(np.count_nonzero(B[:, i]) > 1 for i in acting):
            shared.append(name)
    if shared:
        log.warning(
            "%s: actuatorfrcrange bounds the sum of what several motors, or one motor on several "
            "coordinates, give to a joint; this is no limit of one motor, and left out: %s",
            root.file, listing(shared),
        )  # fmt: skip
