"""What is wrong with measurements, before a fit; and what a model lacks, after it.

Before: sign, scale and order of the efforts against those of the mechanism's own parameters, which
need only be roughly right; noise against what each base parameter changes. After: which motion the
residual of each motor follows, and what usually causes that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from holoctl.base.checks import Array, Vector, counted, freeze, listing, quiet, vector
from holoctl.base.errors import InputError
from holoctl.base.linalg import least_squares, pivoted_qr, solved
from holoctl.identification.base_parameters import BaseParameters, base_parameters
from holoctl.identification.columns import BODY_PARAMETERS, LENGTHS
from holoctl.identification.parameters import Parameters
from holoctl.identification.regression import Regression
from holoctl.identification.zero_phase_filter import FLAT, grids_of
from holoctl.tree.frozen_model import plain

__all__ = [
    "MeasurementDiagnosis",
    "ResidualDiagnosis",
    "doubts",
    "measurement_diagnosis",
    "residual_diagnosis",
]

FEW = 3.0
"""Fewer equations than this for each base parameter are too few."""

BETTER = 2.0
"""A change of sign or scale is told if it makes the misfit smaller by more than this factor."""

FACTOR = 2.0
"""A scale between 1/FACTOR and FACTOR may be the error of the mechanism's parameters."""

EXCHANGED = (0.9, 0.5)
"""Efforts are those of another motor if they correlate with its model by more than the first, and
with that of their own by less than the second."""

UNEXPLAINED = 0.3
"""A part of the efforts, above which even the best parameters explain them badly."""

NOISY = 0.05
"""Noise of the accelerations by the resolution of an encoder, relative to them."""

INCREMENTS = 20
"""The least motion of a joint, in increments of its encoder."""

FLAT_TOP = 5
"""Equal largest efforts, one after the other, that look like a limit."""

OPPOSITE, REPEATS = -0.5, 0.5
"""Efforts that correlate with those of the prior by less than the first are doubted, and so is a
fit with adjacent residuals that correlate by more than the second."""

EXACT = 1e-6
"""Smaller residuals, relative to the efforts, are none."""

FOLLOWS = 0.1
"""The share of a residual that follows a motion, above which it is told."""


@dataclass(frozen=True, eq=False)
class MeasurementDiagnosis:
    """The result of `measurement_diagnosis`.

    Attributes
    ----------
    findings : tuple of str
        What is wrong, in sentences; empty if nothing was found.
    labels : tuple of g str
        The rows of the equations.
    scale : (g,) array
        The factor of the measured efforts over those of the mechanism's own parameters.
    noise : (g,) array
        Standard deviation of the residual with the best parameters, N m or N.
    unexplained : (g,) array
        The same divided by that of the efforts.
    deviations : dict of str to float
        The standard deviation of each base parameter by this noise, by its independent parameter.
    weak : tuple of str
        Those whose deviation exceeds a plausible size of the parameter.

    See Also
    --------
    measurement_diagnosis : returns it.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> model = hc.Parameters(hc.load(hc.robot_file("four_bar")))
    >>> t = np.arange(0.0, 2.0, 0.002)
    >>> data = hc.Measurements(t, 1.0 + 0.3 * np.sin(6.0 * t), np.cos(6.0 * t))
    >>> hc.measurement_diagnosis(hc.regression(model, data, lag=0.0)).labels
    ('crank',)
    """

    findings: tuple[str, ...]
    labels: tuple[str, ...]
    scale: Vector
    noise: Vector
    unexplained: Vector
    deviations: dict[str, float]
    weak: tuple[str, ...]

    def __post_init__(self) -> None:
        freeze(self)

    def __str__(self) -> str:
        return "\n".join(self.findings or ("nothing wrong was found",))


