"""The interface of constraints: the methods by which the library evaluates them.

A constraint is described by a small frozen value (`hc.Closure`, `hc.Coupling`, ...) that does not
depend on a model. `bind` looks its names up in one model and returns *bound rows*; bound rows are
evaluated at the kinematics of a state and return

    error     phi(q, t)
    rate      d/dt phi            = G v + phi_t
    jacobian  G
    drift     d2/dt2 phi at a = 0 = Gdot v (and the time terms)

so that ``d2/dt2 phi = G a + drift``. G and drift must be exact derivatives of the error
everywhere, off the manifold phi = 0 too.

How to write your own
---------------------
`hc.Custom`, which takes phi as a function and differentiates it, is often enough. A class of your
own is needed for speed, for its own labels and scales, or for exact derivatives at no cost.
examples/write_your_own.py shows both for the same constraint; its comments have these numbers.

1. Describe: a frozen dataclass with `name`, `t_stab`, `default_name` and what the constraint
   needs, as names and numbers. It knows no model; check here what can be checked without one.
2. Bind: look up every name in the model, raise `InputError` for an unknown one. Where a common
   motion of both bodies leaves the rows unchanged, return `wrench_rows(...)`, and all is done:
   its rows are data, of kinds that are there or of one of your own (`kinds`), right and fast on
   every path. Otherwise return an object with indices in place of names, and go on here. Indices
   into q and v differ where nq != nv.
3. Say what it depends on: `labels`, one for each row; `support`, True for every coordinate
   that a row may ever depend on; `anchors`, frames that tell how large the loop is, or ().
4. Scale: factors that make rows pure numbers of order one, ``1 / length`` for an error in m,
   1 for an angle. Constants of the mechanism, never of a state.
5. Evaluate: error, rate, Jacobian and drift from `kin` alone. G is along v, not along the
   entries of q. A constraint in time reads ``kin.t``; phi_t goes into the rate, and its terms
   into the drift. No state may be kept between calls: mechanisms are shared by threads.
6. Check: compare rate and ``G a + drift`` with differences of the error along a path, at
   states off the manifold. An error in the drift shows nowhere else at low speed.
7. Offer more, or leave it: with `tick` the rows are fast in a control loop, with `expression` they
   compile. Without the first, loops evaluate `rows`; without the second, `hc.compile` and
   `hc.export_c` refuse the constraint by its name. What is offered is compared with `rows`, and
   refused where it differs; where a subclass has `rows` of its own, it is not used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Array, Vector, unpickled
from holoctl.tree.frames import Frame
from holoctl.tree.kinematics import Kinematics

__all__ = [
    "BoundChart",
    "BoundRows",
    "Chart",
    "Constraint",
    "Evaluate",
    "FramePlacement",
    "Rows",
    "constraint_of",
    "offered",
]


@dataclass(frozen=True, eq=False)
class Rows:
    """Values and derivatives of m scalar constraints at one state.

    Attributes
    ----------
    error, rate, drift : (m,) array
        phi, its time derivative, and its second time derivative at zero acceleration.
        Linear rows in m, m/s, m/s^2; angular rows in rad (small angles), rad/s, rad/s^2.
    jacobian : (m, nv) array
        G, the derivative of the rate by the velocity v.
    wrenches : (m, 6) array, optional
        If every row is a wrench between two bodies (constraints/wrench_rows.py): force and moment
        about the world origin, on body 2.

    See Also
    --------
    protocols.BoundRows : returns them, from `rows`.
    results.Terms : has those of a whole mechanism.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> rows = hc.terms(mech, *hc.assemble(mech)).of("pin")
    >>> bool(abs(rows.error).max() < 1e-9), rows.jacobian.shape
    (True, (5, 3))
    """

    error: Vector
    rate: Vector
    jacobian: Array
    drift: Vector
    wrenches: Array | None = None

    __setstate__ = unpickled


@dataclass(frozen=True, eq=False)
class Chart:
    """An explicit constraint q = gamma(y) at one state.

    Attributes
    ----------
    q : (nq,) array
        Corrected configuration, on the constraint.
    v : (nv,) array
        Corrected velocity, ``G yd``.
    G : (nv, k) array
        Jacobian of gamma, the ``gamma`` of the projector.
    g : (nv,) array
        ``Gdot yd``: the acceleration for ydd = 0.
    """

    q: Vector
    v: Vector
    G: Array
    g: Vector


Evaluate = Callable[[Vector, Vector, float], None]
"""evaluate(q, v, t) fills the arrays of some `Rows`."""

FramePlacement = Callable[[Frame], tuple[Any, Any]]
"""place(frame) -> R, p: the axes (3, 3) and the origin (3,) of a frame in the world, at q, as
`casadi.SX`."""


class BoundRows(Protocol):
    """Rows of one or more constraints, tied to a model.

    Attributes
    ----------
    labels : m names, ``constraint.row``.
    support : (m, nv) bool array: the coordinates that the row may depend on.
    anchors : frames of the closure, used to find the characteristic length of the loop.

    See Also
    --------
    protocols.Constraint : its description.
    protocols.Rows : what `rows` returns.
    protocols.wrench_rows : returns it for rows between two bodies.

    Notes
    -----
    It may also have

    ``tick(motion, rows) -> evaluate`` : motion a `LiveMotion`, rows a `Rows` of arrays
        The same rows for a control loop: a function (q, v, t) that fills the four arrays of `rows`.
        It is made once for each thread. `motion` has the motion of all bodies at (q, v); the arrays
        are zero at first, and keep their values from tick to tick.
    ``linear`` : bool
        Whether Jacobian and drift are constant; `tick` then fills them once, when it is made.
    ``expression(q, t, place) -> phi`` : q (nq, 1) and t symbols, place a `FramePlacement`
        The errors as a `casadi.SX` column of m entries, which is then differentiated.
    ``opaque`` : str
        Why there is no `expression`, for error messages.

    Examples
    --------
    examples/write_your_own.py writes one.

    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> mech.bound[0].labels
    ('pin.x', 'pin.y', 'pin.z', 'pin.ry', 'pin.rx')
    """

    @property
    def labels(self) -> tuple[str, ...]:
        """m names, ``constraint.row``."""
        ...

    @property
    def support(self) -> NDArray[np.bool_]:
        """(m, nv): the coordinates that each row may ever depend on."""
        ...

    @property
    def anchors(self) -> tuple[Frame, ...]:
        """Frames that determine the size of the loop, or ()."""
        ...

    def scale(self, length: Vector, columns: Vector) -> Vector:
        """(m,) factors that make the rows pure numbers of order one.

        `length` (m,) is the characteristic length of each row's loop, m; `columns` (nv,) is that
        length for translational coordinates and 1 for angular ones. The factors are constants of
        the mechanism: rows are never normalised at a state, because that would hide a row that
        vanishes there.
        """
        ...

    def rows(self, kin: Kinematics) -> Rows:
        """Evaluate all m rows."""
        ...


class BoundChart(BoundRows, Protocol):
    """Rows that are also an explicit chart, q = gamma(y)."""

    @property
    def independent(self) -> NDArray[np.intp]: ...
    @property
    def dependent(self) -> NDArray[np.intp]: ...

    def chart(self, q0: Vector, v0: Vector) -> Chart:
        """The corrected state, and the chart there."""
        ...


class Constraint(Protocol):
    """The description of a constraint, independent of a model.

    See Also
    --------
    protocols.BoundRows : what `bind` returns.
    Custom : rows from a function, without a class.
    protocols.resolve_frame : looks frames up.

    Examples
    --------
    examples/write_your_own.py writes two, step by step.

    >>> import holoctl as hc
    >>> hinge = hc.Closure("coupler_pin", "rocker_pin", "revolute")
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> hinge.bind(mech.model, "hinge", mech.reference).labels
    ('hinge.x', 'hinge.y', 'hinge.z', 'hinge.ry', 'hinge.rx')
    """

    @property
    def name(self) -> str | None:
        """The given name; None for the default."""
        ...

    @property
    def t_stab(self) -> float | Literal[False] | None:
        """Time constant of Baumgarte's stabilisation, s; None or False for none."""
        ...

    @property
    def default_name(self) -> str:
        """The given name, or one made from the parameters of the constraint."""
        ...

    def bind(self, model: pin.Model, name: str, reference: Vector) -> BoundRows:
        """Look up all names in a model.

        Parameters
        ----------
        model : pin.Model
        name : str
            The name of the constraint, for labels and errors.
        reference : (nq,) array
            The mechanism's reference configuration, for constraints that take a length or a point
            from it.

        Returns
        -------
        BoundRows

        Raises
        ------
        InputError
            If a name is unknown.
        """
        ...


def constraint_of(label: str) -> str:
    """The name of the constraint of a row with the label ``constraint.row``."""
    return label.rsplit(".", 1)[0]


def offered(bound: object, what: str, beside: str = "rows") -> Callable[..., Any] | None:
    """The `tick` or `expression` of bound rows; None if there is none, or if a subclass overrides
    `rows` but not this method, which then belongs to other rows. For objects other than rows,
    `beside` names the method in the place of `rows`."""
    given: Callable[..., Any] | None = getattr(bound, what, None)
    if given is None:
        return None
    places = [getattr(bound, "__dict__", {}), *(vars(c) for c in type(bound).__mro__)]
    of_rows, of_given = (
        next((i for i, place in enumerate(places) if name in place), len(places))
        for name in (beside, what)
    )
    return given if of_given <= of_rows else None
