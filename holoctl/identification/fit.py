"""Parameters from the equations of a measured motion: physically consistent, near a prior.

    1. noise of each label, from the residuals of plain least squares in base parameters
    2. rows weighted by it, compressed by QR
    3. the strength of the prior by folds: blocks of time that are left out and predicted
    4. the program of consistent_program.py

The cost is the sum of squares of residuals over their standard deviation, so that a strength is the
inverse of a variance: 25 is a prior whose relative errors are 20 %.
Reference: docs/derivations-identification.md.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from holoctl.base.checks import (
    Array,
    Vector,
    counted,
    file_path,
    freeze,
    listing,
    one_of,
    positive,
    quiet,
    quoted,
    unpickled,
    vector,
    whole,
)
from holoctl.base.errors import InputError
from holoctl.base.linalg import least_squares
from holoctl.base.single_threaded_blas import one_thread
from holoctl.identification.base_parameters import BaseParameters
from holoctl.identification.columns import body_names
from holoctl.identification.consistent_program import (
    Consistent,
    body_parameters,
    consistent_program,
)
from holoctl.identification.diagnosis import OPPOSITE, doubts
from holoctl.identification.inertia_ellipsoids import InertiaEllipsoid, inertia_ellipsoid
from holoctl.identification.measurements import Measurements
from holoctl.identification.noise import (
    check_regression,
    compressed,
    effects,
    flat,
    intervals_of,
    thinning,
    weighted,
)
from holoctl.identification.parameters import Parameters
from holoctl.identification.pseudo_inertia import pseudo_inertia
from holoctl.identification.regression import Regression, regression
from holoctl.io.written_robot import written_robot
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["Fit", "identify"]

log = logging.getLogger(__name__)

METHODS = ("pullback", "entropic", "least squares")

SUFFIXES = (".urdf", ".yaml", ".yml")

FOLDS = 5
"""Blocks of time of a held-out choice of the strength."""

STRENGTHS = tuple(10.0 ** (0.5 * k) for k in range(8, -5, -1))
"""The strengths that are tried, from the strongest."""

BAD, MUCH_BETTER, OTHER_UNITS = 0.3, 3.0, 30.0
"""Relative residuals of a fit that is suspected of efforts with other signs; the improvement that
proves them; the factor between measured efforts and those of the prior that is told."""

DATA_FIRST = 10.0
"""Where signs are compared, residuals of 1/DATA_FIRST of those of the bad fit count as noise: with
more noise the prior would decide."""

LOST = 2.0
"""Largest residual of parameters by least squares, relative to the noise."""

WORSE = 2
"""The search ends this many powers of ten below the best strength."""


@dataclass(frozen=True, eq=False)
class Fit:
    """Identified parameters, the result of `identify`.

    Attributes
    ----------
    model : Parameters
    method : str
    p : (p,) array
        In the order of ``model.names``. With ``"least squares"``: the shortest change of the prior
        that gives these base parameters; no body has them.
    prior : (p,) array
    base : BaseParameters
        The combinations that these data can tell apart.
    intervals : (b, 2) array
        95 % intervals of the base parameters, in the order of ``base.expressions``: of plain least
        squares, from the data alone.
    sigma : mapping of str to float
        Standard deviation of the residuals of each label, N m or N.
    strength : float
        Of the prior: the inverse of the variance of its relative errors. 0 for least squares.
    folds : mapping of float to tuple of float
        For each strength that was tried, the root mean square of the residuals of each block that
        was left out, relative to the noise: 1 is a perfect prediction. Empty without a choice.
    active : tuple of str
        Bounds that bind: bodies at the limit of physical consistency, and parameters by name.
    least_eigenvalues : mapping of str to float
        Of the pseudo-inertia of each body, SI units.

    See Also
    --------
    identify : returns it.
    identify_load : a payload on the identified robot.

    Examples
    --------
    >>> import holoctl as hc
    >>> from holoctl.results import Fit
    >>> Fit.__name__
    'Fit'
    """

    model: Parameters
    method: str
    p: Vector
    prior: Vector
    base: BaseParameters
    intervals: Array
    sigma: Mapping[str, float]
    strength: float
    folds: Mapping[float, tuple[float, ...]]
    active: tuple[str, ...]
    least_eigenvalues: Mapping[str, float]

    def __post_init__(self) -> None:
        freeze(self)

    __setstate__ = unpickled

    def __repr__(self) -> str:
        binds = f", {counted(len(self.active), 'active bound')}" if self.active else ""
        how = self.method if self.method == "least squares" else f"{self.method} {self.strength:g}"
        return (
            f"<Fit of {self.model.mech.name!r}: {counted(self.p.size, 'parameter')}, "
            f"{self.base.rank} of which the data can tell apart; {how}{binds}>"
        )

    def __str__(self) -> str:
        lines = [repr(self)[1:-1]]
        if self.method == "least squares":
            rows = zip(self.base.expressions, self.base.of(self.prior), self.base.of(self.p),
                       self.intervals, strict=True)  # fmt: skip
            lines += [f"{'prior':>12} {'fit':>12}   95 % interval"]
            lines += [f"{a:12.5g} {b:12.5g}   [{low:.5g}, {high:.5g}] {name}"
                      for name, a, b, (low, high) in rows]  # fmt: skip
            return "\n".join(lines)
        wide = max(map(len, self.model.names))
        lines.append(f"{'':{wide}} {'prior':>12} {'fit':>12} {'change':>12}")
        lines += [
            f"{name:{wide}} {a:12.5g} {b:12.5g} {b - a:12.3g}"
            for name, a, b in zip(
                self.model.names, self.prior.round(12), self.p.round(12), strict=True
            )
        ]
        if self.active:
            lines.append("active bounds: " + ", ".join(self.active))
        return "\n".join(lines)

    @property
    def values(self) -> dict[str, float]:
        """The parameters by name."""
        return dict(zip(self.model.names, self.p.tolist(), strict=True))

    def mechanism(self) -> Mechanism:
        """The mechanism with these parameters; see `Parameters.mechanism`.

        Raises
        ------
        InputError
            For a fit by least squares, which no bodies have.
        """
        self._check_consistent("mechanism()")
        return self.model.mechanism(self.p)

    def _check_consistent(self, what: str) -> None:
        if self.method == "least squares":
            raise InputError(
                f"{what}: plain least squares gives base parameters only, and the inertias of its "
                "p are none that bodies have; use method='pullback' or 'entropic'"
            )

    def save(self, path: Any) -> tuple[Path, Path]:
        """Write the identified robot as URDF, and as YAML beside it: `load` reads both.

        Names are kept. Offsets of efforts and own parameters, which are no part of a robot, are
        left out, and so are shapes of bodies, comments and units of the file the robot came from.

        Parameters
        ----------
        path : str or path
            Of either file: the other one has the same name, with the other suffix.

        Returns
        -------
        urdf, yaml : Path

        Raises
        ------
        InputError
            For a fit by least squares, another suffix, a folder that does not exist, and for what
            these files cannot describe: functions of the user, contacts, a matrix of motors,
            another gravity. Nothing is written then.
        """
        self._check_consistent("save()")
        to = file_path("save: path", path)
        if to.suffix not in SUFFIXES:
            raise InputError(
                f"save: path must end with {' or '.join(SUFFIXES)}; got {quoted(str(to))}"
            )
        if not to.parent.is_dir():
            raise InputError(f"save: there is no folder {str(to.parent)!r}")
        texts = written_robot(self.mechanism())
        files = to.with_suffix(".urdf"), to.with_suffix(".yml" if to.suffix == ".yml" else ".yaml")
        for file, text in zip(files, texts, strict=True):
            file.write_text(text, encoding="utf-8")
        return files

    def errors(self, test: Any) -> dict[str, float]:
        """How well another motion is predicted.

        Parameters
        ----------
        test : Regression or Measurements
            Of the same parameters; measurements go through `regression` with its defaults.

        Returns
        -------
        dict of str to float
            For each label the root mean square of ``W p - y``, relative to that of y; of passive
            motions, which have no measured effort, to that of the parts of ``W p``. inf where
            efforts are zero.

        Raises
        ------
        InputError
            For a regression of other parameters.
        """
        data = self._regression("errors", test)
        missed = data.W @ self.p - data.y
        size = np.sqrt(np.mean(data.y**2, axis=0))
        of_parts = np.sqrt(np.mean(np.sum((data.W * self.prior) ** 2, axis=2), axis=0))
        passive = np.array([x.startswith("passive") for x in data.labels])
        size[passive] = of_parts[passive]
        found = np.full(size.size, np.inf)
        np.divide(np.sqrt(np.mean(missed**2, axis=0)), size, out=found, where=size > 0.0)
        return dict(zip(data.labels, found.tolist(), strict=True))

    def _regression(self, what: str, data: Any) -> Regression:
        """The equations of data, with the parameters of this fit."""
        if isinstance(data, Measurements):
            return regression(self.model, data)
        check_regression(what, data)
        own, other = self.model, data.model
        if own.names != other.names or not np.array_equal(own.theta(self.p), other.theta(self.p)):
            raise InputError(
                f"{what}: the regression is of {other!r} and the fit of {own!r}; "
                "make it with the model of the fit"
            )
        found: Regression = data
        return found

    def ellipsoids(self) -> dict[str, tuple[InertiaEllipsoid, InertiaEllipsoid]]:
        """For each body with a mass its ellipsoids of inertia in the prior and the fit: bodies of
        uniform density with this mass, centre and inertia.

        Raises
        ------
        InputError
            For a fit by least squares.
        """
        self._check_consistent("ellipsoids()")
        before, after = (body_parameters(self.model, p) for p in (self.prior, self.p))
        return {
            name: (inertia_ellipsoid(before[name]), inertia_ellipsoid(ten))
            for name, ten in after.items()
            if ten[0] > 0.0 and before[name][0] > 0.0
        }


@quiet
def identify(
    data: Regression,
    prior: Any = None,
    *,
    strength: Any = "holdout",
    method: str = "pullback",
    folds: int = FOLDS,
) -> Fit:
    """Parameters of a mechanism from the equations along a measured motion.

    Parameters
    ----------
    data : Regression
    prior : Mechanism or (p,) array_like, optional
        Where parameters stay that the data do not tell apart, such as CAD: the same mechanism with
        other masses, or values in the order of ``data.model.names``. Default: those of the model.
    strength : "holdout" or float, optional
        Of the prior: the inverse of the variance of its relative errors, 25 for 20 %. Default: the
        one of 1e4 to 1e-2 that best predicts blocks of time which the fit has not seen.
    method : str, optional
        ``"pullback"`` or ``"entropic"``: the distance of bodies from the prior; both are physically
        consistent. ``"least squares"``: base parameters only, no prior, no mechanism.
    folds : int, optional
        The number of blocks of time for ``"holdout"``, at least 2.

    Returns
    -------
    Fit

    Raises
    ------
    InputError
        For too few equations, a motion that does not move, a prior of another mechanism, and a
        strength that is not above 0.
    InconsistentError
        If the solver finds no physically consistent parameters, as when known ones contradict each
        other.

    See Also
    --------
    Parameters : what may be unknown.
    regression : the equations.
    identify_load, identify_gains : with this fit.

    References
    ----------
    T. Lee, P. Wensing, F. Park, Geometric robot dynamic identification: a convex programming
    approach, 2020.

    Examples
    --------
    >>> import holoctl as hc
    >>> try:
    ...     hc.identify("log.csv")
    ... except hc.InputError as error:
    ...     print(error)
    identify: data must be a Regression; got str: hc.regression(model, measurements) makes one
    """
    check_regression("identify", data)
    one_of("method", method, METHODS)
    if strength != "holdout":
        strength = positive("strength", strength, '1 over a variance, or "holdout"')
    with one_thread():
        return _fitted(data, prior_values(data.model, prior), strength, method, folds)


def _fitted(data: Regression, at: Vector, strength: Any, method: str, folds: int) -> Fit:
    """The fit about a prior p (p,)."""
    thin = thinning(data)
    base, rows, sigma, beta = weighted(data, thin)
    named = dict(zip(data.labels, sigma.tolist(), strict=True))
    intervals = intervals_of(rows, base, beta, thin)
    if not base.decided:
        log.warning("%s: the rank of these data is uncertain: %r", data.model.mech.name, base)
    if method == "least squares":
        p = at + least_squares(base.matrix, beta - base.of(at))
        _check_numbers(data, p, sigma)
        _tell(data, doubts(data, at, p))
        eigenvalues = _least_eigenvalues(data.model, p)
        return Fit(data.model, method, p, at, base, intervals, named, 0.0, {}, (), eigenvalues)
    program = consistent_program(data.model, at, effects(data))
    tried: dict[float, tuple[float, ...]] = {}
    if strength == "holdout":
        strength, tried = _by_folds(program, rows / thin**0.5, method, folds)
    p = program.solve(compressed(flat(rows) / thin**0.5), strength, method)
    _check_signs(program, data, p, strength, method)
    _tell(data, doubts(data, at, p))
    return Fit(
        data.model, method, p, at, base, intervals, named, strength, tried, program.active(p),
        _least_eigenvalues(data.model, p),
    )  # fmt: skip


def _tell(data: Regression, findings: list[str]) -> None:
    for text in findings:
        log.warning("%s: %s", data.model.mech.name, text)


def _check_numbers(data: Regression, p: Vector, sigma: Vector) -> None:
    """Raise `InputError` if rounding of p is larger than the noise."""
    missed = np.sqrt(np.mean((data.W @ p - data.y) ** 2, axis=0))
    if not (missed <= LOST * sigma).all():
        raise InputError(
            f"{data.model.mech.name}: the motion excites too little for least squares without a "
            f"prior: their parameters predict the efforts that they are of worse by "
            f"{float((missed / sigma).max()):.2g} times, for rounding; measurement_diagnosis tells "
            "which parameters are lost, and method='pullback' has a prior for them"
        )


def prior_values(model: Parameters, prior: Any) -> Vector:
    """The prior p (p,): values as given, or those of a mechanism.

    Raises
    ------
    InputError
        For a mechanism with other joints, placements or bodies than those of the model.
    """
    if prior is None:
        return np.array(model.values)
    if not isinstance(prior, Mechanism):
        found = vector("prior", prior, len(model.names), "in the order of model.names")
        for i in np.flatnonzero(found < model.lower):
            raise InputError(f"prior: {model.names[i]} must not be negative; got {found[i]:g}")
        return found
    mech = model.mech
    same = prior.coordinate_names == mech.coordinate_names and all(
        a.isApprox(b, 1e-6)
        for a, b in zip(prior.model.jointPlacements, mech.model.jointPlacements, strict=True)
    )
    if not same or body_names(prior) != body_names(mech):
        raise InputError(
            f"prior: {prior.name!r} is another mechanism than {mech.name!r}, whose parameters the "
            "data are of: joints, their placements and bodies must be the same, only masses, "
            "friction, springs and rotors may differ"
        )
    other = Parameters(
        prior, model.bodies, tuple(model._laws) or None, model.transition, model.stribeck,
        model.rotors, model.springs, model.offsets, columns=model.columns,
    )  # fmt: skip
    of = dict(zip(other.every, other.theta(other.values), strict=True))
    missing = [n for n in model.names if n not in of and not n.endswith((".rotor", ".stribeck"))]
    if missing:
        raise InputError(f"prior: {prior.name!r} has no {listing(missing, 6)}")
    return np.array([of.get(name, 0.0) for name in model.names])


def _by_folds(
    program: Consistent, rows: Array, method: str, folds: int
) -> tuple[float, dict[float, tuple[float, ...]]]:
    """The strength that best predicts blocks of time that are left out, and what was tried."""
    count = whole("folds", folds, 2)
    if count > len(rows) // 2:
        raise InputError(
            f"folds: {counted(len(rows), 'sample')} give at most {len(rows) // 2} blocks of two; "
            f"got {count}"
        )
    blocks = [compressed(flat(block)) for block in np.array_split(rows, count)]
    sizes = [block.shape[0] * block.shape[1] for block in np.array_split(rows, count)]
    others = [compressed(np.vstack(blocks[:i] + blocks[i + 1 :])) for i in range(count)]
    tried: dict[float, tuple[float, ...]] = {}
    for strength in STRENGTHS:
        found = []
        for block, other, n in zip(blocks, others, sizes, strict=True):
            p = program.solve(other, strength, method)
            found.append(float(np.linalg.norm(block @ np.append(p, -1.0))) / n**0.5)
        tried[strength] = tuple(found)
        best = min(tried, key=lambda s: float(np.mean(np.square(tried[s]))))
        if strength < best * 10.0**-WORSE:
            break
    return best, tried


def _check_signs(
    program: Consistent, data: Regression, p: Vector, strength: float, method: str
) -> None:
    """Raise `InputError` if the fit is much better with efforts of another sign; log a
    warning if efforts are of another size than those of the prior."""
    usual = np.maximum(np.sqrt(np.mean(data.y**2, axis=0)), 1e-300)
    W, y = data.W / usual[:, None], data.y / usual

    def missed(p: Vector, signs: Vector) -> float:
        return float(np.sqrt(np.mean((W @ p - signs * y) ** 2)))

    g, own = len(data.labels), missed(p, np.ones(len(data.labels)))
    size = np.linalg.norm(y, axis=0) * np.linalg.norm(W @ program.centre, axis=0)
    opposite = (np.sum(y * (W @ program.centre), axis=0) < OPPOSITE * size).any()
    weight = DATA_FIRST / max(own, 1e-300)

    def best(signs: Vector) -> float:
        rows = np.concatenate([W, (signs * y)[:, :, None]], axis=2) * weight
        return missed(program.solve(compressed(flat(rows)), strength, method), signs)

    doubted = own > BAD or opposite
    if doubted:
        own = min(own, best(np.ones(g)))
    for signs in (-np.ones(g), *(1.0 - 2.0 * np.eye(g))) if doubted else ():
        better = own / max(best(signs), 1e-300)
        if better > MUCH_BETTER:
            which = [x for x, s in zip(data.labels, signs, strict=True) if s < 0.0]
            raise InputError(
                f"{data.model.mech.name}: the fit is better by {better:.3g} times with the efforts "
                f"of {listing(which)} negated; u acts along the coordinates of the motors"
            )
    times = float(np.linalg.norm(y) / max(float(np.linalg.norm(W @ program.centre)), 1e-300))
    if not 1.0 / OTHER_UNITS < times < OTHER_UNITS:
        log.warning(
            "%s: the efforts are %.2g times those of the prior; units are N m and N, after gears",
            data.model.mech.name, times,
        )  # fmt: skip


def _least_eigenvalues(model: Parameters, p: Vector) -> dict[str, float]:
    """Of the pseudo-inertia of each body, SI units."""
    return {
        name: float(np.linalg.eigvalsh(pseudo_inertia(ten))[0])
        for name, ten in body_parameters(model, p).items()
    }
