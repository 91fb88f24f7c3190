"""A payload on an identified robot.

pi are its ten parameters in a frame of a body b, T pi those in the axes of the joint of b, p those
of the fit:

    y - W p = W_b T pi        J(pi) >= 0

Reference: docs/derivations-identification.md.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from holoctl.base.checks import Array, Vector, freeze, quiet, unpickled
from holoctl.base.errors import InconsistentError, InputError
from holoctl.base.linalg import null_space_by_svd, singular_values
from holoctl.base.single_threaded_blas import one_thread
from holoctl.identification.base_parameters import equilibrated, gap_rank
from holoctl.identification.columns import BODY_PARAMETERS, body_names
from holoctl.identification.fit import Fit
from holoctl.identification.noise import compressed, flat, thinning
from holoctl.identification.parameters import Parameters
from holoctl.identification.pseudo_inertia import MOMENTS, in_frame, pseudo_inertia
from holoctl.tree.frames import Frame, resolve_frame

__all__ = ["Load", "columns_at", "identify_load"]

DETERMINED = 1e-7
"""A parameter is determined if its unit vector is in the row space of the equations, to this."""

UNDETERMINED = 1e-9
"""The weight that keeps parameters small which the equations do not determine."""


@dataclass(frozen=True, eq=False)
class Load:
    """A payload at a frame, the result of `identify_load`.

    Attributes
    ----------
    frame : str
    mass : float
        kg.
    centre : (3,) array
        Of mass, m, in the axes of the frame; nan for coordinates that the data do not determine.
    inertia : (3, 3) array
        About the centre of mass, in the axes of the frame, kg m^2; nan likewise.
    parameters : (10,) array
        Mass, first moment and inertia about the origin of the frame, in the order of
        ``Parameters``: m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz; nan likewise.
    sigma : (10,) array
        Their standard deviations, from the residuals; inf where they are not determined.
    determined : tuple of str
        Of ``"m"``, ``"mx"`` and so on, those that the data determine.

    See Also
    --------
    identify_load : returns it.

    Examples
    --------
    >>> from holoctl.results import Load
    >>> Load.__name__
    'Load'
    """

    frame: str
    mass: float
    centre: Vector
    inertia: Array
    parameters: Vector
    sigma: Vector
    determined: tuple[str, ...]

    def __post_init__(self) -> None:
        freeze(self)

    __setstate__ = unpickled

    def __repr__(self) -> str:
        return (
            f"<Load at {self.frame!r}: {self.mass:.4g} +- {self.sigma[0]:.1g} kg, centre at "
            f"{np.array2string(self.centre, precision=3)} m>"
        )


@quiet
def identify_load(fit: Fit, data: Any, frame: Any) -> Load:
    """Mass, centre of mass and inertia of a payload, from a motion of the loaded robot.

    The parameters of the robot stay as in the fit.

    Parameters
    ----------
    fit : Fit
        Of the robot without load, physically consistent or by least squares.
    data : Regression or Measurements
        Of the robot with the load, with the model of the fit; measurements go through `regression`
        with its defaults.
    frame : str or (str, pin.SE3)
        The frame that carries the load, as in `Closure`.

    Returns
    -------
    Load

    Raises
    ------
    InputError
        For an unknown frame, one on a body that is known or tied in the fit, and a motion that does
        not determine the mass.
    InconsistentError
        If the solver finds no payload.

    See Also
    --------
    identify : the robot itself.
    MomentumObserver : a load at every tick, as a force.

    Examples
    --------
    >>> import holoctl as hc
    >>> try:
    ...     hc.identify_load("robot.yaml", None, "platform")
    ... except hc.InputError as error:
    ...     print(error)
    identify_load: fit must be a Fit, the result of identify; got str
    """
    if not isinstance(fit, Fit):
        raise InputError(
            f"identify_load: fit must be a Fit, the result of identify; got {type(fit).__name__}"
        )
    at = resolve_frame(fit.model.mech.model, frame, "identify_load")
    columns, T = columns_at(fit.model, at), in_frame(at.placement)
    rows = fit._regression("identify_load", data)
    sigma = np.array([fit.sigma.get(label, np.nan) for label in rows.labels])
    if np.isnan(sigma).any():
        raise InputError(
            f"identify_load: the rows of the regression, {rows.labels}, are not those of the fit, "
            f"{tuple(fit.sigma)}"
        )
    W = rows.W[:, :, columns] @ T / sigma[:, None]
    r = (rows.y - rows.W @ fit.p) / sigma
    with one_thread():
        R = compressed(flat(np.concatenate([W, r[:, :, None]], axis=2)))
        return _load(at, R, rows.y.size / thinning(rows), thinning(rows))


def columns_at(model: Parameters, at: Frame) -> list[int]:
    """The columns of the body that carries a frame."""
    if at.joint == 0:
        raise InputError(f"the frame {at.name!r} is fixed to the world, which moves no load")
    body = body_names(model.mech)[at.joint - 1]
    wanted = [f"{body}.{x}" for x in BODY_PARAMETERS]
    group = next((g for g in model.tied if body in g), None)
    if group or not set(wanted) <= set(model.names):
        how = f"tied to {group}" if group else "not unknown in the fit, or only in part"
        raise InputError(
            f"the frame {at.name!r} is on the body {body!r}, which is {how}: a load changes all "
            "its ten parameters, and the equations need their columns; name it in bodies="
        )
    return [model.names.index(x) for x in wanted]


def _load(at: Frame, R: Array, count: float, thin: float) -> Load:
    """The load from compressed rows ``[W r]`` over the noise of the fit, `count` of them
    independent."""
    A, b = R[:, :-1], R[:, -1]
    norms, seen = equilibrated(A)
    scale = np.where(seen, 1.0 / np.where(seen, norms, 1.0), 0.0)
    rank = gap_rank(singular_values(A * scale), A.shape)[0] if seen.any() else 0
    _, s, V, null = null_space_by_svd(A * scale, rank)
    fixed = seen & (np.linalg.norm(null, axis=1) < DETERMINED)
    if not fixed[0]:
        raise InputError(
            f"the motion does not determine the mass of a load at {at.name!r}: move it against "
            "gravity, or accelerate it"
        )
    ten = _nearest_body(at, A, b, np.where(seen, norms, norms[0]))
    missed = float(np.linalg.norm(A @ ten - b)) / max(count - rank, 1.0) ** 0.5
    spread = scale * np.linalg.norm(V / s, axis=1)
    sigma = np.where(fixed, spread * max(missed, thin**0.5), np.inf)
    mass, known = float(ten[0]), np.where(fixed, ten, np.nan)
    c = known[1:4] / mass if mass > 0.0 else np.full(3, np.nan)
    moments = np.empty((3, 3))
    for (i, k), x in zip(MOMENTS, known[4:], strict=True):
        others = np.delete(c, i)
        moments[i, k] = moments[k, i] = x + mass * (c[i] * c[k] if i != k else -others @ others)
    determined = tuple(w for w, x in zip(BODY_PARAMETERS, fixed, strict=True) if x)
    return Load(at.name, mass, c, moments, known, sigma, determined)


def _nearest_body(at: Frame, A: Array, b: Vector, norms: Vector) -> Vector:
    """The ten parameters of least ``|A ten - b|`` that a body has. Bodies are a cone, so b is
    scaled to norm 1."""
    cp: Any = import_module("cvxpy")
    size, x = float(np.linalg.norm(b)), cp.Variable(10)
    if not size > 0.0:
        return np.zeros(10)
    D = np.array([*[norms[4:].mean() ** 0.5] * 3, norms[0] ** 0.5])
    E = [(D[:, None] * pseudo_inertia(e) * D).ravel() for e in np.diag(1.0 / norms)]
    J = cp.Variable((4, 4), symmetric=True)
    cost = cp.sum_squares((A / norms) @ x - b / size) + UNDETERMINED * cp.sum_squares(x)
    problem = cp.Problem(cp.Minimize(cost), [cp.vec(J, order="F") == np.array(E).T @ x, J >> 0])
    with warnings.catch_warnings(), suppress(cp.SolverError):
        warnings.simplefilter("ignore")  # the status shows an inaccurate solution
        problem.solve(solver=cp.CLARABEL)
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise InconsistentError(f"Clarabel found no load at {at.name!r} ({problem.status})")
    found: Vector = x.value * size / norms
    found[0] = max(found[0], 0.0)
    return found