@quiet
def measurement_diagnosis(
    data: Regression, base: BaseParameters | None = None
) -> MeasurementDiagnosis:
    """What is wrong with measurements: too few, too little motion, wrong efforts.

    Parameters
    ----------
    data : Regression
    base : BaseParameters, optional
        Of the same parameters. Default: computed along the branch of the motion.

    Returns
    -------
    MeasurementDiagnosis

    Raises
    ------
    InputError
        For base parameters of another model.

    See Also
    --------
    residual_diagnosis : what the model lacks, after a fit.
    regression : the equations.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> t = np.arange(0.0, 4.0, 0.002)
    >>> x, v, a = 1.0 + 0.3 * np.sin(6 * t), 1.8 * np.cos(6 * t), -10.8 * np.sin(6 * t)
    >>> sensors, inverse = hc.ClosedStateEstimator(mech), hc.PreparedInverseDynamics(mech)
    >>> u = [inverse.torque(*sensors.state([x[i]], [v[i]]), [a[i]])[0] for i in range(t.size)]
    >>> data = hc.regression(hc.Parameters(mech), hc.Measurements(t, x, -100.0 * np.array(u)))
    >>> print(hc.measurement_diagnosis(data).findings[0].split(":")[0])
    efforts of 'crank' fit the mechanism better by more than 1000 times if divided by -100
    """
    model = data.model
    if base is None:
        base = base_parameters(model, data.q[0])
    elif not isinstance(base, BaseParameters) or base.model is not model:
        raise InputError("base must be the base_parameters of the same Parameters object")
    at = [model.names.index(x) for x in base.independent]
    W = data.W[:, :, at]
    n, g, rank = W.shape
    b = least_squares(W.reshape(-1, rank), data.y.ravel())
    left = max(1.0, n - rank / g)
    noise = np.sqrt(np.sum((data.y - W @ b) ** 2, axis=0) / left)
    size = np.sqrt(np.mean(data.y**2, axis=0))
    unexplained = noise / np.maximum(size, 1e-300)
    unexplained[size == 0.0] = 0.0
    findings = list[str]()
    if n * g < FEW * rank:
        findings.append(
            f"{n * g} equations for {counted(rank, 'base parameter')} are too few: record a longer "
            "motion, or raise the cutoff"
        )
    scale, told = _scales(data)
    findings += told
    findings += [
        f"{name!r}: even the best parameters leave {part:.0%} of the efforts unexplained: wrong "
        "order or signs of joints, geometry, branch or lag, or forces that are not in the model"
        for name, part in zip(data.labels, unexplained, strict=True)
        if part > UNEXPLAINED and n * g >= FEW * rank
    ]
    findings += [*_still(data), *_flat_tops(data)]
    deviations, weak, why = _weak(model, base, W, noise, size)
    findings += why + [x for x in data.notes if "left out" in x or "exceed" in x]
    return MeasurementDiagnosis(
        tuple(findings), data.labels, scale, noise, unexplained, deviations, weak
    )


def _scales(data: Regression) -> tuple[Vector, list[str]]:
    """The efforts over those of the mechanism's parameters, and what is wrong with them."""
    model = data.W @ data.model.values
    inner = np.sum(model * data.y, axis=0)
    own = np.sum(model**2, axis=0)
    scale = np.divide(inner, own, out=np.ones(inner.size), where=own > 0.0)
    found = list[str]()
    motors = [i for i, x in enumerate(data.labels) if not x.startswith("passive") and own[i] > 0.0]
    size = np.outer(np.linalg.norm(model, axis=0), np.linalg.norm(data.y, axis=0))
    alike = np.divide(np.abs(model.T @ data.y), size, out=np.zeros(size.shape), where=size > 0.0)
    for i in motors:
        y, other, name = data.y[:, i], int(np.argmax(alike[:, i])), data.labels[i]
        if alike[other, i] > EXCHANGED[0] and alike[i, i] < EXCHANGED[1]:
            found.append(
                f"efforts of {name!r} follow the model of {data.labels[other]!r}, not their own: "
                "columns were exchanged"
            )
            continue
        if 1.0 / FACTOR < scale[i] < FACTOR or not scale[i]:
            continue
        power = 10.0 ** np.round(np.log10(abs(scale[i])))
        near = 1.0 / FACTOR < abs(scale[i]) / power < FACTOR
        factor = float(np.sign(scale[i]) * (power if near else float(f"{abs(scale[i]):.2g}")))
        better = np.linalg.norm(y - model[:, i]) / np.linalg.norm(y / factor - model[:, i])
        if better > BETTER:
            times = "more than 1000" if better > 1e3 else f"{better:.2g}"
            how = "negated" if factor == -1.0 else f"divided by {factor:g}"
            cause = "the sign of the motor" if factor == -1.0 else "the unit, a gear or gain="
            found.append(
                f"efforts of {name!r} fit the mechanism better by {times} times if {how}: check "
                f"{cause}"
            )
    return scale, found


