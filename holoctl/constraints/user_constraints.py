"""Checks of user-defined constraint classes before they are used.

All solvers use labels, support and rows as the class gives them, and so does the certificate: an
error in them is in the torque and in its certificate alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Array, Vector, quoted
from holoctl.base.errors import InputError
from holoctl.base.tolerances import (
    DIFFERENCE_PARTS,
    DIFFERENCE_REACHES,
    DIFFERENCE_STATES,
    DIFFERENCE_STEP,
    DIFFERENCE_TIMES,
)
from holoctl.constraints.constraint_protocol import BoundRows, Rows, constraint_of
from holoctl.constraints.derivative_check import DIFFERENCE_BESIDE, difference, worst
from holoctl.constraints.kinds import SCREW, Composed
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.tree.coordinates import coordinate_names
from holoctl.tree.frames import Frame
from holoctl.tree.kinematics import kinematics

__all__ = [
    "check_near_reference",
    "check_own",
    "checked_rows",
    "is_finite",
    "is_own",
    "of_library",
    "rows_where_defined",
    "seeded_states",
]

LINEAR_IN_V = 1e-7
"""Largest difference of a rate from the Jacobian times v plus the rate at rest."""


State = tuple[Vector, Vector, float]


def of_library(bound: object) -> bool:
    """Whether the class of rows belongs to the library, whose tests compare it."""
    return type(bound).__module__.startswith("holoctl.")


def is_own(bound: BoundRows) -> bool:
    """Whether rows, or the kind of one of them, are user-defined."""
    if type(bound) is WrenchRows:
        return any(isinstance(kind, Composed) and kind is not SCREW for kind in bound.kinds)
    return not of_library(bound)


def check_own(bound: Any, name: str, model: pin.Model, reference: Vector) -> None:
    """Check a user-defined constraint for consistency, at seeded states near the reference.

    States at which its rows raise an error or are not finite are left out.

    Raises
    ------
    InputError
        For an object that is not bound rows; labels that are not different names; a support that
        leaves out a coordinate; rows of other shapes; a rate, Jacobian or drift that is not the
        derivative of the error; rows that are defined nowhere near the reference.
    """
    owner = f"constraint {name!r}"
    parts = ("labels", "support", "anchors", "scale", "rows")
    missing = [part for part in parts if not hasattr(bound, part)]
    if missing:
        raise InputError(
            f"{owner}: bind must return bound rows, see "
            f"holoctl/constraints/constraint_protocol.py; got {type(bound).__name__} without "
            f"{', '.join(missing)}"
        )
    _check_labels(owner, name, bound.labels)
    shape = len(bound.labels), model.nv
    try:
        support = np.asarray(bound.support)
    except ValueError:
        support = np.zeros(())
    if support.shape != shape or support.dtype != bool:
        raise InputError(
            f"{owner}: support must be a bool array of shape {shape}; got {support.dtype} "
            f"{support.shape}"
        )
    anchors = bound.anchors
    if not isinstance(anchors, tuple) or not all(isinstance(a, Frame) for a in anchors):
        raise InputError(
            f"{owner}: anchors must be a tuple of frames, or (); got {quoted(anchors)}"
        )

    def look(q: Vector, v: Vector, t: float, beside: Vector) -> str:
        found, why = rows_where_defined(bound, model, (q, v, t))
        if found is None:
            return why
        _check_support(owner, bound, model, support, found)
        wrong = _wrong_derivatives(bound, model, (q, v, t), found)
        if wrong and (_wrong_derivatives(bound, model, (beside, v, t), None) or wrong):
            raise InputError(f"{owner}: {wrong}")
        return ""

    check_near_reference(f"{owner}: its rows", model, reference, look)


def check_near_reference(
    what: str, model: pin.Model, reference: Vector,
    look: Callable[[Vector, Vector, float, Vector], str],
) -> None:  # fmt: skip
    """Call ``look(q, v, t, beside)`` at seeded states near the reference, with a configuration
    beside each. It returns why it could not be evaluated, or an empty string, and raises an error
    for a fault.

    Raises
    ------
    InputError
        If it could be evaluated at none of the states.
    """
    looked_at, trouble = 0, ""
    for state in seeded_states(model, reference):
        why = look(*state)
        trouble = trouble or why
        looked_at += not why
        if looked_at == DIFFERENCE_STATES:
            return
    if not looked_at:
        raise InputError(
            f"{what} could not be evaluated at the reference configuration, nor near it: "
            f"{trouble}; give the Mechanism another reference="
        )


def seeded_states(
    model: pin.Model, reference: Vector
) -> Iterator[tuple[Vector, Vector, float, Vector]]:
    """States from far to near the reference, at several times; and a configuration beside each."""
    rng = np.random.default_rng(0)
    for reach, t in zip((*DIFFERENCE_REACHES, 0.0), DIFFERENCE_TIMES, strict=True):
        step, v = rng.normal(size=(2, model.nv))
        yield (
            pin.integrate(model, reference, reach * step), v, t,
            pin.integrate(model, reference, DIFFERENCE_BESIDE * reach * step),
        )  # fmt: skip


def checked_rows(bound: BoundRows, found: Any, nv: int) -> Rows:
    """Check the result of `rows`; copies as float arrays of the right shapes."""
    if of_library(bound):
        return found  # type: ignore[no-any-return]
    m = len(bound.labels)
    shapes = {"error": (m,), "rate": (m,), "drift": (m,), "jacobian": (m, nv)}
    arrays: dict[str, Array] = {}
    for what, shape in shapes.items():
        given = getattr(found, what, None)
        try:
            x = np.array(given)
            x = np.zeros(()) if x.dtype.kind not in "fiu" else x.astype(float)
        except (TypeError, ValueError):
            x = np.zeros(())
        if x.shape != shape or given is None:
            raise InputError(
                f"constraint {constraint_of(bound.labels[0])!r}: rows must return {what} of "
                f"shape {shape}, numbers; got {type(given).__name__} {str(given)[:60]}"
            )
        arrays[what] = x
    return Rows(**arrays, wrenches=getattr(found, "wrenches", None))


def rows_where_defined(bound: BoundRows, model: pin.Model, state: State) -> tuple[Rows | None, str]:
    """Rows at a state; or None and the reason, if they raise any error or are not finite: rows need
    not be defined everywhere."""
    kin = kinematics(model, model.createData(), *state)
    try:
        given = bound.rows(kin)
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"
    found = checked_rows(bound, given, model.nv)
    return (found, "") if is_finite(found) else (None, "numbers that are not finite")


def _rows(bound: BoundRows, model: pin.Model, state: State) -> Rows:
    kin = kinematics(model, model.createData(), *state)
    return checked_rows(bound, bound.rows(kin), model.nv)


def is_finite(r: Rows) -> bool:
    """Whether all numbers of rows are finite."""
    return all(np.isfinite(x).all() for x in (r.error, r.rate, r.drift, r.jacobian))


def _check_labels(owner: str, name: str, labels: Any) -> None:
    good = isinstance(labels, tuple) and labels and all(isinstance(x, str) for x in labels)
    good = good and all(x.startswith(f"{name}.") for x in labels)
    if not good or len(set(labels)) < len(labels):
        raise InputError(
            f"{owner}: labels must be a tuple of names, one for each row and all different, such "
            f"as ({quoted(name + '.row')},); got {quoted(labels)}"
        )


def _check_support(
    owner: str, bound: BoundRows, model: pin.Model, support: NDArray[np.bool_], found: Rows
) -> None:
    if outside := np.argwhere((found.jacobian != 0.0) & ~support).tolist():
        row, column = outside[0]
        raise InputError(
            f"{owner}: row {bound.labels[row]!r} depends on {coordinate_names(model)[column]!r}, "
            "which its support leaves out"
        )


def _wrong_derivatives(bound: BoundRows, model: pin.Model, state: State, found: Rows | None) -> str:
    """The error of the derivatives of rows at a state; empty if there is none, or rows are
    undefined."""
    q, v, t = state
    h = DIFFERENCE_STEP / max(1.0, float(np.abs(v).max()))

    def along(s: float) -> Array:
        r = _rows(bound, model, (pin.integrate(model, q, s * v), v, t + s))
        return np.array([r.error, r.rate])

    try:
        found = _rows(bound, model, state) if found is None else found
        tries = [difference(along, part * h) for part in DIFFERENCE_PARTS]
        at_rest = _rows(bound, model, (q, np.zeros(model.nv), t))
    except Exception:
        return ""
    if not is_finite(found) or not all(np.isfinite(x.value).all() for x in tries):
        return ""
    where = f"at q = {q.round(4).tolist()}, v = {v.round(4).tolist()}, t = {t:g}"
    size = np.abs(found.jacobian) @ np.abs(v) + np.abs(at_rest.rate)
    off = np.abs(found.rate - at_rest.rate - found.jacobian @ v)
    if (off > LINEAR_IN_V * (1.0 + size)).any():
        row = bound.labels[int(np.argmax(off))]
        return f"rate of row {row!r} is not jacobian @ v + its value at rest, {where}"
    for k, (what, given) in enumerate((("rate", found.rate), ("drift", found.drift))):
        of = ("error", "rate")[k]
        if (i := worst(given, [x[k] for x in tries], size)) is not None:
            return (
                f"{what} of row {bound.labels[i]!r} is {given[i]:.6g} {where}, and {of} changes by "
                f"{tries[0].value[k][i]:.6g} per s along v by differences"
            )
    return ""
