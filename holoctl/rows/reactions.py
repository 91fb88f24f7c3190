"""Forces and moments of constraints on bodies, from multipliers or impulses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from holoctl.base.checks import Array, Vector, one_of, quiet, vector
from holoctl.base.errors import InputError
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.mechanism.checks import check_configuration, check_mechanism
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.rows.evaluate import rows_of
from holoctl.tree.frames import Frame
from holoctl.tree.frozen_model import plain
from holoctl.tree.kinematics import Kinematics, kinematics

__all__ = ["ConstraintWrench", "constraint_wrenches"]

WRENCHES_AGREE = 1e-9
"""Largest difference between wrenches of rows and their Jacobian, relative to 1 + its largest
entry."""


AXES = ("world", "body", "frame")


@dataclass(frozen=True, eq=False)
class ConstraintWrench:
    """The wrench of a constraint on one of its two bodies, at the origin of its frame there.

    Attributes
    ----------
    frame : str
        Name of the frame, or of the joint that it is placed in.
    body : str
        Name of the joint that moves the body; ``"universe"`` for the ground.
    point : (3,) array
        Origin of the frame, world axes, m, at which the force acts.
    force : (3,) array
        N, or N s from impulses.
    moment : (3,) array
        About `point`, N m, or N m s.

    See Also
    --------
    constraint_wrenches : returns them.
    results.FrameWrench : an external wrench, estimated.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> found = hc.inverse_dynamics(mech, q, v, [0.0, 0.0])
    >>> left, right = hc.constraint_wrenches(mech, q, found.multipliers)["tip_hinge"]
    >>> bool(abs(left.force + right.force).max() < 1e-9)
    True
    """

    frame: str
    body: str
    point: Vector
    force: Vector
    moment: Vector


@quiet
def constraint_wrenches(
    mech: Mechanism, q: Any, multipliers: Any, axes: str = "world"
) -> dict[str, tuple[ConstraintWrench, ConstraintWrench]]:
    """Forces and moments of closures, rods and contacts on their bodies.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array_like
        Configuration.
    multipliers : (m,) array_like
        lambda of every row (or impulses), from a result.
    axes : str, optional
        Axes of force and moment: ``"world"``, ``"body"`` (those of the joint that moves the
        body) or ``"frame"`` (those of the frame itself).

    Returns
    -------
    dict
        Constraint name to the wrenches on the bodies of its frames `a` and `b` (a contact: the
        ground, then the body). Taken about one point they are opposite. Couplings, `Custom` and
        `GammaQ` act on coordinates, by ``G^T lambda``, and are not included.

    Raises
    ------
    InputError
        For wrong shapes, or numbers that are not finite.

    See Also
    --------
    methods.by_constraint : multipliers by constraint.
    inverse_dynamics : returns multipliers.
    impulse : returns impulses.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech, [2.0, -1.2, 0.9, 1.4])
    >>> found = hc.inverse_dynamics(mech, q, v, [0.0, 0.0])
    >>> left, right = hc.constraint_wrenches(mech, q, found.multipliers)["tip_hinge"]
    >>> right.body, right.force[[0, 2]].round(2).tolist()
    ('elbow_right', [3.45, -2.09])
    """
    check_mechanism(mech)
    q = check_configuration(mech, q)
    lam = vector("multipliers", multipliers, mech.row_scale.size, "one for each row")
    one_of("axes", axes, AXES)
    kin = kinematics(mech.model, workspace(mech), q, np.zeros(mech.nv), 0.0)

    def on(frame: Frame, force: Vector, moment: Vector) -> ConstraintWrench:
        point = kin.point(frame)
        about_point = moment - np.cross(point, force)
        R = np.eye(3)
        if axes != "world":
            R = kin.placements[frame.joint].rotation
        if axes == "frame":
            R = R @ frame.placement.rotation
        body = plain(mech.model).names[frame.joint]
        return ConstraintWrench(frame.name, body, point, R.T @ force, R.T @ about_point)

    found = {}
    for name, rows in zip(mech.constraint_names, mech.bound, strict=True):
        if not isinstance(rows, WrenchRows):
            continue
        found_rows = rows.rows(kin)
        wrenches = found_rows.wrenches
        if wrenches is not None:
            _check_wrenches(name, rows, wrenches, found_rows.jacobian, kin)
            w = lam[rows_of(mech, name)] @ wrenches  # about the world origin, on b
            force, moment = w[:3], w[3:]
            a, b = rows.frames1[0], rows.frames2[0]
            found[name] = (on(a, -force, -moment), on(b, force, moment))
    return found


def _check_wrenches(
    name: str, rows: WrenchRows, wrenches: Array, jacobian: Array, kin: Kinematics
) -> None:
    """Raise `InputError` if the wrenches of a user-defined class contradict its Jacobian."""
    if type(rows) is WrenchRows:
        return
    expected = (wrenches @ kin.J) * rows.S[rows.pair]
    if not np.abs(expected - jacobian).max() <= WRENCHES_AGREE * (1.0 + np.abs(jacobian).max()):
        raise InputError(
            f"constraint {name!r}: the wrenches of its rows contradict their Jacobian, so "
            "its forces are unknown; rows of a user-defined class may leave wrenches out"
        )
