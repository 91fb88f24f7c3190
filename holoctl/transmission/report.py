"""A transmission over its workspace: reach, singular curves, polytopes, and the errors of the usual
approximations.

Postures are drawn from the reached part of the domain, rates and accelerations from boxes. Errors
are relative; each is defined in `APPROXIMATIONS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from holoctl.base.checks import Array, Vector, freeze, listing, unpickled, whole
from holoctl.base.errors import BranchError, InputError, LimitError
from holoctl.base.single_threaded_blas import one_thread
from holoctl.transmission.polytope import Polytope

__all__ = ["APPROXIMATIONS", "TransmissionReport", "transmission_report"]

GRID = {1: 201, 2: 41, 3: 11}
"""Postures along each joint, by the number of joints."""

REACHED, OUT_OF_REACH, UNCONTROLLED = 0, 1, 2
"""Status of a posture: reached; beyond a singular configuration of the linkage (J is not bounded
there); beyond one of the motors (det J = 0)."""

RATES, ACCELERATIONS = 8.0, 60.0  # rad/s, rad/s^2
"""Boxes from which rates and accelerations of the joints are drawn; of slides, times the size of
the mechanism."""

APPROXIMATIONS = {
    "constant J": "joint efforts of motor efforts by J at the start, over their size",
    "2x armature": "twice the rotor inertia of a motor at each joint, over J' I J",
    "diagonal armature": "the diagonal of J' I J at the start, over J' I J",
    "joint box": "share of the box of largest joint efforts at the start that motors cannot give",
    "joint box, overshoot": "motor efforts that this box demands, over their limits",
    "massless rods": "inertia of the linkage by its rotors alone, over the inertia",
    "no linkage": "efforts of the linkage, over the largest joint effort",
    "no velocity terms": "their efforts, over the largest joint effort",
}
"""The usual approximations, and the relative error that is given for each."""


@dataclass(frozen=True, eq=False)
class TransmissionReport:
    """A transmission over its workspace: the result of `Transmission.report`; ``str`` is the page.

    Attributes
    ----------
    joints, motors : tuple of str
    lower, upper : (p,) arrays
        The domain, rad or m.
    status : (n, ..., n) int array
        Of a grid of postures: 0 reached, 1 beyond a singular configuration of the linkage (J is not
        bounded there), 2 beyond one in which the motors lose control (det J = 0).
    determinant : (n, ..., n) array
        ``sqrt det(J'J)``, relative to that at the start; NaN where it is not reached.
    noise_gain : (n, ..., n) array
        Largest rate of a scaled coordinate by the rates of the joints: it is not bounded at a
        singular configuration of the linkage, where det G_dep = 0.
    errors : mapping of str to (float, float)
        Median and worst error of each of `APPROXIMATIONS`. Those that need effort limits of the
        motors are absent without them.
    polytopes : tuple of ((p,) array, Polytope)
        Joint efforts that motors can give, at the start and at four postures around it; empty
        without effort limits.
    samples : int
        The number of postures behind `errors`.

    See Also
    --------
    Transmission : its ``report`` returns it.
    motor_map : efforts and condition numbers over the workspace of any mechanism.

    Examples
    --------
    >>> import holoctl as hc
    >>> knee = hc.Transmission(hc.load(hc.robot_file("leg")), ["knee"])
    >>> report = knee.report([-1.2], [-0.4], samples=20)
    >>> report.reached, round(report.errors["constant J"][1], 2)
    (1.0, 0.05)
    """

    joints: tuple[str, ...]
    motors: tuple[str, ...]
    lower: Vector
    upper: Vector
    status: Array
    determinant: Array
    noise_gain: Array
    errors: Mapping[str, tuple[float, float]]
    polytopes: tuple[tuple[Vector, Polytope], ...]
    samples: int

    def __post_init__(self) -> None:
        freeze(self)

    __setstate__ = unpickled

    def __repr__(self) -> str:
        return (
            f"<TransmissionReport: {listing(self.joints, 6)} by {listing(self.motors, 6)}, "
            f"{100.0 * self.reached:.0f} % of the domain reached>"
        )

    @property
    def reached(self) -> float:
        """The share of the grid that is reached, 0 to 1."""
        return float((self.status == REACHED).mean())

    def __str__(self) -> str:
        found = self.determinant[self.status == REACHED]
        gain = self.noise_gain[self.status == REACHED]
        lines = [
            f"Transmission: {listing(self.joints)} by {listing(self.motors)}",
            "",
            *(
                f"  {name}: {low:.4g} to {high:.4g}"
                for name, low, high in zip(self.joints, self.lower, self.upper, strict=True)
            ),
            f"  Reached: {100.0 * self.reached:.1f} % of this domain; "
            f"{100.0 * float((self.status == OUT_OF_REACH).mean()):.1f} % lies beyond a singular "
            "configuration of the linkage,",
            f"  {100.0 * float((self.status == UNCONTROLLED).mean()):.1f} % beyond one in which "
            "motor torques do not determine the motion (type-2 singularity, det J = 0).",
            f"  det J / det J at the start: {found.min():.3g} to {found.max():.3g}; largest rate "
            f"of a coordinate by those of the joints: {gain.max():.3g}.",
            "",
            f"Relative errors of the usual approximations, over {self.samples} postures:",
            f"  {'':22s} {'median':>8s} {'worst':>8s}",
        ]
        lines += [
            f"  {name:22s} {median:8.3g} {worst:8.3g}   {APPROXIMATIONS[name]}"
            for name, (median, worst) in self.errors.items()
        ]
        if not self.polytopes:
            lines.append("  (joint box, linkage, velocity: the motors have no effort limits)")
        return "\n".join(lines)


def transmission_report(
    tr: Any, lower: Any, upper: Any, samples: int, seed: int
) -> TransmissionReport:
    """`Transmission.report`."""
    p = len(tr.joints)
    if p not in GRID:
        raise InputError(f"a report has at most {max(GRID)} joints; got {p}: {listing(tr.joints)}")
    low, high = tr.domain(lower, upper)
    count, n = whole("samples", samples, 1), GRID[p]
    rng = np.random.default_rng(whole("seed", seed, 0))
    axes = [np.linspace(low[i], high[i], n) for i in range(p)]
    status = np.zeros([n] * p, dtype=int)
    determinant, gain = np.full([n] * p, np.nan), np.full([n] * p, np.nan)
    first = _size(tr.jacobian(tr.y_start))
    reached = list[Vector]()
    with one_thread():
        for at in product(range(n), repeat=p):
            y = np.array([axis[i] for axis, i in zip(axes, at, strict=True)])
            try:
                determinant[at], gain[at] = _size(tr.jacobian(y)) / first, tr.noise_gain(y)
                reached.append(y)
            except BranchError as error:
                status[at] = UNCONTROLLED if error.why == "control" else OUT_OF_REACH
        if not reached:
            raise InputError(f"no posture between {low} and {high} of {listing(tr.joints)} is "
                             "reached on the branch of the start")  # fmt: skip
        ys = [reached[i] for i in rng.integers(len(reached), size=count)]
        errors = _errors(tr, ys, rng)
        polytopes = _polytopes(tr, low, high)
    return TransmissionReport(
        tr.joints, tr.motors, low, high, status, determinant, gain, errors,
        polytopes, count,
    )  # fmt: skip


def _size(J: Array) -> float:
    """``sqrt det(J'J)``, or that of ``J J'`` for fewer motors than joints."""
    small = J.T @ J if J.shape[0] >= J.shape[1] else J @ J.T
    return float(np.sqrt(max(np.linalg.det(small), 0.0)))


def _polytopes(tr: Any, low: Vector, high: Vector) -> tuple[tuple[Vector, Polytope], ...]:
    corners = product((0.25, 0.75), repeat=len(low))
    postures = [tr.y_start, *(low + np.array(c) * (high - low) for c in corners)][:5]
    found = list[tuple[Vector, Polytope]]()
    for y in postures:
        try:
            found.append((y, tr.effort_polytope(y)))
        except BranchError:
            continue
        except LimitError:
            return ()
    return tuple(found)


def _errors(tr: Any, ys: list[Vector], rng: np.random.Generator) -> dict[str, tuple[float, float]]:
    p, nu = len(tr.joints), len(tr.motors)
    norm, start, unit = np.linalg.norm, tr.y_start, tr.scales[1]
    J0, rotors = tr.jacobian(start), tr.rotor_inertias
    try:
        low, high = tr.effort_box()
        spread, box = (low, high), np.ptp(tr.effort_polytope(start).vertices, axis=0)
        middle = tr.effort_polytope(start).vertices.mean(axis=0)
        box = np.array([middle - 0.5 * box, middle + 0.5 * box])
    except LimitError:
        spread, box = None, np.zeros((0, p))
    found: dict[str, list[float]] = {name: [] for name in APPROXIMATIONS}
    for y in ys:
        J, u = tr.jacobian(y), rng.uniform(-1.0, 1.0, nu)
        if spread is not None:
            u = 0.5 * (spread[0] + spread[1]) + 0.5 * (spread[1] - spread[0]) * u
        found["constant J"].append(float(norm((J - J0).T @ u) / norm(J.T @ u)))
        inertia, link = tr.reflected_inertia(y, rotors=True), tr.reflected_inertia(y)
        if rotors.any():
            twice = 2.0 * np.diag(np.resize(rotors, p))
            at_start = np.diag(np.diag(J0.T @ (rotors[:, None] * J0)))
            found["2x armature"].append(float(norm(twice - inertia) / norm(inertia)))
            found["diagonal armature"].append(float(norm(at_start - inertia) / norm(inertia)))
        if link.any() and rotors.any():
            found["massless rods"].append(float(norm(link - inertia) / norm(link)))
        if spread is None:
            continue
        allowed = tr.effort_polytope(y)
        largest = float(np.abs(allowed.vertices).max())
        yd, ydd = (unit * rng.uniform(-x, x, p) for x in (RATES, ACCELERATIONS))
        found["no linkage"].append(float(np.abs(tr.linkage_efforts(y, yd, ydd)).max()) / largest)
        found["no velocity terms"].append(float(np.abs(tr.velocity_effort(y, yd)).max()) / largest)
        inside = [allowed.contains(box[0] + x * (box[1] - box[0])) for x in rng.random((50, p))]
        found["joint box"].append(1.0 - float(np.mean(inside)))
        corners = [np.choose(c, box) for c in product((0, 1), repeat=p)]
        found["joint box, overshoot"].append(max(_share(tr, x, y, spread) for x in corners))
    return {k: (float(np.median(x)), float(np.max(x))) for k, x in found.items() if x}


def _share(tr: Any, tau: Vector, y: Vector, box: tuple[Vector, Vector]) -> float:
    """The largest motor effort for joint efforts, from the middle of its limits, over half their
    range; of those of redundant motors that are closest to the middle."""
    middle, half = 0.5 * (box[0] + box[1]), 0.5 * (box[1] - box[0])
    u = tr.motor_efforts(tau, y, preload=middle).u
    return float(np.max(np.abs(u - middle) / half))
