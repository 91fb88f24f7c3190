"""User-defined forces: efforts from a function of the state."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, numbers, quoted
from holoctl.base.errors import InputError
from holoctl.base.tolerances import FIRST_DIFFERENCE
from holoctl.constraints.joint_coordinates import Closures
from holoctl.forces.force_protocol import Between, Efforts, Tick
from holoctl.tree.kinematics import Kinematics
from holoctl.tree.live_motion import LiveMotion

__all__ = ["BoundCustomForce", "CustomForce"]


@dataclass(frozen=True, eq=False)
class CustomForce:
    """Efforts on the coordinates from a user's function ``function(q, v, t) -> (nv,)``.

    Its work counts as external work, because the stored and dissipated parts are not known.

    Parameters
    ----------
    function : callable
        ``function(q, v, t)``, in this order: configuration (nq,), velocity (nv,), time in s, 0 if a
        call gives none. Returns (nv,) efforts on the coordinates, N m or N.
    casadi : callable, optional
        The same for `hc.compile` and `hc.export_c`, with `casadi.SX` columns q, v and a symbol t;
        returns a `casadi.SX` of nv entries. Other functions ignore it.
    name : str, optional
        Default: the name of `function`.

    Raises
    ------
    InputError
        For an argument that is not callable, or takes (t, q, v). Raised by `Mechanism` and at every
        evaluation if the function returns the wrong shape or numbers that are not finite; by
        `hc.compile` for an expression that differs from the function.

    See Also
    --------
    JointSpring : a spring on a joint, with its stored energy.
    protocols.Force : a class of your own, with stored energy and losses.

    Notes
    -----
    The result of a function must depend on its arguments alone. To pickle a mechanism, its
    functions must be named functions of a module.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> def wind(q, v, t):
    ...     return np.array([0.3 * np.sin(t), 0.0, 0.0])
    >>> gusty = mech.with_forces([hc.CustomForce(wind)])
    >>> hc.terms(gusty, *hc.assemble(mech), t=np.pi / 2).F.tolist()
    [0.3, 0.0, 0.0]
    """

    function: Callable[..., Any]
    casadi: Callable[..., Any] | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        owner = f"CustomForce {quoted(self.default_name)}"
        for what in ("function", "casadi"):
            given = getattr(self, what)
            if not callable(given) and (what == "function" or given is not None):
                raise InputError(f"{owner}: {what} must be a function; got {quoted(given)}")
            if callable(given):
                _check_order(f"{owner}: {what}", given)

    @property
    def default_name(self) -> str:
        """The name as given, or that of `function`."""
        return self.name if self.name is not None else getattr(self.function, "__name__", "force")

    def bind(
        self, model: pin.Model, name: str, reference: Vector, closures: Closures
    ) -> BoundCustomForce:
        """This force on `model`; the function is evaluated once, at `reference`."""
        bound = BoundCustomForce(self, model, f"function of CustomForce {name!r}")
        bound.evaluate(reference, np.zeros(model.nv), 0.0)
        return bound


def _check_order(owner: str, function: Callable[..., Any]) -> None:
    """Raise `InputError` for a function of (t, q, v), or of another number of arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some builtins have no signature
        return
    kinds = inspect.Parameter
    placed = [
        p.name
        for p in signature.parameters.values()
        if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    ]
    if placed[:1] in (["t"], ["time"]) and len(placed) >= 3:
        raise InputError(
            f"{owner} takes ({', '.join(placed[:3])}), but it is called with (q, v, t), the time "
            "last: a mechanism has no clock (only controllers and loads of a simulation, which "
            "have one, take it first)"
        )
    try:
        signature.bind(None, None, None)
    except TypeError:
        raise InputError(
            f"{owner} must take (q, v, t); it takes ({', '.join(signature.parameters)})"
        ) from None


@dataclass(frozen=True, eq=False)
class BoundCustomForce:
    """A `CustomForce` tied to a model."""

    stores: ClassVar[bool] = False
    friction: ClassVar[bool] = False

    description: CustomForce
    model: pin.Model
    owner: str

    def at(self, kin: Kinematics) -> Efforts:
        """The function at a state, as external efforts."""
        none = np.zeros(self.model.nv)
        return Efforts(none, none, self.evaluate(kin.q, kin.v, kin.t))

    def energy(self, kin: Kinematics) -> float:
        """Zero: its stored energy is not known."""
        return 0.0

    def by_velocity(self, kin: Kinematics) -> Array:
        """Central differences of fourth order along each coordinate."""
        q, v, t, h = kin.q, kin.v, kin.t, FIRST_DIFFERENCE
        columns = []
        for e in np.eye(self.model.nv):
            near, far = (
                self.evaluate(q, v + s * e, t) - self.evaluate(q, v - s * e, t)
                for s in (h, 2.0 * h)
            )
            columns.append((8.0 * near - far) / (12.0 * h))
        return np.column_stack(columns)

    def evaluate(self, q: Vector, v: Vector, t: float) -> Vector:
        """The efforts, checked."""
        nv = self.model.nv
        try:
            given = self.description.function(q.copy(), v.copy(), t)
        except Exception as error:  # a user's function may raise anything
            error.add_note(f"in the {self.owner}")
            raise
        x = np.array(numbers(self.owner, given, "efforts on the coordinates"))
        if x.shape != (nv,) and not (x.size == nv == 1):
            raise InputError(f"{self.owner} must return shape ({nv},); got {x.shape}")
        if not np.isfinite(x).all():
            raise InputError(f"{self.owner} must return finite numbers; got {x}")
        return x.reshape(nv)

    def tick(self, motion: LiveMotion) -> Tick:
        """The function itself: it does not use `motion`."""
        return self.evaluate

    @property
    def opaque(self) -> str:
        """Why there is no expression; empty if there is one."""
        if self.description.casadi is not None:
            return ""
        return (
            "its function is Python; give it casadi=, a function that returns the same efforts as "
            "a CasADi expression"
        )

    def expression(self, q: Any, v: Any, t: Any, between: Between) -> Any:
        """The result of `casadi` for symbols."""
        given = self.description.casadi
        return None if given is None else given(q, v, t)
