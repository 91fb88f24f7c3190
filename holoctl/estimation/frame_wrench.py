"""The wrench at a frame that explains efforts on the motions, where they determine it.

    J_y' f = tau        J_y = J gamma: rates of the frame by those of the motions

The wrench minimises the residual of tau in the metric of the motions' inertia W = gamma' M gamma,
so the result does not depend on the choice of their coordinates:

    W = L L'        Y = L^-1 J_y'        Y f = L^-1 tau by least squares

J_y may have fewer independent rows than axes were requested. Then tau does not determine f, and
the error names the axes. Forces and moments are compared with moments divided by the size of the
mechanism. J_y is also compared with the Jacobian of the tree without its constraints: a frame that
the constraints hold still moves only by rounding errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import blas

from holoctl.base.checks import Array, Vector, counted, known_name, listing, quoted, shown
from holoctl.base.errors import InputError, SingularityError
from holoctl.base.linalg import Cholesky, PivotedQR, cholesky, pivoted_qr
from holoctl.estimation.reduced_dynamics import ReducedMotion
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.tree.coordinates import support
from holoctl.tree.frames import POSE_AXES, Frame, FrameLike, resolve_frame
from holoctl.tree.kinematics import kinematics

__all__ = ["FrameWrench", "frame_wrench", "wrench_axes"]

UNDETERMINED_WRENCH = 1e-4
"""The motions do not determine the wrench along a direction in which they move the frame by less
than this fraction of its motion in other directions, in the metric of their inertia."""

WRENCH_OF_TREE = 1e-3
"""The motion of the frame in other directions counts as at least this fraction of the motion that
the tree without constraints would allow."""


@dataclass(frozen=True, eq=False)
class FrameWrench:
    """A wrench at a frame, estimated from efforts on the motions.

    Attributes
    ----------
    axes : tuple of str
        The axes of the entries of `wrench`.
    wrench : (rows,) array
        Forces, N, and moments, N m, about the origin of the frame, along the axes of the world,
        exerted by the surroundings on the robot. Along the other axes it is assumed zero.
    residual : (k,) array
        Efforts on the motions that no such wrench explains, N m or N.
    share : float
        The norm of the residual divided by that of the efforts, 0 to 1, in the metric of their
        inertia; 0 if there are as many axes as motions. A value near one means that something else
        acts, or only noise.
    condition : float
        The condition number of J_y in the same metric, with moments over the size of the
        mechanism: how much less accurate the wrench is along some axes than along others.

    See Also
    --------
    MomentumObserver : returns it, from `wrench`.
    results.ConstraintWrench : the wrench in a closure.

    Examples
    --------
    Motors that hold the robot against a force at its tip:

    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> held = hc.inverse_dynamics(mech, q, v, [0.0, 0.0], f_ext={"tip": [5.0, 0, 2, 0, 0, 0]})
    >>> observer = hc.MomentumObserver(mech, gain=1000.0, dt=1e-3)
    >>> observer.reset(q, v)
    >>> for _ in range(20):
    ...     efforts = observer.update(q, v, held.u)
    >>> observer.wrench("tip", "x z").wrench.round(2).tolist()
    [5.0, 2.0]
    """

    axes: tuple[str, ...]
    wrench: Vector
    residual: Vector
    share: float
    condition: float

    def __repr__(self) -> str:
        entries = zip(self.axes, self.wrench, strict=True)
        wrench = ", ".join(f"{axis} {x:.4g}" for axis, x in entries)
        return (
            f"<FrameWrench: {wrench} (N, N m); {100.0 * self.share:.2g} % of the efforts not "
            f"explained, condition number {self.condition:.2g}>"
        )


def wrench_axes(axes: Any) -> tuple[str, ...]:
    """The names in ``"x y rz"``, or in a list of them.

    Raises
    ------
    InputError
        For an unknown axis, an axis named twice, or no axis.
    """
    if isinstance(axes, str):
        names: list[Any] = axes.split()
    elif isinstance(axes, (list, tuple)):
        names = list(axes)
    else:
        raise InputError(f"axes must be words such as 'x y rz'; got {shown(axes)!r}")
    for name in names:
        known_name(name, POSE_AXES, "axis", "axes")
    if not names or len(set(names)) < len(names):
        raise InputError(
            f"axes must name some of {listing(POSE_AXES)}, each once; got {quoted(axes)}"
        )
    return tuple(names)


def frame_wrench(
    mech: Mechanism,
    motion: ReducedMotion,
    efforts: Vector,
    frame: FrameLike,
    axes: tuple[str, ...],
    size: float,
) -> FrameWrench:
    """See the head of this module.

    Parameters
    ----------
    mech : Mechanism
    motion : ReducedMotion
    efforts : (k,) array
        tau, N m or N.
    frame : str or (str, pin.SE3)
    axes : tuple of str
        As `wrench_axes` returns them.
    size : float
        The size of the mechanism, m.

    Raises
    ------
    InputError
        For an unknown frame.
    SingularityError
        If the motions do not determine the wrench, or some motion has no inertia.
    """
    at = resolve_frame(mech.model, frame, "wrench")
    inertia = cholesky(motion.gamma.T.dot(motion.M.dot(motion.gamma)))
    if not np.isfinite(inertia.condition):
        raise SingularityError(
            f"{mech.name}: some motion has no inertia here, so the efforts on the motions cannot "
            "be compared with each other",
            condition=inertia.condition,
        )
    unit = np.array([1.0, 1.0, 1.0, size, size, size])
    tree, J = _jacobians(mech, motion, at)
    metric = inertia.whitened(unit[:, None] * J).T  # L^-1 J_y'
    rows = [POSE_AXES.index(axis) for axis in axes]
    own = float(np.sqrt((metric * metric).sum(axis=0).max()))
    most = max(own, WRENCH_OF_TREE * _of_tree(mech, motion, unit[:, None] * tree, inertia))
    qr = pivoted_qr(metric[:, rows], tol=UNDETERMINED_WRENCH, size=most)
    if qr.rank < len(axes):
        raise _undetermined(mech, at, axes, qr, J.shape[1])
    b: Vector = blas.dtrsv(inertia.factor, efforts, lower=1)
    f = qr.fitted(b)
    left, whole = b - metric[:, rows].dot(f), float(np.linalg.norm(b))
    wrench = unit[rows] * f
    return FrameWrench(
        axes,
        wrench,
        residual=efforts - J[rows].T.dot(wrench),
        share=min(float(np.linalg.norm(left)) / whole, 1.0) if whole > 0.0 else 0.0,
        condition=qr.condition,
    )


def _jacobians(mech: Mechanism, motion: ReducedMotion, at: Frame) -> tuple[Array, Array]:
    """J (6, nv) and J_y (6, k) of a frame, at its origin, along the axes of the world."""
    kin = kinematics(mech.model, workspace(mech), motion.q, motion.v, motion.t)
    J: Array = support(mech.model, at.joint) * kin.J
    J[:3] += np.cross(J[3:], kin.point(at), axis=0)  # omega x p
    return J, J.dot(motion.gamma)


def _of_tree(mech: Mechanism, motion: ReducedMotion, J: Array, inertia: Cholesky) -> float:
    """The size of a frame's motion in the tree without constraints, for motions as large as those
    of the mechanism. A frame that moves far less is held by the constraints, up to rounding."""
    c = mech.column_scale
    each = inertia.whitened(motion.gamma / c[:, None])
    mean = float((each * each).sum()) / max(each.shape[1], 1)
    longest = float(np.vecdot(J * c, J * c).max())
    return float(np.sqrt(longest * mean))


def _undetermined(
    mech: Mechanism, at: Frame, axes: tuple[str, ...], qr: PivotedQR, k: int
) -> SingularityError:
    """The error that names the axes along which no motion moves the frame."""
    r = qr.rank
    still = [
        np.concatenate([-qr.solve_r1(column), unit])
        for column, unit in zip(qr.r2.T, np.eye(len(axes) - r), strict=True)
    ]
    sizes = np.zeros(len(axes))
    sizes[qr.pivots] = np.abs(still).max(axis=0)
    names = [axis for axis, x in zip(axes, sizes, strict=True) if x > UNDETERMINED_WRENCH]
    most = "" if k >= len(axes) else f" (at most {k})"
    return SingularityError(
        f"{mech.name}: efforts on {counted(k, 'motion')} determine {r} of the {len(axes)} "
        f"requested components of the wrench at {at.name!r}{most}: not those along "
        f"{listing(names)}, or along some combination of these, which the constraints carry; "
        "request fewer axes",
        names=names,
    )
