"""Explicit charts q = gamma(y), from a callback in the convention of spatial_v2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import (
    Array,
    Vector,
    known_name,
    listing,
    name_list,
    numbers,
    positive,
    quoted,
    vector,
)
from holoctl.base.errors import InconsistentError, InputError
from holoctl.base.tolerances import (
    DIFFERENCE_PARTS,
    DIFFERENCE_STEP,
)
from holoctl.constraints.constraint_protocol import Chart, Rows
from holoctl.constraints.derivative_check import (
    Difference,
    check_at_seeded_states,
    difference,
    worst,
)
from holoctl.tree.coordinates import coordinate_names
from holoctl.tree.frames import Frame
from holoctl.tree.kinematics import Kinematics

__all__ = ["BoundGammaQ", "GammaCallback", "GammaQ", "call_gamma_q"]

IDEMPOTENT = 1e-8  # rad, m
"""Largest change of a corrected state when it is corrected again."""


GammaCallback = Callable[[pin.Model, Vector, Vector], Any]
"""gamma_q(model, q0, v0) -> q, v, G, gs: see `GammaQ`."""


@dataclass(frozen=True, eq=False)
class GammaQ:
    """An explicit constraint ``q = gamma(y)``, y some of the coordinates.

    Parameters
    ----------
    gamma_q : callable
        ``gamma_q(model, q0, v0) -> q, v, G, gs``: from a state off the constraint, the state
        with the same y and yd on it, the Jacobian G (nv, k) of gamma, columns in the order of
        `independent`, and the bias gs (nv,): ``Gdot yd``, plus a stabilisation that vanishes
        on the constraint. It is called a second time at (q, v), where gs is ``Gdot yd`` alone;
        the stabilisation in use is that of `t_stab`, not the callback's.
    independent : sequence of str
        The k coordinates that are y.
    name : str, optional
        Default: the name of the callback.
    t_stab : float, optional
        Time constant T of ``(2/T) (v - v0) + (q - q0) / T^2`` in the bias, s. Default: none.

    Raises
    ------
    InputError
        For a callback that is not callable, and no coordinates. Raised by `Mechanism` for unknown
        coordinates, and for a callback that returns wrong shapes, that changes the independent
        coordinates, whose G is not the identity for them or not the derivative of q, or whose gs on
        the constraint is not the derivative of ``G yd``.
    InconsistentError
        At any evaluation at which correcting a corrected state changes it.

    See Also
    --------
    methods.fdgq : forward dynamics with the same callback, without a mechanism.
    Custom : an implicit constraint, ``phi(q) = 0``.

    Notes
    -----
    G and gs are compared with differences of q and of ``G yd`` along the chart, once, when a
    mechanism is made, at seeded states near its reference. States are left out if the callback
    raises an error there or returns numbers that are not finite.

    The first chart of a mechanism moves the state: dynamics, other constraints and torques are
    evaluated at the corrected (q, v). It also gives the independent coordinates, among which other
    constraints then choose. Further charts act as rows, ``v_dep = G_dep v_ind``.

    Examples
    --------
    A parallelogram: the other two angles follow from that of the crank.

    >>> import numpy as np, holoctl as hc
    >>> model = hc.load(hc.robot_file("four_bar")).model
    >>> def parallelogram(model, q0, v0):
    ...     G = np.array([[1.0], [-1.0], [1.0]])
    ...     return G @ q0[:1], G @ v0[:1], G, np.zeros(3)
    >>> mech = hc.Mechanism(model, [hc.GammaQ(parallelogram, ["crank"])], ["crank"])
    >>> hc.project(mech, *hc.assemble(mech)).gamma.tolist()
    [[1.0], [-1.0], [1.0]]
    """

    gamma_q: GammaCallback
    independent: Sequence[str]
    name: str | None = None
    t_stab: float | None = None

    def __post_init__(self) -> None:
        if not callable(self.gamma_q):
            raise InputError(f"GammaQ: gamma_q must be a function; got {quoted(self.gamma_q)}")
        names = tuple(
            name_list(f"GammaQ {quoted(self.default_name)}: independent", self.independent)
        )
        if not names or len(set(names)) != len(names):
            raise InputError(
                f"GammaQ {self.default_name!r}: independent must name one coordinate or more, "
                f"each once; got {listing(names)}"
            )
        object.__setattr__(self, "independent", names)
        if self.t_stab is not None:
            positive(f"GammaQ {self.default_name!r}: t_stab", self.t_stab, "s")

    @property
    def default_name(self) -> str:
        """The name as given, or that of the callback."""
        return self.name if self.name is not None else getattr(self.gamma_q, "__name__", "gamma_q")

    def bind(self, model: pin.Model, name: str, reference: Vector) -> BoundGammaQ:
        """The chart on `model`; the callback is evaluated once, at `reference`."""
        owner = f"GammaQ {name!r}"
        names = coordinate_names(model)
        chosen = [names.index(known_name(n, names, "coordinate", owner)) for n in self.independent]
        independent = np.array(chosen, dtype=np.intp)
        dependent = np.setdiff1d(np.arange(model.nv), independent)
        if dependent.size == 0:
            raise InputError(f"{owner}: all coordinates are independent, so nothing is constrained")
        labels = tuple(f"{name}.{names[i]}" for i in dependent)
        bound = BoundGammaQ(self.gamma_q, model, owner, labels, independent, dependent)
        chart = bound.chart(reference, np.ones(model.nv))
        if wrong := _wrong_rates(bound, chart, np.ones(independent.size)):
            raise InputError(wrong)
        moved = np.abs(pin.difference(model, reference, chart.q)[independent]).max()
        if moved > IDEMPOTENT:
            raise InputError(f"{owner}: the callback changes the coordinates that are independent")
        _check_derivatives(bound, chart)
        return bound


@dataclass(frozen=True, eq=False)
class BoundGammaQ:
    """A chart tied to a model; also rows ``v_dep - G_dep v_ind = 0``."""

    opaque: ClassVar[str] = (
        "an explicit chart moves the state by a Python function; state it as rows"
    )

    gamma_q: GammaCallback
    model: pin.Model
    owner: str
    labels: tuple[str, ...]
    independent: NDArray[np.intp]
    dependent: NDArray[np.intp]

    @property
    def support(self) -> NDArray[np.bool_]:
        """The dependent coordinate of each row and all independent ones: gamma may depend on
        each."""
        mask = np.zeros((self.dependent.size, self.model.nv), dtype=bool)
        mask[:, self.independent] = True
        mask[np.arange(self.dependent.size), self.dependent] = True
        return mask

    @property
    def anchors(self) -> tuple[Frame, ...]:
        return ()

    def scale(self, length: Vector, columns: Vector) -> Vector:
        """A row has the unit of its dependent coordinate."""
        return 1.0 / columns[self.dependent]

    def chart(self, q0: Vector, v0: Vector) -> Chart:
        """The corrected state, G there, and the pure bias g = Gdot yd."""
        q, v, G, _ = call_gamma_q(self.gamma_q, self.model, q0, v0)
        if G.shape[1] != self.independent.size:
            raise InputError(
                f"{self.owner}: G must have {self.independent.size} columns, one for each "
                f"independent coordinate; got {G.shape[1]}"
            )
        again, _, _, g = call_gamma_q(self.gamma_q, self.model, q, v)
        off = float(np.abs(pin.difference(self.model, q, again)).max())
        if off > IDEMPOTENT * (1.0 + float(np.abs(q).max())):
            raise InconsistentError(
                f"{self.owner}: a corrected configuration is corrected again by {off:.1e}: the "
                "callback must return points of the constraint (iterate to convergence in it)",
                residual=off,
            )
        return Chart(q, v, G, g)

    def rows(self, kin: Kinematics) -> Rows:
        """error q_dep - gamma_dep(y), rate v_dep - G_dep v_ind, drift -g_dep."""
        c = self.chart(kin.q, kin.v)
        jacobian = np.zeros((self.dependent.size, self.model.nv))
        jacobian[np.arange(self.dependent.size), self.dependent] = 1.0
        jacobian[:, self.independent] = -c.G[self.dependent]
        return Rows(
            error=np.asarray(pin.difference(self.model, c.q, kin.q)[self.dependent]),
            rate=jacobian @ kin.v,
            jacobian=jacobian,
            drift=-c.g[self.dependent],
        )


def _wrong_rates(bound: BoundGammaQ, chart: Chart, yd: Vector) -> str | None:
    """An error text if G is not the identity for y, or v is not G yd; else None."""
    names = listing([coordinate_names(bound.model)[i] for i in bound.independent])
    if np.abs(chart.G[bound.independent] - np.eye(yd.size)).max() > IDEMPOTENT:
        return (
            f"{bound.owner}: the rows of G for {names} must be the identity, columns in that order"
        )
    rate = chart.G @ yd
    off = np.abs(chart.v - rate).max()
    if off > IDEMPOTENT * (1.0 + np.abs(rate).max()):
        return (
            f"{bound.owner}: the corrected velocity must be G times the rates of {names}; for "
            f"rates {yd.round(3).tolist()} it is off by {off:.1e}"
        )
    return None


def _check_derivatives(bound: BoundGammaQ, start: Chart) -> None:
    """Raise `InputError` if G is not the derivative of gamma, or gs not that of G yd."""

    wrong_rates = list[str]()  # never due to a kink, so one is enough

    def look(step: Vector, yd: Vector, reach: float) -> str | None:
        chart, dots = _differenced(bound, start, start.G @ step, yd, reach)
        if wrong := _wrong_rates(bound, chart, yd):
            wrong_rates.append(wrong)
        return wrong_rates[0] if wrong_rates else _wrong_derivatives(bound, chart, dots, yd)

    check_at_seeded_states(start.G.shape[1], look)


def _wrong_derivatives(
    bound: BoundGammaQ, chart: Chart, dots: Sequence[Difference], yd: Vector
) -> str | None:
    """The error of the derivatives at a state of the chart, as text; None if there is none."""
    where = f"at q = {chart.q.round(4).tolist()} with yd = {yd.round(4).tolist()}"
    names = coordinate_names(bound.model)
    along, twice = [dot[0] for dot in dots], [dot[1] for dot in dots]
    terms = np.abs(chart.G) @ np.abs(yd)
    if (i := worst(chart.v, along, terms)) is not None:
        return (
            f"{bound.owner}: G is not the derivative of q = gamma(y): {where}, {names[i]!r} "
            f"moves by {along[0].value[i]:.6g} per s (q differenced along the chart), and G yd "
            f"is {chart.v[i]:.6g}"
        )
    if (i := worst(chart.g, twice, terms)) is not None:
        opposite = worst(-chart.g, twice, terms) is None
        return (
            f"{bound.owner}: gs on the constraint is not dG/dt yd: {where}, the rate of "
            f"{names[i]!r} changes by {twice[0].value[i]:.6g} per s (G yd differenced along "
            f"the chart), and gs is {chart.g[i]:.6g}; "
            + ("its sign is the wrong one" if opposite else
               "where q0 and v0 are on the constraint the stabilisation in gs must be zero, "
               "which leaves g, the acceleration at ydd = 0")
        )  # fmt: skip
    return None


def _differenced(
    bound: BoundGammaQ, start: Chart, step: Vector, yd: Vector, reach: float
) -> tuple[Chart, list[Difference]]:
    """The chart at a step from `start`, and the derivatives of q and of G yd along it as two rows,
    for each step of the differences."""
    model, callback = bound.model, bound.gamma_q
    c = bound.chart(pin.integrate(model, start.q, step), start.G @ yd)
    again, v_again, _, _ = call_gamma_q(callback, model, c.q, c.v)

    def moved(s: float) -> Array:
        q, _, G, _ = call_gamma_q(callback, model, pin.integrate(model, c.q, s * c.v), c.v)
        return np.array([pin.difference(model, c.q, q), G @ yd])

    noise = max(  # an iterative callback reproduces its result only up to this
        float(np.abs(pin.difference(model, c.q, again)).max()), float(np.abs(v_again - c.v).max())
    )
    h = min(DIFFERENCE_STEP, 0.1 * reach) / max(1.0, float(np.abs(c.v).max()))
    return c, [difference(moved, part * h, noise) for part in DIFFERENCE_PARTS]


def call_gamma_q(
    gamma_q: GammaCallback, model: pin.Model, q0: Vector, v0: Vector
) -> tuple[Vector, Vector, Array, Vector]:
    """The result of gamma_q, checked, or an `InputError`."""
    if not callable(gamma_q):
        raise InputError(f"gamma_q must be a function (model, q0, v0); got {gamma_q!r}")
    given = gamma_q(model, q0.copy(), v0.copy())
    if not isinstance(given, (tuple, list)) or len(given) != 4:
        raise InputError(
            f"gamma_q must return (q, v, G, gs); got {type(given).__name__} {str(given)[:60]!r}"
        )
    G = numbers("G of gamma_q", given[2], "Jacobian of gamma")
    if G.ndim == 1:
        G = G[:, None]
    if G.ndim != 2 or G.shape[0] != model.nv or not 1 <= G.shape[1] <= model.nv:
        raise InputError(f"G of gamma_q must have shape ({model.nv}, k); got {G.shape}")
    if not np.isfinite(G).all():
        raise InputError("G of gamma_q must be finite")
    return (
        vector("q of gamma_q", given[0], model.nq, "corrected configuration"),
        vector("v of gamma_q", given[1], model.nv, "corrected velocity"),
        G,
        vector("gs of gamma_q", given[3], model.nv, "bias"),
    )