def _still(data: Regression) -> list[str]:
    """Joints that hardly move, or whose encoder is too coarse for accelerations."""
    found, known = list[str](), data.measurements
    names = known.measured or data.model.mech.actuated
    cutoff = 0.5 * data.rate
    for name, x, unit in zip(names, known.positions.T, known.resolution, strict=False):
        moved = float(np.nanmax(x) - np.nanmin(x))
        if moved <= INCREMENTS * unit:
            found.append(
                f"{name!r} moves by {moved:.3g} only"
                + (f", {moved / unit:.0f} increments of its encoder" if unit else "")
                + ": no motion, nothing to identify from it"
            )
            continue
        there = np.isfinite(x)
        ((grid, even),) = grids_of(known.t[there], x[there], np.inf)
        at = grid.times[grid.inside(grid.times, FLAT.span(cutoff))]
        second = FLAT.matrix(grid, at[:: max(1, at.size // 200)], cutoff, 2)
        a = np.linalg.norm(second @ even)
        noise = unit / np.sqrt(12.0) * np.linalg.norm(second.data)
        if noise > NOISY * a:
            found.append(
                f"{name!r}: increments of {unit:.2g} of its encoder are {noise / a:.0%} of its "
                "accelerations: move faster, or lower the cutoff"
            )
    return found


def _flat_tops(data: Regression) -> list[str]:
    """Motors whose largest effort lasts, as at a limit that was not given."""
    known, found = data.measurements, list[str]()
    names = known.motors or data.model.mech.actuator_names
    for name, column in zip(names, known.efforts.T, strict=True):
        u = column[np.isfinite(column)]
        for end in (u.max(), u.min()):
            top = np.flatnonzero(np.diff(np.concatenate([[0], u == end, [0]]).astype(int)))
            longest = int((top[1::2] - top[::2]).max())
            if end and longest >= FLAT_TOP and np.unique(u).size > u.size // 10:
                found.append(
                    f"efforts of {name!r} stay at {end:.4g} for {longest} samples: saturated? "
                    "Measurements(..., effort_limits=...) leaves such samples out"
                )
    return found


def _weak(
    model: Parameters, base: BaseParameters, W: Array, noise: Vector, size: Vector
) -> tuple[dict[str, float], tuple[str, ...], list[str]]:
    """Deviations of the base parameters, those that are lost in noise, and why."""
    rank = W.shape[2]
    weight = 1.0 / np.maximum(noise, 1e-9 * max(size.max(), 1e-300))
    A = (W * weight[:, None]).reshape(-1, rank)
    norms = np.linalg.norm(A, axis=0)
    unit = np.where(norms > 0.0, norms, 1.0)
    if len(A) < rank:
        return dict.fromkeys(base.independent, np.inf), base.independent, []
    qr = pivoted_qr(A / unit, rank)
    R = qr.r1 + np.diag(np.where(np.abs(np.diag(qr.r1)) > 1e-15, 0.0, 1e-15))
    deviations = np.empty(rank)
    deviations[qr.pivots] = np.linalg.norm(solved(R, np.eye(rank)), axis=1)
    deviations = np.where(norms > 0.0, deviations / unit, np.inf)
    plausible = _plausible(model, base, norms, weight, size, A.shape[0])
    weak, why = list[str](), list[str]()
    for i in np.flatnonzero(deviations > plausible):
        name = base.independent[i]
        weak.append(name)
        if norms[i] * plausible[i] < 1.0:
            cause = "the motion hardly changes any effort by it"
        else:
            parallel = np.abs((A / unit).T @ (A[:, i] / unit[i]))
            parallel[i] = 0.0
            other = base.independent[int(parallel.argmax())]
            cause = f"the motion does not tell it apart from others, such as {other}"
        why.append(f"{name} is lost in noise: {cause}")
    if len(why) > 6:
        why = [f"{len(weak)} of {rank} base parameters are lost in noise ({listing(weak, 6)}): the "
               "motion excites too little; excitation finds a better one"]  # fmt: skip
    return dict(zip(base.independent, deviations.tolist(), strict=True)), tuple(weak), why


def _plausible(
    model: Parameters, base: BaseParameters, norms: Vector, weight: Vector, size: Vector, n: int
) -> Vector:
    """A plausible size of each base parameter: mass times powers of the radius of gyration for
    bodies, efforts of the size of the measured ones for others."""
    theta = dict(zip(model.every, model.theta(model.values), strict=True))
    effort = float(np.linalg.norm(weight * size)) * np.sqrt(n / size.size)
    found = np.where(norms > 0.0, effort / np.where(norms > 0.0, norms, 1.0), 0.0)
    total = sum(inertia.mass for inertia in plain(model.mech.model).inertias)
    for i, name in enumerate(base.independent):
        body, _, what = name.rpartition(".")
        if what in BODY_PARAMETERS and f"{body}.Izz" in theta:
            ten = [float(theta[f"{body}.{x}"]) for x in BODY_PARAMETERS]
            m = ten[0] if ten[0] > 0.0 else total
            radius = np.sqrt(max(0.5 * (ten[4] + ten[6] + ten[9]) / m, 1e-12))
            found[i] = m * radius ** LENGTHS[what]
    return found


# --------------------------------------------------------------------------------- after a fit


def doubts(data: Regression, prior: Vector, p: Vector) -> list[str]:
    """Why a fit p may be wrong although it predicts its own data, in sentences."""
    found = [] if data.measurements is None else _flat_tops(data)
    before, r = data.W @ prior, data.y - data.W @ p
    passive = [x.startswith("passive") for x in data.labels]
    for i, name in enumerate(data.labels):
        y, here, left = data.y[:, i], before[:, i], r[:, i]
        size = float(np.linalg.norm(y) * np.linalg.norm(here))
        if not passive[i] and float(y @ here) < OPPOSITE * size:
            found.append(
                f"efforts of {name!r} are opposite to those of the prior (correlation "
                f"{float(y @ here) / size:.2f}): sign, order of the motors?"
            )
        square = float(left @ left)
        if not passive[i] and square > UNEXPLAINED**2 * float(y @ y):
            part = (square / max(float(y @ y), 1e-300)) ** 0.5
            found.append(
                f"the fit leaves {part:.0%} of the efforts of {name!r} unexplained: "
                "measurement_diagnosis tells likely causes"
            )
        seen = square > EXACT**2 * float(y @ y)
        if seen and float(left[1:] @ left[:-1]) > REPEATS * square:
            found.append(
                f"residuals of {name!r} are no noise (adjacent ones correlate by "
                f"{float(left[1:] @ left[:-1]) / square:.2f}): the model lacks something, and the "
                "intervals are too narrow; residual_diagnosis tells what"
            )
    return found


CAUSES = {
    "constant": "an offset of the measured effort (offsets=True), or a weight that is not modelled",
    "sign of rate": "Coulomb friction (friction=), or its transition is too wide",
    "rate": "viscous friction (friction=)",
    "rate squared": "friction that grows faster than the rate, or slower",
    "low rate": "friction at the start of a motion (stribeck=)",
    "position": "a spring, a cable, or a mass off its place",
    "acceleration": "rotor inertia (rotors=True)",
    "rate of effort": "a lag of the efforts, or elasticity of the drive",
    "time": "drift: friction that falls as the drive warms up",
}
"""What a residual that follows a motion usually comes from."""


@dataclass(frozen=True, eq=False)
class ResidualDiagnosis:
    """The result of `residual_diagnosis`.

    Attributes
    ----------
    findings : tuple of str
        What the model lacks, in sentences; empty if residuals follow no motion.
    labels : tuple of g str
        The rows of the equations.
    follows : tuple of c str
        The motions: ``"constant"``, ``"rate"``, ``"position"``, ``"time"`` and others.
    share : (g, c) array
        The share of the variance of each residual that follows each motion, 0 to 1.
    relative : (g,) array
        The residual, relative to the effort (root mean squares).
    repeats : (g,) array
        The correlation of adjacent residuals: near 0 for noise, near 1 for what is not modelled.

    See Also
    --------
    residual_diagnosis : returns it.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> model = hc.Parameters(hc.load(hc.robot_file("four_bar")))
    >>> t = np.arange(0.0, 2.0, 0.002)
    >>> data = hc.Measurements(t, 1.0 + 0.3 * np.sin(6.0 * t), np.cos(6.0 * t))
    >>> found = hc.residual_diagnosis(hc.regression(model, data, lag=0.0), model.values)
    >>> found.share.shape
    (1, 9)
    """

    findings: tuple[str, ...]
    labels: tuple[str, ...]
    follows: tuple[str, ...]
    share: Array
    relative: Vector
    repeats: Vector

    def __post_init__(self) -> None:
        freeze(self)

    def __str__(self) -> str:
        return "\n".join(self.findings or ("the residuals follow no motion",))


@quiet
def residual_diagnosis(data: Regression, p: Any) -> ResidualDiagnosis:
    """What a model lacks: which motion the residual of each motor follows.

    Parameters
    ----------
    data : Regression
        Measurements, best others than those of the fit.
    p : (p,) array_like
        Parameters, in the order of ``data.model.names``.

    Returns
    -------
    ResidualDiagnosis

    Raises
    ------
    InputError
        For a wrong shape.

    See Also
    --------
    measurement_diagnosis : what is wrong with measurements, before a fit.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> model = hc.Parameters(hc.load(hc.robot_file("four_bar")))
    >>> t = np.arange(0.0, 2.0, 0.002)
    >>> data = hc.Measurements(t, 1.0 + 0.3 * np.sin(6.0 * t), np.cos(6.0 * t))
    >>> hc.residual_diagnosis(hc.regression(model, data, lag=0.0), model.values).labels
    ('crank',)
    """
    mech = data.model.mech
    p = vector("p", p, len(data.model.names), "in the order of names")
    r = data.y - data.W @ p
    n, g = r.shape
    B = mech.B
    share, findings = np.zeros((g, len(CAUSES))), list[str]()
    size, spread = np.sqrt(np.mean(data.y**2, axis=0)), np.sqrt(np.mean(r**2, axis=0))
    repeats = np.sum(r[1:] * r[:-1], axis=0) / np.maximum(np.sum(r**2, axis=0), 1e-300)
    for i, name in enumerate(data.labels):
        motor = mech.actuator_names.index(name) if name in mech.actuator_names else None
        if motor is None or not spread[i]:
            continue
        v, a = data.v @ B[:, motor], data.a @ B[:, motor]
        x = np.concatenate([[0.0], np.cumsum(0.5 * (v[1:] + v[:-1]) * np.diff(data.t))])
        share[i] = _shares(r[:, i], data.y[:, i], data.t, x, v, a)
        order = np.argsort(-share[i])
        if share[i, order[0]] > FOLLOWS and n * share[i, order[0]] > 10.0:
            what = list(CAUSES)[order[0]]
            findings.append(
                f"{name!r}: {share[i, order[0]]:.0%} of the residual follows the {what}: "
                f"{CAUSES[what]}"
            )
    relative = np.divide(spread, size, out=np.zeros(g), where=size > 0.0)
    return ResidualDiagnosis(tuple(findings), data.labels, tuple(CAUSES), share, relative, repeats)


def _shares(r: Vector, y: Vector, t: Vector, x: Vector, v: Vector, a: Vector) -> Vector:
    """The share of r that each motion of `CAUSES` explains, apart from a constant."""
    fast = max(float(np.abs(v).max()), 1e-300)
    motions = (
        np.sign(v), v, v * np.abs(v), np.sign(v) * np.exp(-((v / (0.1 * fast)) ** 2)), x, a,
        np.gradient(y, t), (t - t.mean()) * np.sign(v),
    )  # fmt: skip
    found = [r.mean() ** 2 / np.mean(r**2)]
    centred = r - r.mean()
    for motion in motions:
        m = motion - motion.mean()
        size = float(m @ m) * float(r @ r)
        found.append(float(centred @ m) ** 2 / size if size > 0.0 else 0.0)
    return np.array(found)
