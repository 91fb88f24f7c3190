"""Constraint errors of a state, row by row, in units and scaled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from holoctl.base.checks import Vector, counted, quiet, read_only
from holoctl.base.errors import InputError
from holoctl.base.linalg import largest
from holoctl.base.renamed import former_names
from holoctl.mechanism.checks import check_mechanism, check_state
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.evaluate import scaled_rows_at

__all__ = ["ConstraintErrors", "constraint_errors"]


@former_names(velocity_residual="slip")
@dataclass(frozen=True, eq=False, repr=False)
class ConstraintErrors:
    """Errors of all rows at a state, also redundant ones; `hc.methods.by_constraint` groups them.

    Attributes
    ----------
    position : (m,) array
        phi(q, t), in the order of ``mech.row_names``: in m for rows of points; for rows of
        directions twice the vector part of a quaternion, or cosines (rad, if small). For a
        `Coupling` or `Custom`, in its own units.
    velocity : (m,) array or None
        G v + phi_t, in the same units per s; None if no v was given.
    closure : float
        Largest scaled error (lengths over the size of their loop), with which tolerances are
        compared.
    velocity_residual : float or None
        Largest scaled rate, 1/s. That of a `Certificate` is divided by the size of its terms.
    worst : str
        The row with the largest scaled error, or if all are closed, with the largest scaled rate;
        empty without rows.

    See Also
    --------
    constraint_errors : returns it.
    methods.by_constraint : groups the rows.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> errors = hc.constraint_errors(mech, [1.0, -0.4, 1.6])
    >>> errors.worst, round(errors.closure, 3)
    ('pin.x', 0.024)
    """

    position: Vector
    velocity: Vector | None
    closure: float
    velocity_residual: float | None
    worst: str

    def __repr__(self) -> str:
        if not self.position.size:
            return "<ConstraintErrors: no rows>"
        off = self.velocity_residual
        rate = "" if off is None else f", velocity residual {off:.1e} 1/s"
        return (
            f"<ConstraintErrors: {counted(self.position.size, 'row')}, largest error "
            f"{self.closure:.1e}{rate} (scaled), worst {self.worst!r}>"
        )


@quiet
def constraint_errors(
    mech: Mechanism, q: Any, v: Any = None, *, t: float = 0.0
) -> ConstraintErrors:
    """The constraint errors of a state; fast enough for every step of an integrator.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array_like
        Configuration.
    v : (nv,) array_like, optional
        Velocity, rad/s or m/s.
    t : float, optional
        Time, s, for constraints that depend on it.

    Returns
    -------
    ConstraintErrors

    Raises
    ------
    InputError
        For wrong shapes, and for numbers or errors that are not finite.

    See Also
    --------
    methods.by_constraint : numbers of all rows as one array for each constraint.
    corrected : projects a state onto the constraints.
    assemble : closes larger errors.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> q, v = hc.assemble(mech)
    >>> off = hc.constraint_errors(mech, q + 1e-3, v)
    >>> off.closure > 1e-4
    True
    >>> sorted(hc.methods.by_constraint(mech, off.position))
    ['pin']
    """
    at_rest = v is None
    check_mechanism(mech)
    q, v, t = check_state(mech, q, np.zeros(mech.nv) if at_rest else v, t)
    _, error, rate = scaled_rows_at(mech, q, v, t)
    closure, residual = largest(error), largest(rate)
    if not (closure < np.inf and residual < np.inf):
        raise InputError(f"{mech.name}: the errors of its constraints are not finite at this state")
    worst = ""
    if error.size:
        off = np.abs(error) if at_rest or closure > 0.0 else np.abs(rate)
        worst = mech.row_names[int(np.argmax(off))]
    r = mech.row_scale
    velocity = None if at_rest else read_only(rate / r)
    return ConstraintErrors(
        read_only(error / r), velocity, closure, None if at_rest else residual, worst
    )
