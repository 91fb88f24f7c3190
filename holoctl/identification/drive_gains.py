"""Drive gains: efforts of motors by their currents.

Motors with currents i give efforts diag(k) i, and a known load has parameters T pi on a body b:

    W p + W_b T pi + known = diag(k) i

A motion without load determines p and k but for a common factor, one with the load the factor. The
noise is that of currents, so the squares of ``diag(k)^-1 (W p + W_b T pi + known) - i`` are
minimised; the first guess minimises those of the linear equation.
Source: M. Gautier, S. Briot, Global identification of joint drive gains and dynamic parameters of
robots, 2014.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import least_squares as gauss_newton

from holoctl.base.checks import Array, Vector, freeze, positive, quiet, shaped, unpickled, vector
from holoctl.base.errors import InputError, SingularityError
from holoctl.base.linalg import largest, least_squares, singular_values
from holoctl.base.single_threaded_blas import one_thread
from holoctl.identification.base_parameters import base_of, check_parameters
from holoctl.identification.load import columns_at
from holoctl.identification.measurements import Measurements
from holoctl.identification.noise import check_regression, compressed, deviations, flat
from holoctl.identification.parameters import Parameters, parameter_rows
from holoctl.identification.pseudo_inertia import in_frame
from holoctl.identification.regression import regression
from holoctl.projector.projection import project
from holoctl.tree.frames import resolve_frame
from holoctl.tree.inertia_checks import check_moments, rigid_body

__all__ = ["DriveGains", "identify_gains"]

SCALE_LOST = 1e6
"""Condition number of the equations of gains above which they are not determined."""

ZERO = 1e-9
"""Known efforts below this, relative to those of the parameters, are zero."""


@dataclass(frozen=True, eq=False)
class DriveGains:
    """Efforts of motors by their currents, the result of `identify_gains`.

    Attributes
    ----------
    gains : mapping of str to float
        Of each motor, N m/A or N/A: effort = gain x current.
    sigma : mapping of str to float
        Their standard deviations, from the residuals.

    See Also
    --------
    identify_gains : returns it.

    Examples
    --------
    >>> from holoctl.results import DriveGains
    >>> DriveGains({"left": 0.1}, {"left": 0.001}).gains["left"]
    0.1
    """

    gains: Mapping[str, float]
    sigma: Mapping[str, float]

    def __post_init__(self) -> None:
        freeze(self)

    __setstate__ = unpickled

    def __repr__(self) -> str:
        found = (f"{n} {k:.4g} +- {self.sigma[n]:.1g}" for n, k in self.gains.items())
        return f"<DriveGains: {', '.join(found)}>"


@quiet
def identify_gains(
    model: Parameters,
    free: Any,
    loaded: Any,
    frame: Any,
    mass: float,
    centre: Any = (0.0, 0.0, 0.0),
    inertia: Any = None,
) -> DriveGains:
    """The gains of drives whose currents are measured, from a motion without a load and one with a
    known load.

    Parameters
    ----------
    model : Parameters
        What is unknown of the robot; all bodies, as a rule.
    free, loaded : Measurements or Regression
        Motions without and with the load; efforts are currents, A.
    frame : str or (str, pin.SE3)
        The frame that carries the load, as in `Closure`.
    mass : float
        Of the load, kg.
    centre : (3,) array_like, optional
        Its centre of mass, m, in the axes of the frame. Default: the origin.
    inertia : (3, 3) array_like, optional
        About the centre, kg m^2, in the axes of the frame. Default: a point.

    Returns
    -------
    DriveGains

    Raises
    ------
    InputError
        For a mechanism with more motors than motions, or passive motions; a load that no body is; a
        frame on a body that is known or tied; a regression of currents with known forces, which are
        in other units.
    SingularityError
        If the two motions do not determine the gains.

    See Also
    --------
    identify : with efforts = gains x currents.

    Examples
    --------
    >>> import holoctl as hc
    >>> try:
    ...     hc.identify_gains("robot.urdf", None, None, "platform", 1.0)
    ... except hc.InputError as error:
    ...     print(error)
    expected Parameters; got str: hc.Parameters(mech, ...) makes them
    """
    check_parameters(model)
    at = resolve_frame(model.mech.model, frame, "identify_gains")
    own = np.zeros((3, 3)) if inertia is None else np.asarray(inertia, dtype=float)
    own = shaped("inertia", own.ravel(), 9).reshape(3, 3)
    check_moments("identify_gains: inertia", own)
    body = rigid_body(positive("mass", mass, "kg"), vector("centre", centre, 3), own)
    ten = in_frame(at.placement) @ body.toDynamicParameters()
    columns = columns_at(model, at)
    parts = [_of_currents(model, x) for x in (free, loaded)]
    of_load = parts[1][0][:, :, columns] @ ten
    W, U, known = (np.concatenate(x) for x in zip(*parts, strict=True))
    known[len(W) - len(of_load) :] += of_load
    with one_thread():
        return _gains(model, W, U, known)


def _of_currents(model: Parameters, data: Any) -> tuple[Array, Array, Array]:
    """W (s, g, p), currents (s, g) and known efforts (s, g) along a motion."""
    if isinstance(data, Measurements):
        found = regression(model, data)
        without = regression(model, replace(data, efforts=np.zeros_like(data.efforts)))
        currents, known = found.y - without.y, -without.y
    else:
        check_regression("identify_gains", data)
        found, currents = data, np.array(data.y)
        known = np.zeros_like(currents)
        P = project(found.model.mech, found.q[0], found.v[0])
        rows, rest = parameter_rows(found.model, P, found.a[0])
        if largest(rest) > ZERO * max(largest(rows * found.model.values), 1e-300):
            raise InputError(
                f"{model.mech.name}: the regression has known efforts, N m or N, beside currents, "
                "A; give the Measurements, or name these forces and bodies unknown"
            )
    if found.model.names != model.names:
        raise InputError(f"identify_gains: the regression is of {found.model!r}, not of {model!r}")
    if found.labels != model.mech.actuator_names:
        raise InputError(
            f"{model.mech.name}: the rows are {found.labels}; gains are identified where each "
            "motor has a row of its own: as many motors as motions, and no passive motions"
        )
    return found.W, currents, known


def _gains(model: Parameters, W: Array, U: Array, known: Array) -> DriveGains:
    """Gains from ``W p + known = diag(k) U``."""
    s, g, _ = W.shape
    base = base_of(model, compressed(flat(W)))
    at = [model.names.index(name) for name in base.independent]
    norms = np.linalg.norm(flat(W[:, :, at]), axis=0)
    W = W[:, :, at] / norms
    motors = U[:, :, None] * np.eye(g)
    size = np.maximum(np.linalg.norm(U, axis=0), 1e-300)
    A = flat(np.concatenate([W, -motors / size], axis=2))
    s_values = singular_values(compressed(A))
    if not s_values[-1] * SCALE_LOST > s_values[0]:
        raise SingularityError(
            f"{model.mech.name}: the motions do not determine the gains: currents and motions with "
            "and without the load are alike; move the load more, and all motors",
            condition=float(s_values[0] / s_values[-1]) if s_values[-1] else float("inf"),
        )
    x = least_squares(A, -known.ravel())
    if not (x[base.rank :] != 0.0).all():
        raise SingularityError(f"{model.mech.name}: a gain is zero: its currents are")
    x = np.concatenate([x[: base.rank], size / x[base.rank :]])  # now 1 / k
    sigma = np.ones(g)

    def missed(x: Vector) -> Vector:
        found = ((W @ x[: base.rank] + known) * x[base.rank :] - U) / sigma
        return np.asarray(found).ravel()

    def slope(x: Vector) -> Array:
        of_p = W * x[base.rank :, None]
        of_k = (W @ x[: base.rank] + known)[:, :, None] * np.eye(g)
        return flat(np.concatenate([of_p, of_k], axis=2) / sigma[:, None])

    sigma = np.maximum(np.sqrt(np.mean(missed(x).reshape(s, g) ** 2, axis=0)), 1e-12 * size)
    x = gauss_newton(missed, x, jac=slope, method="lm", x_scale="jac").x
    k = 1.0 / x[base.rank :]
    spread = deviations(slope(x))[base.rank :]
    left = max(U.size - len(x), 1)
    spread = spread * float(np.linalg.norm(missed(x))) / left**0.5 * k**2
    names = model.mech.actuator_names
    return DriveGains(
        dict(zip(names, k.tolist(), strict=True)), dict(zip(names, spread.tolist(), strict=True))
    )
