"""Whether readings of joints and motors fit a transmission, and which usual error explains them.

    misfit = q_m - s(y)

Each usual error is made in the model, or in the readings, and the misfit is computed again. Unknown
offsets follow from the readings by the method of Gauss and Newton.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations, permutations, product
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.angles import wrapped
from holoctl.base.checks import Array, Vector, counted, freeze, listing, numbers, unpickled
from holoctl.base.errors import HoloctlError, InputError
from holoctl.base.linalg import largest, least_squares
from holoctl.closing.assembly import assemble
from holoctl.tree.frozen_model import plain

__all__ = ["TransmissionCheck", "checked_readings"]

EXPLAINS = 0.2
"""An error explains a misfit if less than this share of it remains."""

ALIKE, ROUNDING = 3.0, 1e-9  # -; rad or m
"""Readings do not tell explanations apart if what remains is less than this factor times the least,
or rounding."""

JUDGED = 30
"""Explanations are judged by this many readings, those with the largest misfit."""

FIT_STEPS, FIT_DIFFERENCE, FIT_FLAT, FIT_FALLS = 10, 1e-5, 1e-6, 0.5  # -; rad or m; -; -
"""Steps of a fit of offsets, its differences, the share of the largest singular value below which
readings do not determine a combination of offsets; a fit ends if a larger share of the misfit is
left."""

SAID = 1e-6  # rad or m
"""Larger offsets are told."""


@dataclass(frozen=True, eq=False)
class TransmissionCheck:
    """Readings of joints and motors compared with a transmission; ``str`` is the verdict.

    Attributes
    ----------
    joints, motors : tuple of str
    misfit : (n, nu) array
        Measured motor positions less those of the model at the measured joints, rad or m.
    explanations : mapping of str to float
        The error of the model or of the sensors that explains the misfit, and others that explain
        it as well; the largest misfit that remains with each, rad or m.

    See Also
    --------
    Transmission : its ``check`` returns it.

    Examples
    --------
    >>> import holoctl as hc
    >>> ankle = hc.Transmission(hc.load(hc.robot_file("ankle")), ["ankle_pitch", "ankle_roll"])
    >>> y = [[-0.6, 0.2], [0.3, -0.2], [-0.3, 0.1], [0.2, 0.2]]
    >>> q_m = [ankle.motor_positions(x) + [0.016, 0.0] for x in y]
    >>> print(ankle.check(y, q_m))
    The motors of 4 readings differ from the model by up to 0.016 rad or m ('motor_left').
    They fit with:
      constant offsets of the motors, 'motor_left' +0.016: residual below 1e-9
    """

    joints: tuple[str, ...]
    motors: tuple[str, ...]
    misfit: Array
    explanations: Mapping[str, float]

    def __post_init__(self) -> None:
        freeze(self)

    __setstate__ = unpickled

    @property
    def residual(self) -> float:
        """The largest misfit, rad or m."""
        return largest(self.misfit)

    def __repr__(self) -> str:
        return (
            f"<TransmissionCheck: misfit up to {self.residual:.2g} rad or m, "
            f"{counted(len(self.explanations), 'explanation')}>"
        )

    def __str__(self) -> str:
        worst = self.motors[int(np.abs(self.misfit).max(axis=0).argmax())]
        what = (
            f"The motors of {counted(len(self.misfit), 'reading')} differ from the model by up to"
        )
        verdict = f"{what} {self.residual:.2g} rad or m ({worst!r})."
        if not self.explanations:
            return f"{verdict} No usual error of a model or of sensors explains this."
        lines = [verdict, "They fit with:"]
        for what, left in self.explanations.items():
            lines += [f"  {what}: residual {f'{left:.2g}' if left > ROUNDING else 'below 1e-9'}"]
        if len(self.explanations) > 1:
            lines += ["The readings do not tell these apart: take some at larger angles."]
        return "\n".join(lines)


class _Change(NamedTuple):
    """An error: its text, the names of `size` unknown offsets, and the misfit as their function."""

    text: str
    names: tuple[str, ...]
    misfit: Callable[[Vector], Array]


def checked_readings(tr: Any, y: Any, q_m: Any) -> TransmissionCheck:
    """`Transmission.check`."""
    joints, motors = tr.joints, tr.motors
    y, q_m = _table("y", y, joints), _table("q_m", q_m, motors)
    if len(y) != len(q_m):
        raise InputError(f"y and q_m must have a row for each reading; got {len(y)} and {len(q_m)}")
    misfit = _misfit(tr, y, q_m)
    at = np.argsort(-np.abs(misfit).max(axis=1), kind="stable")[:JUDGED]
    found = dict[str, float]()
    for change in _changes(tr, y[at], q_m[at]):
        try:
            text, left = _remaining(change, len(motors) * len(at))
        except HoloctlError:
            continue  # not reached with this change, or no mechanism
        if left < EXPLAINS * largest(misfit):
            found[text] = left
    most = max(ALIKE * min(found.values(), default=0.0), ROUNDING)
    best = {k: found[k] for k in sorted(found, key=lambda k: found[k]) if found[k] <= most}
    return TransmissionCheck(joints, motors, misfit, best)


def _table(name: str, given: Any, names: tuple[str, ...]) -> Array:
    x = np.atleast_2d(numbers(name, given))
    if x.ndim != 2 or x.shape[1] != len(names) or not x.size or not np.isfinite(x).all():
        raise InputError(
            f"{name} must be (n, {len(names)}), a row for each reading of {listing(names)}, and "
            f"finite; got {np.shape(given)}"
        )
    return x


def _misfit(tr: Any, y: Array, q_m: Array) -> Array:
    return _difference(tr, q_m, np.array([tr.motor_positions(x) for x in y]))


def _difference(tr: Any, q_m: Array, found: Array) -> Array:
    off, turning = q_m - found, tr.mech.motors.turning
    off[:, turning] = wrapped(off[:, turning])
    return off


def _remaining(change: _Change, equations: int) -> tuple[str, float]:
    """The text of an error with its offsets, and the largest misfit that remains."""
    k = len(change.names)
    c, off = np.zeros(k), change.misfit(np.zeros(k))
    if not k:
        return change.text, largest(off)
    if 2 * k > equations:
        return change.text, np.inf  # offsets would fit anything
    for _ in range(FIT_STEPS):
        if largest(off) < ROUNDING:
            break
        slope = [(change.misfit(c + h) - off).ravel() for h in FIT_DIFFERENCE * np.eye(k)]
        step = FIT_DIFFERENCE * least_squares(np.array(slope).T, -off.ravel(), rcond=FIT_FLAT)
        new = _shortened(change, c, step)
        if new is None or not np.linalg.norm(new[1]) < FIT_FALLS * np.linalg.norm(off):
            break
        c, off = new
    said = [f"{n} {x:+.3g}" for n, x in zip(change.names, c, strict=True) if abs(x) > SAID]
    return f"{change.text}, {', '.join(said)}", largest(off)


def _shortened(change: _Change, c: Vector, step: Vector) -> tuple[Vector, Array] | None:
    """The offsets after a step and the misfit there; after a part of it if it is out of reach."""
    for part in (1.0, 0.5, 0.25):
        try:
            return c + part * step, change.misfit(c + part * step)
        except HoloctlError:
            continue
    return None


def _changes(tr: Any, y: Array, q_m: Array) -> Iterator[_Change]:
    """The usual errors, with the misfit of each."""
    joints, motors, p = tr.joints, tr.motors, len(tr.joints)
    for a, b in permutations(joints, 2):
        if _carries_alone(tr, a, b):
            text = f"the order of {a!r} and {b!r} exchanged in the tree"
            yield _Change(text, (), partial(_exchanged, tr, a, b, y, q_m))
    names, read = (*joints, *motors), np.hstack([y, q_m])
    pairs = (*combinations(range(p), 2), *combinations(range(p, len(names)), 2))
    for a, b in pairs:
        other = read.copy()
        other[:, [a, b]] = read[:, [b, a]]
        text = f"the readings of {names[a]!r} and {names[b]!r} exchanged"
        yield _Change(text, (), partial(_reread, tr, other[:, :p], other[:, p:]))
    for i, name in enumerate(names):
        other = read.copy()
        other[:, i] *= -1.0
        text = f"the axis of {name!r} reversed"
        yield _Change(text, (), partial(_reread, tr, other[:, :p], other[:, p:]))
    for what, of in (("joints", joints), ("motors", motors)):
        text = f"constant offsets of the {what}"
        yield _Change(text, tuple(map(repr, of)), partial(_offset, tr, y, q_m, what == "joints"))
    for name, (axis, way) in product(joints, zip("xyz", np.eye(3), strict=True)):
        text = f"the origin of {name!r} displaced in the axes of its parent"
        yield _Change(text, (axis,), partial(_displaced, tr, y, q_m, name, way))


def _reread(tr: Any, y: Array, q_m: Array, _: Vector) -> Array:
    return _misfit(tr, y, q_m)


def _offset(tr: Any, y: Array, q_m: Array, joints: bool, c: Vector) -> Array:
    return _misfit(tr, y - c, q_m) if joints else _misfit(tr, y, q_m - c)


def _carries_alone(tr: Any, a: str, b: str) -> bool:
    """Whether joint a carries joint b, and nothing else."""
    model, names = plain(tr.mech.model), tr.mech.coordinate_names
    i, j = (int(tr.mech.joint_of[names.index(n)]) for n in (a, b))
    if model.parents[j] != i or list(model.parents).count(i) > 1:
        return False
    at = [names.index(a), names.index(b)]
    moved = [np.asarray(bound.support)[:, at] for bound in tr.mech.bound]
    return not any((rows[:, 0].any() and not rows[:, 1].any()) for rows in moved)


def _displaced(tr: Any, y: Array, q_m: Array, name: str, way: Vector, c: Vector) -> Array:
    model = tr.mech.model.copy()
    j = model.getJointId(name)
    place = model.jointPlacements[j]
    model.jointPlacements[j] = pin.SE3(place.rotation, place.translation + c[0] * way)
    mech = tr.mech.with_model(model)
    start = assemble(mech, tr.start, locked=tr.joints, restarts=0)[0]
    return _misfit(type(tr)(mech, tr.joints, start), y, q_m)


def _exchanged(tr: Any, a: str, b: str, y: Array, q_m: Array, _: Vector) -> Array:
    """The misfit if b carries a, with the lines of both at zero where they are.

        D = X_a J_a X_b J_b    becomes    X J_b X^-1  X_a J_a X_a^-1  X        X = X_a X_b

    X_a is replaced for each reading, so that the body of b is at the second D.
    """
    model = tr.mech.model.copy()
    data, (i, j) = model.createData(), (model.getJointId(a), model.getJointId(b))
    X_a, X_b = model.jointPlacements[i].copy(), model.jointPlacements[j].copy()
    X, found = X_a * X_b, list[Vector]()
    for x in y:
        q = tr.configuration(x)
        pin.forwardKinematics(model, data, q)
        D = data.liMi[i] * data.liMi[j]
        turned = X_a.actInv(data.liMi[i]), X_b.actInv(data.liMi[j])
        wanted = X * turned[1] * X.inverse() * X_a * turned[0] * X_a.inverse() * X
        here = model.copy()
        here.jointPlacements[i] = wanted * D.inverse() * X_a
        mech = tr.mech.with_model(here)
        found.append(mech.motor_positions(assemble(mech, q, locked=tr.joints, restarts=0)[0]))
    return _difference(tr, q_m, np.array(found))
