"""MJCF, the format of MuJoCo: bodies, joints, equalities, motors and keyframes.

MuJoCo's own compiler reads it, so a file has the same meaning as in MuJoCo. The steps: the file is
checked, completed and written as one text (`mjcf_text`), compiled (`mjcf_compiled`), its bodies
become a tree (`mjcf_tree`), followed by `mjcf_equalities`, `mjcf_actuators` and `mjcf_forces`;
docs/file-formats-mjcf.md lists the elements in a table.
"""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np

from holoctl.base.checks import Vector, listing
from holoctl.base.tolerances import GEOMETRY_OF_FILES
from holoctl.io.file_limits import FileLimits, with_limits
from holoctl.io.friction_and_springs import with_losses
from holoctl.io.mjcf_actuators import MjcfMotors, motors_of
from holoctl.io.mjcf_compiled import CompiledMjcf, compiled
from holoctl.io.mjcf_equalities import equalities
from holoctl.io.mjcf_forces import losses_of
from holoctl.io.mjcf_text import mjcf_text, sections
from holoctl.io.mjcf_tree import MjcfTree, range_of, tree_of
from holoctl.io.xml import blamed_on, decimals
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["read_mjcf"]

log = logging.getLogger(__name__)


def read_mjcf(
    text: str,
    file: str,
    free_flyer: bool = False,
    *,
    folder: Path | None = None,
    include_root: Path | None = None,
    skip_actuators: bool = False,
    tolerance: float | None = None,
    losses: bool = False,
) -> Mechanism:
    """The mechanism of an MJCF text.

    Parameters
    ----------
    text, file : str
        The text, and the name of its file for messages.
    free_flyer : bool
        Let the first body of the world float on a joint "root_joint"; only for a file without
        a free joint, whose first body has no joint at all.
    folder : path, optional
        The folder of the file, in which included files are searched. Default: the text is not from
        a file.
    include_root : path, optional
        The folder that included files must be in. Default: `folder`.
    skip_actuators : bool
        Leave out actuators that are not motors on joints, with a warning. Default: raise an error.
    tolerance : float, optional
        Tolerance of the geometry. Default: that of files.
    losses : bool
        Read friction and springs as forces. Default: a warning names them.

    Raises
    ------
    LoadError
        With the line, for anything that MuJoCo's compiler refuses or that is not a mechanism; also
        without the package mujoco.
    """
    found = compiled(mjcf_text(text, file, folder, include_root), free_flyer)
    root, tree = found.text.root, tree_of(found)
    rows, idle = equalities(found, tree)
    motors = motors_of(found, tree, skip_actuators)
    enabled = not found.off("EQUALITY", "CONSTRAINT")
    off = [i for i, (_, active) in enumerate(rows) if not (active and enabled)]
    with blamed_on(root):
        mech = Mechanism(
            tree.model,
            [c for i, (c, _) in enumerate(rows) if i not in off],
            motors.names,
            actuation=motors.B,
            reference=_reference(found, tree),
            parked=[(i, rows[i][0]) for i in off],
            tolerance=GEOMETRY_OF_FILES if tolerance is None else tolerance,
        )
    mech = with_losses(mech, losses_of(found, tree), losses)
    mech = with_limits(mech, motors.limits, FileLimits())
    _warn(found, tree, motors, idle)
    return mech


def _reference(found: CompiledMjcf, tree: MjcfTree) -> Vector:
    """The key called "home", or the first with a qpos, or the initial configuration of the file."""
    keys = [e for e in sections(found.text.root, "keyframe") if "qpos" in e.attributes]
    given = []
    for key in keys:
        qpos = decimals(key.attributes["qpos"], [tree.model.nq])
        if qpos is None or any(not np.linalg.norm(x) for x in tree.quaternions(np.array(qpos))):
            raise key.error(
                f"{key}: qpos must be {tree.model.nq} finite numbers, with quaternions that are "
                f"not zero; got {key.attributes['qpos'][:60]!r}"
            )
        given.append(tree.from_qpos(np.array(qpos), found.model.qpos0))
    home = [q for key, q in zip(keys, given, strict=True) if key.attributes.get("name") == "home"]
    return (home or given or [tree.home])[0]


def _limits_of_tendons(found: CompiledMjcf, tree: MjcfTree) -> list[str]:
    """The limits of tendons, in words."""
    m, limits = found.model, list[str]()
    for t, part in enumerate(found.tendons):
        within = range_of(part, "range", "limited", m.tendon_limited[t], m.tendon_range[t])
        arms = found.arms(t)
        if within is not None and arms != {}:
            what = " ".join(f"{x:+g} {tree.joint(j)!r}" for j, x in (arms or {}).items())
            limits.append(
                f"{part.name or f'tendon {t}'!r} (line {part.place.line}): {what or 'its length'} "
                f"within {within[0]:g} and {within[1]:g}"
            )
    return limits


def _warn(found: CompiledMjcf, tree: MjcfTree, motors: MjcfMotors, idle: list[str]) -> None:
    """Log one warning for each effect of MuJoCo that is not in the equation of motion."""
    m, file = found.model, found.text.root.file
    if motors.left_out:
        some = [f"{name!r} ({why})" for name, why in motors.left_out.items()]
        log.warning(
            "%s: loaded without the motors of %s actuator%s: %s",
            file, len(some), "s" * (len(some) > 1), _first(some),
        )  # fmt: skip
    if limits := _limits_of_tendons(found, tree):
        log.warning(
            "%s: limits of tendons are not enforced here; if they couple joints, use an "
            "<equality> of the tendon, or a hc.Coupling: %s",
            file, _first(limits),
        )  # fmt: skip
    names = tree.body_names
    placed = [names[i] for i in np.flatnonzero(m.body_mocapid >= 0)]
    lifted = [names[i] for i in np.flatnonzero(m.body_gravcomp)]
    for what, which in (
        ("equalities between parts of one body constrain nothing, and are left out: %s", idle),
        ("mocap bodies, which are moved from outside, stay at their initial poses: %s", placed),
        ("gravcomp is not part of the equation of motion; bodies: %s", lifted),
    ):
        if which:
            log.warning(f"%s: {what}", file, listing(which))
    if m.opt.density > 0.0 or m.opt.viscosity > 0.0:
        log.warning("%s: the drag of density and viscosity is not part of the equation", file)


def _first(some: list[str], most: int = 10) -> str:
    more = f"; and {len(some) - most} more" if len(some) > most else ""
    return "; ".join(some[:most]) + more
