"""Placements and Jacobians of frames, in the axes of the world.

    p, R    R = R_j R_f,  p = o_j + R_j p_f                a frame (R_f, p_f) on the body of joint j
    J       J_v = sum over k of (u_k + w_k x (p - o_k)),  J_w = sum over k of w_k

k are the coordinates between the world and the body: column by column. B. Siciliano and others,
Robotics, the chapter on differential kinematics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holoctl.base.checks import listing
from holoctl.base.errors import InputError
from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.matrices import total
from holoctl.codegen.relative_motion import jacobian_at, placed, see
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frames import Frame, resolve_frame

__all__ = ["frames_for", "kinematics_function"]


def frames_for(
    mech: Mechanism, functions: Sequence[str], frames: Sequence[str], owner: str
) -> list[Frame]:
    """The frames of the function ``"kinematics"``, by name; none without it.

    Raises
    ------
    InputError
        For unknown frames; for frames without the function, and the reverse.
    """
    if ("kinematics" in functions) is not bool(frames):
        raise InputError(
            f"{mech.name}: frames and the function 'kinematics' belong together; got functions "
            f"{listing(functions)} and frames {listing(frames) or 'none'}"
        )
    return [resolve_frame(mech.model, x, f"{owner}: frames") for x in frames]


def kinematics_function(E: Expressions, frames: Sequence[Frame], batch: bool = False) -> Any:
    """``kinematics(q) -> p (F, 3), R (3 F, 3), J (6 F, nv), guard``, one frame below the other.

    Each R is transposed: its axes are rows, so that it is stored column by column. For a batch it
    is not, and t follows q, as in a law. The guard is that of quaternions and cosine-sine pairs:
    placements do not depend on constraints.
    """
    ca = casadi_module()
    at = [_of_frame(E, x) for x in frames]
    p, J = (ca.vertcat(*x) for x in zip(*((p.T, J) for p, _, J in at), strict=True))
    R = ca.vertcat(*(R if batch else R.T for _, R, _ in at))
    given, names = ([E.q, E.t], ["q", "t"]) if batch else ([E.q], ["q"])
    outputs = [*map(ca.densify, (p, R, J)), total(E.unit_guard)]
    return ca.Function("kinematics", given, outputs, names, ["p", "R", "J", "guard"])


def _of_frame(E: Expressions, frame: Frame) -> tuple[SX, SX, SX]:
    """Origin (3, 1), axes (3, 3) and Jacobian (6, nv)."""
    s = see(E.tree, (0, 0), E.tree.of_joint[frame.joint], E.v, {})
    R, p = placed(s, frame)
    return p, R, jacobian_at(s, p, E.mech.nv)
