"""A linear model in minimal coordinates, for the design of controllers.

    d/dt (x - x0) = rate + A (x - x0) + B (u - u0)        x = (y, yd)
    z - z0 = C (x - x0) + D (u - u0)                      z: the outputs

`linearize.py` makes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import expm

from holoctl.base.checks import Array, Vector, counted, made_again, positive, quiet, read_only
from holoctl.base.errors import InputError
from holoctl.base.html_table import Cells, html_table, named
from holoctl.base.linalg import largest, least_squares
from holoctl.design.linear.modes import Mode, modes_of
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition

if TYPE_CHECKING:
    import control

__all__ = ["Linearization", "held_over"]

AT_EQUILIBRIUM = 1e-6  # rad/s, m/s, rad/s^2, m/s^2
"""A point is an equilibrium if its rate is at most this."""

NEXT_TO_EQUILIBRIUM = 1e-8  # scaled
"""A point is also an equilibrium if there is one at most this far away: stiff springs turn rounding
of the position into accelerations."""

LOST_IN_A_TICK = 1e-9
"""In a model in long ticks rounding may leave this share of the largest rate in the other rates."""


@dataclass(frozen=True, eq=False)
class Linearization:
    """A linear model of a mechanism about a state, in minimal coordinates.

    ``d/dt dx = rate + A dx + B du`` and ``dz = C dx + D du``, with deviations dx, du and dz from
    the point. `hc.linearize` returns it.

    Attributes
    ----------
    A : (2n, 2n) array
        Derivative by the state x = (y, yd): independent coordinates, rad or m, and their rates.
    B : (2n, nu) array
        Derivative by the motor efforts, N m or N.
    C, D : (p, 2n) and (p, nu) arrays
        Derivatives of the outputs by the state and the efforts.
    rate : (2n,) array
        dx/dt at the point, (yd, ydd): zero at an equilibrium. With ``along="motion"``, where y is
        measured from a reference that moves with v, (0, ydd). For a model in discrete time the step
        of x at the point in dt.
    states, inputs, outputs : tuples of str
        Names; ``"d x"`` is the rate of x.
    q, v, u : (nq,), (nv,) and (nu,) arrays
        The point, closed.
    mech : Mechanism
    partition : Partition
        Its independent coordinates are y.
    gamma : (nv, n) array
        ``v = gamma yd`` at the point.
    t : float
        Time of the point, s.
    along : str
        ``"fixed"`` or ``"motion"``, as in `hc.linearize`.
    dt : float or None
        Tick of a model in discrete time, s; None: continuous.

    See Also
    --------
    linearize : returns it.
    results.Mode : its modes.
    lqr : a regulator for it.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> eq = hc.equilibrium(mech)
    >>> lin = hc.linearize(mech, eq.q, u=eq.u)
    >>> lin.states, lin.discretized(1e-3).dt, lin.modes()[0]
    (('crank', 'd crank'), 0.001, <Mode: diverges by a factor of e in 0.106 s: 'crank'>)
    """

    A: Array
    B: Array
    C: Array
    D: Array
    rate: Vector
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    q: Vector
    v: Vector
    u: Vector
    mech: Mechanism
    partition: Partition
    gamma: Array
    t: float = 0.0
    along: str = "fixed"
    dt: float | None = None

    def __post_init__(self) -> None:
        for name in ("A", "B", "C", "D", "rate", "q", "v", "u", "gamma"):
            object.__setattr__(self, name, read_only(np.array(getattr(self, name), dtype=float)))

    def __reduce__(self) -> tuple[Any, ...]:  # a pickled array forgets that it is read-only
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        return made_again, (type(self), given)

    def __repr__(self) -> str:
        n, what = len(self.states) // 2, "in continuous time"
        if self.dt is not None:
            what = f"in ticks of {self.dt:g} s"
        where = f"state rate up to {largest(self.rate):.2g}"
        if self.at_equilibrium:
            where = "at an equilibrium"
        elif self.along == "motion":
            where = "along a motion"
        return (
            f"<Linearization of {self.mech.name!r}: {counted(n, 'motion')}, "
            f"{counted(len(self.inputs), 'motor')}, {counted(len(self.outputs), 'output')}, "
            f"{what}, {where}>"
        )

    def _repr_html_(self) -> str:
        return html_table(self, lambda: _parts(self))

    @property
    def at_equilibrium(self) -> bool:
        """Whether the point is an equilibrium, or has one next to it within rounding."""
        of, tick = self.partition.independent, self.dt or 1.0
        if largest(self.v[of]) > AT_EQUILIBRIUM:
            return False
        rate = self.rate / tick
        if np.abs(rate).max(initial=0.0) <= AT_EQUILIBRIUM:
            return True
        A = self.A if self.dt is None else (self.A - np.eye(len(self.A))) / tick
        A = A * np.tile(self.mech.column_scale[of], 2)
        away = least_squares(A, -rate)  # the step to the equilibrium
        rest = np.abs(A @ away + rate).max(initial=0.0)
        rounded = LOST_IN_A_TICK * largest(rate) if self.dt is not None else 0.0
        near = np.abs(away).max() <= NEXT_TO_EQUILIBRIUM
        return bool(near and rest <= max(AT_EQUILIBRIUM, rounded))

    @quiet
    def discretized(self, dt: float) -> Linearization:
        """The model in discrete time, with efforts held over a tick (zero-order hold).

        ``dx+ = rate + A dx + B du``, by the exponential of ``[[A, B, rate], [0, 0, 0]] dt``.

        Parameters
        ----------
        dt : float
            Tick, s.

        Returns
        -------
        Linearization

        Raises
        ------
        InputError
            For a tick that is not positive, or so long that the model exceeds the range of floats;
            for a model that is in discrete time already.
        """
        dt = positive("dt", dt, "tick, s")
        if self.dt is not None:
            raise InputError(f"this model is in discrete time already, dt = {self.dt:g} s")
        A, moved = held_over(self.A, np.column_stack([self.B, self.rate]), dt)
        if not (np.isfinite(A).all() and np.isfinite(moved).all()):
            raise InputError(
                f"this model exceeds the range of floats in dt = {dt:g} s; take a shorter tick"
            )
        return replace(self, A=A, B=moved[:, :-1], rate=moved[:, -1], dt=dt)

    def modes(self) -> tuple[Mode, ...]:
        """The modes of the model: its eigenvalues, slowest first, each described by a sentence.

        Returns
        -------
        tuple of Mode
            A pair of conjugate eigenvalues is one mode.
        """
        of = self.partition.independent
        names = [self.mech.coordinate_names[i] for i in of]
        return modes_of(self.A, names, self.mech.column_scale[of], self.dt)

    def to_control(self) -> control.StateSpace:
        """The model as a `StateSpace` of python-control, with the same names; ``.`` becomes ``_``.

        Needs python-control (the extra ``holoctl[design]``), which allows no points in names. The
        `rate` of a point that is no equilibrium is not part of the result.

        Returns
        -------
        control.StateSpace

        Raises
        ------
        InputError
            If python-control is not installed.
        """
        try:
            import control
        except ImportError:
            raise InputError(
                "to_control needs python-control: pip install 'holoctl[design]'"
            ) from None
        return control.ss(
            self.A, self.B, self.C, self.D, 0 if self.dt is None else self.dt,
            states=_without_points(self.states), inputs=_without_points(self.inputs),
            outputs=_without_points(self.outputs),
        )  # fmt: skip


def held_over(A: Array, B: Array, dt: float) -> tuple[Array, Array]:
    """A and B of the model discretised with a zero-order hold of dt s, by ``exp [A B; 0 0] dt``."""
    n, m = B.shape
    whole = np.zeros((n + m, n + m))
    whole[:n] = np.hstack([A, B]) * dt
    step = np.asarray(expm(whole)[:n], dtype=float)
    return step[:, :n], step[:, n:]


def _parts(lin: Linearization) -> Iterator[Cells]:
    """The lines of the table that a notebook shows: names, and a sentence for each mode."""
    yield "states", named(lin.states)
    yield "inputs", named(lin.inputs)
    yield "outputs", named(lin.outputs)
    for i, mode in enumerate(lin.modes(), start=1):
        yield f"mode {i}", mode.sentence


def _without_points(names: tuple[str, ...]) -> list[str]:
    """The names with ``_`` for ``.``, and further ``_`` appended while the name is taken."""
    found: list[str] = []
    for name in names:
        plain = name.replace(".", "_")
        while plain in found or (plain != name and plain in names):
            plain += "_"
        found.append(plain)
    return found
