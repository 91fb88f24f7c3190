"""User-defined constraints: phi(q) = 0 or phi(q, t) = 0 from callbacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector, finite, flag, positive, quoted
from holoctl.base.errors import InputError
from holoctl.base.tolerances import DIFFERENCE_STATES
from holoctl.constraints.callbacks import Callbacks, check_callables, check_derivatives, scale_of
from holoctl.constraints.constraint_protocol import Evaluate, FramePlacement, Rows, constraint_of
from holoctl.constraints.phi_expression import check_same_rows, rows_at, rows_function, rows_machine
from holoctl.constraints.user_constraints import is_finite, seeded_states
from holoctl.tree.frames import Frame
from holoctl.tree.kinematics import Kinematics
from holoctl.tree.live_motion import LiveMotion

__all__ = ["Custom"]


@dataclass(frozen=True, eq=False)
class Custom:
    """A constraint ``phi(q) = 0``, or ``phi(q, t) = 0``, from a user's functions.

    Derivatives that are not given are computed numerically, with central differences of sixth order
    along the tangent directions of q (steps of 1e-3 rad or m) and along time; this gives about ten
    digits, and costs 6 nv + 8 calls of `phi` for each evaluation, with time 6 more. The directions
    are those of v: d/dt phi = jacobian v, also for joints with quaternions.

    Parameters
    ----------
    phi : callable
        ``phi(q)``, or ``phi(q, t)`` with ``time=True``; returns (rows,) numbers.
    jacobian : callable, optional
        ``jacobian(q)`` or ``jacobian(q, t)``: (rows, nv), the derivative of phi along v.
    drift : callable, optional
        ``drift(q, v)`` or ``drift(q, v, t)``: (rows,), all of the second time derivative of phi at
        zero acceleration, including the terms of time.
    rows : int
        The number of rows, one or more.
    rate_t : callable, optional
        ``rate_t(q, t)``: (rows,), the partial derivative of phi by time.
    time : bool, optional
        Whether the callbacks take the time too.
    scale : float or (rows,) array_like, optional
        The size of phi that counts as "open": for rank, tolerances and certificates, rows are
        divided by it. For lengths, use the size of the mechanism in m. Default: 1.
    name : str, optional
        Default: the name of `phi`.
    t_stab : float, optional
        Time constant of Baumgarte's stabilisation, s. Default: none.
    casadi : callable, optional
        The same phi as an expression: ``casadi(q)``, or ``casadi(q, t)`` with ``time=True``, of a
        `casadi.SX` column q of nq entries; returns a `casadi.SX` of `rows` entries. `hc.compile`
        and `hc.export_c` need it. If CasADi is installed, all functions evaluate this expression
        and its exact derivatives, which takes microseconds, instead of the callbacks. The callbacks
        are used without CasADi, and at states at which the expression is not finite.

    Raises
    ------
    InputError
        For an argument that is not callable, and a scale that is not above zero. Raised by
        `Mechanism` and at every evaluation for callbacks that return the wrong shape or numbers
        that are not finite; by `Mechanism` for derivatives that are not those of `phi`; by
        `Mechanism`, and with every certificate, for an expression that is not `phi`.

    See Also
    --------
    Coupling : linear relations of coordinates.
    GammaQ : an explicit constraint, ``q = gamma(y)``.
    protocols.Constraint : a class of your own, with names and scales of its rows.

    Notes
    -----
    When a mechanism is made, given derivatives are compared with differences once, and `casadi`
    with the callbacks: at seeded states near its reference. States are left out if a callback
    raises an error there or returns numbers that are not finite. Interpolated tables may have
    kinks.

    The result of a callback must depend on its arguments alone. To pickle a mechanism, its
    callbacks must be named functions of a module.

    Examples
    --------
    The right motor mirrors the left one:

    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> def mirrored(q):
    ...     return [q[0] + q[2] - np.pi]
    >>> hc.mobility(mech.with_constraints(hc.Custom(mirrored))).dof
    1
    """

    phi: Callable[..., Any]
    jacobian: Callable[..., Any] | None = None
    drift: Callable[..., Any] | None = None
    rows: int = 1
    rate_t: Callable[..., Any] | None = None
    time: bool = False
    scale: Any = 1.0
    name: str | None = None
    t_stab: float | None = None
    casadi: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        owner = f"Custom {quoted(self.default_name)}"
        given = {what: getattr(self, what) for what in ("jacobian", "drift", "rate_t", "casadi")}
        check_callables(owner, {"phi": self.phi}, given)
        scale = scale_of(owner, self.scale, self.rows)
        object.__setattr__(self, "time", flag(f"{owner}: time", self.time))
        if self.rate_t is not None and not self.time:
            raise InputError(f"{owner}: rate_t needs time=True")
        object.__setattr__(self, "scale", scale)
        if self.t_stab is not None:
            positive(f"{owner}: t_stab", self.t_stab, "s")

    @property
    def default_name(self) -> str:
        """The name as given, or that of `phi`."""
        return self.name if self.name is not None else getattr(self.phi, "__name__", "custom")

    def bind(self, model: pin.Model, name: str, reference: Vector) -> BoundCustom:
        """The rows of this constraint on `model`; the callbacks are evaluated once, at
        `reference`."""
        functions = Callbacks(
            f"Custom {name!r}", model, self.rows, "phi", self.phi, self.jacobian, self.drift,
            self.rate_t, self.time,
        )  # fmt: skip
        functions.evaluate(reference, np.zeros(model.nv), 0.0)
        check_derivatives(functions, reference)
        bound = BoundCustom(self, functions, tuple(f"{name}.{i}" for i in range(self.rows)))
        return replace(bound, expressed=_expressed(bound, reference))


@dataclass(frozen=True, eq=False)
class BoundCustom:
    """A `Custom` tied to a model; `expressed` evaluates its rows from its expression, or is
    None."""

    description: Custom
    functions: Callbacks
    labels: tuple[str, ...]
    expressed: Any = None

    @property
    def owner(self) -> str:
        """The name of the expression, for messages."""
        return f"casadi of constraint {constraint_of(self.labels[0])!r}"

    @property
    def support(self) -> NDArray[np.bool_]:
        """All coordinates: the callbacks may depend on each of them."""
        return np.ones((len(self.labels), self.functions.model.nv), dtype=bool)

    @property
    def anchors(self) -> tuple[Frame, ...]:
        return ()

    def scale(self, length: Vector, columns: Vector) -> Vector:
        """One over the given scale."""
        return 1.0 / np.broadcast_to(np.asarray(self.description.scale, float), length.shape)

    def rows(self, kin: Kinematics) -> Rows:
        """Error, rate, Jacobian and drift at the state of `kin`."""
        if self.expressed is not None:
            found = rows_at(self.expressed, kin.q, kin.v, kin.t)
            if is_finite(found):
                by_phi = replace(found, error=self.functions.value(kin.q, kin.t))
                check_same_rows(self.owner, found, by_phi, ["error"])
                return found
        return self.by_callbacks(kin)

    def by_callbacks(self, kin: Kinematics) -> Rows:
        """The rows by the callbacks, with which the expression is compared."""
        return self.functions.evaluate(kin.q, kin.v, kin.t)

    def tick(self, motion: LiveMotion, rows: Rows) -> Evaluate:
        """The expression, or the callbacks: they do not use `motion`."""
        functions, arrays = self.functions, (rows.error, rows.rate, rows.drift, rows.jacobian)
        flat = [x.reshape(-1) for x in arrays]
        by_expression = None if self.expressed is None else rows_machine(self.expressed, rows)

        def evaluate(q: Vector, v: Vector, t: float) -> None:
            if by_expression is not None:
                by_expression(q, v, t)
                if all(map(finite, flat)):
                    return
            found = functions.evaluate(q, v, t)
            rows.error[:], rows.rate[:], rows.drift[:] = found.error, found.rate, found.drift
            rows.jacobian[:] = found.jacobian

        return evaluate

    @property
    def opaque(self) -> str:
        """Why there is no expression; empty if there is one."""
        if self.description.casadi is not None:
            return ""
        return (
            "its functions are Python; give it casadi=, a function that returns phi as a CasADi "
            "expression"
        )

    def expression(self, q: Any, t: Any, place: FramePlacement | None) -> Any:
        """phi as a `casadi.SX` column, of symbols q and t; checked."""
        d = self.description
        owner = self.owner
        if d.casadi is None:
            raise InputError(f"{owner} is not given")
        try:
            given = d.casadi(q, t) if d.time else d.casadi(q)
        except Exception as error:  # user code may raise anything
            raise InputError(f"{owner} raised {type(error).__name__}: {error}") from error
        if type(given) is not type(q):
            raise InputError(
                f"{owner} must return a casadi.SX; got {type(given).__name__} (casadi.vertcat "
                "makes one of several expressions)"
            )
        if given.numel() != d.rows or min(given.shape) != 1:
            raise InputError(f"{owner} must return {d.rows} entries; got shape {given.shape}")
        return given.reshape((d.rows, 1))


def _expressed(bound: BoundCustom, reference: Vector) -> Any:
    """The rows by the expression, compared with the callbacks at seeded states near a reference.

    States are left out at which the callbacks raise an error, or one of both is not finite. None if
    there is no expression, no CasADi, or no such state: then the callbacks are used.
    """
    if bound.description.casadi is None:
        return None
    try:
        import casadi as ca
    except ImportError:
        return None
    model, compared = bound.functions.model, 0
    q, t = ca.SX.sym("q", model.nq), ca.SX.sym("t")
    function = rows_function(bound.owner, model, bound.expression(q, t, None), q, t)
    for x, v, when, _ in seeded_states(model, reference):
        try:
            given = bound.functions.evaluate(x, v, when)
        except Exception:  # callbacks need not be defined everywhere, and may raise any error
            continue
        found = rows_at(function, x, v, when)
        if is_finite(found):
            check_same_rows(bound.owner, found, given)
            compared += 1
        if compared == DIFFERENCE_STATES:
            break
    return function if compared else None
