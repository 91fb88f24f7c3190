"""The linear model of a mechanism about a state, at rest or in motion.

    ydd = S a(q, v, u),  v = gamma yd + v_t        S selects the independent rows

    A11 = -1/2 S ad_v gamma   (along="fixed")      A12 = 1        A21 = S (a_q gamma + a_v D)
    A11 =     -S ad_v gamma   (along="motion")                    A22 = S a_v gamma
                                                                  B2  = S a_tau B

with D = d(gamma yd + v_t)/dy (minimal_coordinates.py): along a motion the dependent rates change
with y. A11 is zero except for ball, planar and free joints.
Derivation: docs/derivations.md, "Linear models".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector, listing, number, one_of, quiet, vector
from holoctl.base.errors import InconsistentError, InputError
from holoctl.base.linalg import largest
from holoctl.base.tolerances import CLOSED
from holoctl.closing.manifold_projection import projected_onto_manifold
from holoctl.codegen.compiled.compiled import Compiled
from holoctl.design.linear.minimal_coordinates import RowsAt, minimal_coordinates
from holoctl.design.linear.model import Linearization
from holoctl.design.linear.outputs import OperatingPoint, outputs_of
from holoctl.design.linear.plant_derivatives import by_code, by_differences
from holoctl.mechanism.checks import check_mechanism, check_state
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, check_partition
from holoctl.projector.partition import partition as decided
from holoctl.rows.evaluate import rows_at, scaled_rows_at

__all__ = ["linearize"]


def _linear_model(
    mech: Mechanism, code: Compiled | None, q: Vector, v: Vector, u: Vector, t: float,
    part: Partition, along: str, outputs: Any,
) -> Linearization:  # fmt: skip
    at = minimal_coordinates(mech, part, v, _rows_at(mech, code, q, t))
    if code is None:
        plant = by_differences(mech, part, q, v, u, t, at)
    else:
        plant = by_code(code, part, q, v, u, t, at)
    S, n = part.independent, part.independent.size
    turned = -0.5 if along == "fixed" else -1.0
    A, B = np.zeros((2 * n, 2 * n)), np.zeros((2 * n, mech.nu))
    A[:n, :n] = turned * (at.turning @ at.gamma)[S]
    A[:n, n:] = np.eye(n)
    A[n:, :n] = plant.by_y[S]
    A[n:, n:] = plant.by_yd[S]
    B[n:] = plant.by_u[S]
    yd = v[S] if along == "fixed" else np.zeros(n)
    rate = np.concatenate([yd, plant.a[S]])
    if not largest(A) + largest(B) + largest(rate) < np.inf:
        raise InputError(f"{mech.name}: the linear model is not finite; q, v or u is out of range")
    names = [mech.coordinate_names[i] for i in S]
    states = (*names, *(f"d {x}" for x in names))
    if len(set(states)) < len(states):
        twice = listing(sorted({x for x in names if x in states[n:]}))
        raise InputError(
            f"{mech.name}: the coordinate {twice} has the name of the rate of another one: states "
            "need different names; rename the coordinate"
        )
    labels, C, D = outputs_of(mech, states, outputs, OperatingPoint(q, v, u, t, part, at))
    return Linearization(
        A, B, C, D, rate, states, mech.actuator_names, labels, q, v, u, mech, part, at.gamma, t,
        along,
    )  # fmt: skip


@quiet
def linearize(
    mech: Mechanism | Compiled,
    q: Any,
    v: Any = None,
    u: Any = None,
    outputs: Any = None,
    t: float = 0.0,
    *,
    partition: Partition | None = None,
    along: str = "fixed",
) -> Linearization:
    """The linear model in minimal coordinates about a closed state: x = (y, yd).

    The state is at rest or in motion. The model includes closures, forces such as springs and
    friction, and constraints that depend on time.

    Parameters
    ----------
    mech : Mechanism or Compiled
        With ``"forward_dynamics_derivatives"`` compiled, derivatives are exact and fast. Otherwise
        they are differences of sixth order of the prepared dynamics.
    q : (nq,) array_like
        A closed configuration: see `assemble`, `equilibrium`.
    v : (nv,) array_like, optional
        A velocity that the constraints allow, rad/s or m/s. Default: rest (with constraints that
        move by themselves, the slowest velocity).
    u : (nu,) array_like, optional
        Motor efforts, N m or N. Default: zero. `equilibrium` finds efforts that hold q.
    outputs : str, task, or sequence of these, optional
        Default: the states. The name of a coordinate or a joint, also of a cut joint: its position;
        ``"motors"``: the positions of all motors; ``"d NAME"``, ``"d motors"``: their rates;
        ``"force NAME"``: the multipliers of a constraint or of a row, N or N m; a task such as
        ``hc.FrameTask("tool")``: the small motion of its rows (rotations in its axes).
    t : float, optional
        Time, s.
    partition : Partition, optional
        Its independent coordinates are y. Default: ``hc.partition(mech, q)``.
    along : str, optional
        The meaning of y for ball, planar and free joints. ``"fixed"``: coordinates of a chart about
        q. ``"motion"``: the step from a reference that moves from q with v, the deviation that a
        controller along a motion uses; ``rate`` is then (0, ydd). A and B of both are equal if v is
        zero, or if no joint is a ball, a planar or a free joint.

    Returns
    -------
    Linearization

    Raises
    ------
    InputError
        For wrong shapes, numbers that are not finite, unknown names, a compiled mechanism without
        derivatives, joints that are neither of one coordinate nor planar, ball or free.
    InconsistentError
        If the closure error of q, or the velocity error of v, is more than 1e-6 (scaled).
    SingularityError
        At a singular configuration; if the independent coordinates do not determine the others; if
        the acceleration has no derivative.

    See Also
    --------
    equilibrium : a point to linearise about.
    lqr : a regulator.
    gains_for : gains with the damping that remains.
    results.Linearization : poles, modes, discrete time.

    References
    ----------
    docs/derivations.md, "Linear models".

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> eq = hc.equilibrium(mech)
    >>> lin = hc.linearize(mech, eq.q, u=eq.u)
    >>> lin.states, lin.B.shape
    (('motor_left', 'motor_right', 'd motor_left', 'd motor_right'), (4, 2))
    """
    if isinstance(mech, Compiled):
        code, partition = _with_derivatives(mech), partition or mech.partition
        mech = code.mech
    else:
        code = None
        check_mechanism(mech)
    given = np.zeros(mech.nv) if v is None else v
    q, given, t = check_state(mech, q, given, number("t", t, "time, s"))
    u = np.zeros(mech.nu) if u is None else vector("u", u, mech.nu, "motor efforts")
    one_of("along", along, ("fixed", "motion"))
    part = decided(mech, q, t=t) if partition is None else partition
    check_partition(mech, part)
    q, v = _closed(mech, part, q, given, t, at_rest=v is None)
    return _linear_model(mech, code, q, v, u, t, part, along, outputs)


def _with_derivatives(code: Compiled) -> Compiled:
    if {"forward_dynamics", "forward_dynamics_derivatives"} <= set(code.functions):
        return code
    raise InputError(
        "linearize needs compiled derivatives: hc.compile(mech, ['forward_dynamics', "
        f"'forward_dynamics_derivatives', 'terms']); got {listing(code.functions)}; or give the "
        "mechanism itself"
    )


def _closed(
    mech: Mechanism, part: Partition, q: Vector, v: Vector, t: float, *, at_rest: bool
) -> tuple[Vector, Vector]:
    """The state projected onto the kept rows.

    Raises
    ------
    InconsistentError
        If the closure error of q, or the velocity error of v, is more than rounding.
    """
    if mech.row_scale.size == 0:
        return q, v
    _, errors, rates = scaled_rows_at(mech, q, v, t)
    allowed = max(CLOSED, part.tolerance)
    speed = 1.0 + largest(v / mech.column_scale)
    for off, limit, what in (
        (errors, allowed, "the closure error of q is"),
        (rates, np.inf if at_rest else allowed * speed, "the velocity error of v is"),
    ):
        if not largest(off) <= limit:
            worst = mech.row_names[int(np.argmax(np.abs(off)))]
            raise InconsistentError(
                f"{mech.name}: {what} {largest(off):.1e} (scaled) in {worst}, more than "
                f"{limit:.0e}: there is no linear model; call hc.assemble first, or hc.corrected "
                "if the error is small",
                residual=largest(off),
            )
    return projected_onto_manifold(mech, part.rows, q, v, t)


def _rows_at(mech: Mechanism, code: Compiled | None, q: Vector, t: float) -> RowsAt:
    """G and drift of all rows at q, from compiled terms if they are available."""
    if code is not None and "terms" in code.functions:

        def by_terms(v: Vector) -> tuple[NDArray[np.float64], Vector]:
            found = code.terms(q, v, t)
            return found.jacobian, found.drift

        return by_terms

    def in_general(v: Vector) -> tuple[NDArray[np.float64], Vector]:
        rows = rows_at(mech, q, v, t)
        return rows.jacobian, rows.drift

    return in_general
