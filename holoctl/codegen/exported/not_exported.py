"""Parts of a description, or of a request, that the exported C lacks: a sentence for each."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np

from holoctl.base.checks import listing
from holoctl.codegen.c_text import comment
from holoctl.codegen.exported.laws import Laws
from holoctl.codegen.law_options import Subject
from holoctl.mechanism.bound_limits import BoundLimits, bound_limits
from holoctl.mechanism.default_limits import limits_of
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["in_header", "left_out"]

_MOST = 6


def left_out(subject: Subject, laws: Laws, not_seen: str) -> tuple[str, ...]:
    """The sentences; `not_seen` is why the state is not estimated from the motors, else empty."""
    mech, found = subject.mech, _limits(subject.mech, _bound(laws))
    if mech.parked:
        names = [c.default_name for _, c in mech.parked]
        found.append(f"constraints that are switched off: {listing(names, _MOST)}")
    controller = subject.controller
    friction = [
        name
        for name, force in zip(mech.force_names, mech.bound_forces, strict=True)
        if force.friction
    ]
    if controller is not None and laws.controller is None:
        found.append(
            "the torque of the controller, with its gains: the motors act by a matrix, or have no "
            "positions of their own"
        )
    elif controller is not None and controller.compensation == "gravity" and friction:
        found.append(
            f"friction in the torque of the controller, {listing(friction, _MOST)}: "
            "compensation='gravity' holds at rest"
        )
    if not_seen:
        what = "state and torque_from_motors" if laws.controlled else "state"
        found.append(f"the closed state from the motors ({what}): {not_seen}")
    return tuple(found)


def in_header(sentences: Sequence[str]) -> str:
    """Lines of documentation for the header."""
    first, next_ = " *   - ", " *     "
    return "\n".join(
        line
        for sentence in sentences
        for line in textwrap.wrap(
            comment(sentence), 96, initial_indent=first, subsequent_indent=next_
        )
    )


def _bound(laws: Laws) -> BoundLimits | None:
    """The limits that are kept."""
    if laws.standing is not None:
        return laws.standing.paths.law.bound
    return None if laws.limits is None else laws.limits.bound


def _limits(mech: Mechanism, bound: BoundLimits | None) -> list[str]:
    """One sentence for the limits of the description that are not kept, if any."""
    kept = set() if bound is None else set(_limited(mech, bound))
    missing: dict[str, list[str]] = {}
    for what, name in _limited(mech, bound_limits(mech, limits_of(mech))):
        if (what, name) not in kept:
            missing.setdefault(what, []).append(name)
    if not missing:
        return []
    words = (f"{what} of {listing(names, _MOST)}" for what, names in missing.items())
    return [f"limits of the description: {'; '.join(words)}"]


def _limited(mech: Mechanism, bound: BoundLimits) -> list[tuple[str, str]]:
    """The kinds of limits, with the names that they belong to."""
    motors = mech.actuator_names
    kinds = [("effort", motors, bound.effort)]
    kinds += [(x, bound.names, getattr(bound, x)) for x in ("velocity", "position", "acceleration")]
    found = [
        (what, name)
        for what, names, sides in kinds
        for name, pair in zip(names, sides.T, strict=True)
        if np.isfinite(pair).any()
    ]
    curved = zip(motors, bound.curves, strict=True)
    return found + [("speed_torque", name) for name, curve in curved if curve is not None]
