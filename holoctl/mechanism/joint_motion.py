"""Position and rate of any joint in its own coordinates, including joints that close a loop."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pinocchio as pin

from holoctl.base.checks import known_name, quiet
from holoctl.constraints.closure import Closure
from holoctl.constraints.joint_coordinates import (
    Joint,
    JointMotion,
    joint_called,
    part_names,
    series,
)
from holoctl.mechanism.checks import check_mechanism, check_state
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.tree.frozen_model import plain
from holoctl.tree.kinematics import kinematics

__all__ = ["joint_motion"]


@quiet
def joint_motion(mech: Mechanism, name: str, q: Any, v: Any = None, t: float = 0.0) -> JointMotion:
    """Position and rate of a joint: one of the tree, or a `Closure` that is a joint.

    A cut joint has the same position and rate as its coordinates would have if another joint were
    cut: those of frame b relative to frame a.

    ===========  ======================================================================
    type         value and rate
    ===========  ======================================================================
    revolute     angle about z of a; of a cut joint in (-pi, pi]
    prismatic    length along z of a
    cylindrical  length along z, angle about z
    universal    angle about x of a, then about y of b
    planar       x and y in axes of a, angle about z
    spherical    quaternion x y z w (of a cut joint: w >= 0); angular velocity in axes of b
    free         position in axes of a, quaternion; velocity, angular velocity in axes of b
    screw        angle about z of a; of a cut joint in (-pi, pi]
    weld         nothing: arrays of size zero
    ===========  ======================================================================

    Parameters
    ----------
    mech : Mechanism
    name : str
        A joint of the tree (of several joints ``name[0]``, ``name[1]`` in series: ``name``), or
        a `Closure` with ``joint=``. A joint of the tree is looked up first.
    q : (nq,) array_like
        Configuration. The position of a cut joint is meaningful only if its loop is closed.
    v : (nv,) array_like, optional
        Velocity. Default: zero.
    t : float, optional
        Time, s. No joint depends on it.

    Returns
    -------
    JointMotion
        The rate of a cut joint is the exact derivative of its value if the mechanism is closed and
        moves along its constraints.

    Raises
    ------
    InputError
        For a name that is not a joint, wrong shapes, numbers that are not finite.

    See Also
    --------
    Closure : a joint that is cut.
    Linkage : makes joints of these types.
    ClosedStateEstimator : measures such joints.

    Notes
    -----
    A tree joint of a model that was not made by `Linkage` keeps Pinocchio's own numbers, except
    that a continuous joint has its angle instead of cosine and sine.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> hc.joint_motion(mech, "tip_hinge", q).value.round(3).tolist()
    [1.566]
    """
    check_mechanism(mech)
    q, v, t = check_state(mech, q, np.zeros(mech.nv) if v is None else v, t)
    model = plain(mech.model)
    closures = {
        label: c
        for c, label in zip(mech.constraints, mech.constraint_names, strict=True)
        if isinstance(c, Closure) and c.joint is not None
    }
    if not part_names(model, name):
        welds = {f.name for f in model.frames[1:] if f.type == pin.FrameType.FIXED_JOINT}
        if isinstance(name, str) and name in welds:
            return JointMotion(np.zeros(0), np.zeros(0), np.zeros((0, mech.nv)))
        valid = sorted({*model.names[1:], *series(model), *closures})
        known_name(name, valid, "joint", f"{mech.name}: joint_motion")
    # not None, because no closure is off here
    joint = cast(Joint, joint_called(model, name, closures, "joint_motion"))
    return joint.at(kinematics(mech.model, workspace(mech), q, v, t))
