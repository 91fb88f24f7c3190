"""Explicit charts q = gamma(y), from a callback in the convention of spatial_v2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.checks import Vector, known_name, listing, name_list, numbers, positive, vector
from holoctl.constraints.contract import Chart, Rows
from holoctl.errors import InconsistentError, InputError
from holoctl.tree import Frame, Kinematics, coordinate_names

__all__ = ["BoundGammaQ", "GammaCallback", "GammaQ", "call_gamma_q"]

Array = NDArray[np.float64]

GammaCallback = Callable[[pin.Model, Vector, Vector], Any]
"""gamma_q(model, q0, v0) -> q, v, G, gs: see `GammaQ`."""

IDEMPOTENT = 1e-8
"""A corrected state may move by this much (rad, m) when it is corrected again."""


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
        For what is not callable, no coordinates; by `Mechanism`, for unknown coordinates, a
        callback that returns wrong shapes, whose G is not the identity for `independent`, or
        that changes them.
    InconsistentError
        At any evaluation where a corrected state is corrected again to another one.

    Notes
    -----
    The first chart of a mechanism moves the state: dynamics, other constraints and torques are
    evaluated at the corrected (q, v). It also gives the independent coordinates, before other
    constraints take from them. Further charts act as rows, ``v_dep = G_dep v_ind``.
    """

    gamma_q: GammaCallback
    independent: Sequence[str]
    name: str | None = None
    t_stab: float | None = None

    def __post_init__(self) -> None:
        if not callable(self.gamma_q):
            raise InputError(f"GammaQ: gamma_q must be a function; got {self.gamma_q!r}")
        names = tuple(name_list(f"GammaQ {self.default_name!r}: independent", self.independent))
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
        """The chart on `model`; the callback is tried at `reference`."""
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
        moved = np.abs(pin.difference(model, reference, chart.q)[independent]).max()
        if np.abs(chart.G[independent] - np.eye(independent.size)).max() > IDEMPOTENT:
            raise InputError(
                f"{owner}: the rows of G for {listing(self.independent)} must be the identity, "
                "columns in that order"
            )
        if moved > IDEMPOTENT:
            raise InputError(f"{owner}: the callback changes the coordinates that are independent")
        rate = chart.G @ np.ones(independent.size)
        if np.abs(chart.v - rate).max() > IDEMPOTENT * (1.0 + np.abs(rate).max()):
            raise InputError(
                f"{owner}: the corrected velocity must be G times the rates of "
                f"{listing(self.independent)}; for rates of 1 it is off by "
                f"{np.abs(chart.v - rate).max():.1e}"
            )
        return bound


@dataclass(frozen=True, eq=False)
class BoundGammaQ:
    """A chart tied to a model; also rows ``v_dep - G_dep v_ind = 0``."""

    gamma_q: GammaCallback
    model: pin.Model
    owner: str
    labels: tuple[str, ...]
    independent: NDArray[np.intp]
    dependent: NDArray[np.intp]

    @property
    def support(self) -> NDArray[np.bool_]:
        """Nothing is known of the callback: gamma may depend on every independent coordinate."""
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


def call_gamma_q(
    gamma_q: GammaCallback, model: pin.Model, q0: Vector, v0: Vector
) -> tuple[Vector, Vector, Array, Vector]:
    """What gamma_q returns, checked, or an `InputError` that says what is wrong with it."""
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
