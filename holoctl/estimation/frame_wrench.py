"""The wrench at a frame that explains efforts on the motions, where they determine it.

    J_y' f = tau        J_y = J gamma: rates of the frame by those of the motions

The wrench is that of the least part of tau that is left, in the metric of the motions' inertia
W = gamma' M gamma, in which the choice of their coordinates has no part:

    W = L L'        Y = L^-1 J_y'        Y f = L^-1 tau by least squares

J_y may have fewer independent rows than were asked for. Then tau does not tell f, and what it does
not tell is named. Numbers are compared where moments are taken over the size of the mechanism, also
with those of the tree without its constraints: a frame that these hold moves by rounding alone.
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

UNTOLD_WRENCH = 1e-4
"""Where the motions move a frame in some direction by less than this part of what they do in
others, in the metric of their inertia, they do not tell what acts along it."""

WRENCH_OF_TREE = 1e-3
"""What they do in others counts as this share at least of what the tree alone would do."""


@dataclass(frozen=True, eq=False)
class FrameWrench:
    """A wrench at a frame, found from efforts on the motions.

    Attributes
    ----------
    axes : tuple of str
        What the numbers are along.
    wrench : (rows,) array
        Forces, N, and moments, N m, about the origin of the frame, along the axes of the world:
        what the surroundings exert on the robot. Along axes that were not asked for there is none.
    residual : (k,) array
        Efforts on the motions that no such wrench explains, N m or N.
    share : float
        How much of the efforts that is, 0 to 1, in the metric of their inertia; 0 where there are
        as many axes as motions. Near one, something else acts, or nothing at all but noise.
    condition : float
        By how much some axes are told worse than others: condition number of J_y, with moments over
        the size of the mechanism, in the same metric.
    """

    axes: tuple[str, ...]
    wrench: Vector
    residual: Vector
    share: float
    condition: float

    def __repr__(self) -> str:
        told = ", ".join(f"{axis} {x:.4g}" for axis, x in zip(self.axes, self.wrench, strict=True))
        return (
            f"<FrameWrench: {told} (N, N m); {100.0 * self.share:.2g} % of the efforts not "
            f"explained, condition number {self.condition:.2g}>"
        )


def wrench_axes(axes: Any) -> tuple[str, ...]:
    """The names in ``"x y rz"``, or in a list of them.

    Raises
    ------
    InputError
        For what is no axis, is named twice, or is nothing.
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
        tau.
    frame : str or (str, pin.SE3)
    axes : tuple of str
        As `wrench_axes` returns them.
    size : float
        Of the mechanism, m.

    Raises
    ------
    InputError
        For an unknown frame.
    SingularityError
        Where the motions do not tell the wrench; or have no inertia.
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
    asked = [POSE_AXES.index(axis) for axis in axes]
    own = float(np.sqrt((metric * metric).sum(axis=0).max()))
    most = max(own, WRENCH_OF_TREE * _of_tree(mech, motion, unit[:, None] * tree, inertia))
    qr = pivoted_qr(metric[:, asked], tol=UNTOLD_WRENCH, size=most)
    if qr.rank < len(axes):
        raise _untold(mech, at, axes, qr, J.shape[1])
    b: Vector = blas.dtrsv(inertia.factor, efforts, lower=1)
    f = qr.fitted(b)
    left, whole = b - metric[:, asked].dot(f), float(np.linalg.norm(b))
    wrench = unit[asked] * f
    return FrameWrench(
        axes,
        wrench,
        residual=efforts - J[asked].T.dot(wrench),
        share=min(float(np.linalg.norm(left)) / whole, 1.0) if whole > 0.0 else 0.0,
        condition=qr.condition,
    )


def _jacobians(mech: Mechanism, motion: ReducedMotion, at: Frame) -> tuple[Array, Array]:
    """(6, nv) and (6, k): J, and J_y, of a frame, at its origin, along the axes of the world."""
    kin = kinematics(mech.model, workspace(mech), motion.q, motion.v, motion.t)
    J: Array = support(mech.model, at.joint) * kin.J
    J[:3] += np.cross(J[3:], kin.point(at), axis=0)  # omega x p
    return J, J.dot(motion.gamma)


def _of_tree(mech: Mechanism, motion: ReducedMotion, J: Array, inertia: Cholesky) -> float:
    """How far the tree alone would move a frame, by motions as large as those that are left: what
    moves far less is held by the constraints, and the rest of it is rounding."""
    c = mech.column_scale
    each = inertia.whitened(motion.gamma / c[:, None])
    mean = float((each * each).sum()) / max(each.shape[1], 1)
    longest = float(np.vecdot(J * c, J * c).max())
    return float(np.sqrt(longest * mean))


def _untold(
    mech: Mechanism, at: Frame, axes: tuple[str, ...], qr: PivotedQR, k: int
) -> SingularityError:
    """What efforts on the motions do not tell: combinations of axes that move nothing."""
    r = qr.rank
    still = [
        np.concatenate([-qr.solve_r1(column), unit])
        for column, unit in zip(qr.r2.T, np.eye(len(axes) - r), strict=True)
    ]
    sizes = np.zeros(len(axes))
    sizes[qr.pivots] = np.abs(still).max(axis=0)
    names = [axis for axis, x in zip(axes, sizes, strict=True) if x > UNTOLD_WRENCH]
    most = "" if k >= len(axes) else f" (at most {k})"
    return SingularityError(
        f"{mech.name}: efforts on {counted(k, 'motion')} tell {r} of the {len(axes)} numbers that "
        f"were asked for at {at.name!r}{most}: not what acts along {listing(names)}, or along some "
        "combination of these, which the constraints carry; ask for fewer axes",
        names=names,
    )
