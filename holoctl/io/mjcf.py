"""MJCF, the format of MuJoCo: bodies, joints, equalities, motors and keyframes.

Pinocchio reads MJCF too, but drops joint equalities and all bodies of the world but the
first, silently; so the tree is built here. The way of a file: what it includes is put in
(`mjcf_include`), its words are checked (`mjcf_words`), copies are written out (`mjcf_replicate`),
what elements say is read with their default classes (`mjcf_elements`), bodies become a tree
(`mjcf_tree`, `mjcf_inertia`, and `mjcf_compiled` for the inertias of meshes), then come
`mjcf_tendons`, `mjcf_equalities`, `mjcf_motors`, `mjcf_limits` and `mjcf_forces`;
docs/file-formats.md has the words as a table.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from holoctl.base.checks import Vector, listing
from holoctl.base.tolerances import GEOMETRY_OF_FILES
from holoctl.io.given_limits import GivenLimits, with_limits
from holoctl.io.limits import (
    MOST_CONSTRAINTS,
    MOST_GEOMS,
    MOST_KEYS,
    MOST_PARTS,
    check_count,
)
from holoctl.io.losses import with_losses
from holoctl.io.mjcf_compiled import CompiledFile
from holoctl.io.mjcf_elements import Defaults, Item, compiler_of, sections, unit
from holoctl.io.mjcf_equalities import equalities
from holoctl.io.mjcf_forces import losses_of
from holoctl.io.mjcf_include import include_files
from holoctl.io.mjcf_limits import limits_of_motors
from holoctl.io.mjcf_motors import motors_of
from holoctl.io.mjcf_replicate import write_copies_out
from holoctl.io.mjcf_tendons import by_name, limits_told, tendons_of
from holoctl.io.mjcf_tree import MjcfTree
from holoctl.io.mjcf_words import check_words
from holoctl.io.xml import Element, blamed_on, check_root, parsed
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["elements_of", "read_mjcf"]

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
        Where the file is: what it includes is looked for there. Default: it is no file.
    include_root : path, optional
        The folder that included files must be in. Default: `folder`.
    skip_actuators : bool
        Leave out actuators that make no motor on joints, with a warning. Default: refuse them.
    tolerance : float, optional
        How exactly the geometry is meant. Default: as that of files.
    losses : bool
        Read friction and springs as forces. Default: a warning names them.

    Raises
    ------
    LoadError
        With the line, for anything that is not understood or makes no mechanism.
    """
    root, defaults = elements_of(text, file, folder, include_root)
    gravity, enabled = _options(root, defaults)
    bodies = 1 + sum(element.tag == "body" for element in root.each())
    compiled = CompiledFile(None if folder is None else folder / Path(file).name, bodies)
    tree = MjcfTree(root, defaults, free_flyer, compiled)
    tree.model.gravity.linear = gravity
    tree.build()
    tendons = tendons_of(root, tree)
    rows = equalities(root, tree, by_name(tendons))
    motors = motors_of(root, tree, by_name(tendons), skip_actuators)
    found = losses_of(root, tree, tendons)
    reference = _reference(root, tree)
    off = [i for i, (_, _, active) in enumerate(rows) if not (active and enabled)]
    with blamed_on(root):
        mech = Mechanism(
            tree.model,
            [c for i, (c, _, _) in enumerate(rows) if i not in off],
            motors.names,
            actuation=motors.B,
            reference=reference,
            parked=[(i, rows[i][0]) for i in off],
            tolerance=GEOMETRY_OF_FILES if tolerance is None else tolerance,
        )
    mech = with_losses(mech, found, losses)
    limits = limits_of_motors(root, tree, motors.names, motors.B, motors.ranges)
    mech = with_limits(mech, limits, GivenLimits())
    _warn(tree, motors.left_out, limits_told(tendons))
    return mech


def elements_of(
    text: str, file: str, folder: Path | None = None, include_root: Path | None = None
) -> tuple[Element, Defaults]:
    """The checked elements of an MJCF text, with all that it includes and all copies written out,
    and its default classes; the arguments are those of `read_mjcf`."""
    root = parsed(text, file)
    check_root(root, "mujoco", "an MJCF")
    include_files(root, folder, include_root)
    check_words(root)
    compiler = compiler_of(root)
    write_copies_out(root, compiler)
    _check_counts(root)
    defaults = Defaults(compiler)
    defaults.read(root)
    return root, defaults


def _check_counts(root: Element) -> None:
    """Refuse a file that would take too long, or too much memory; of joints coordinates tell."""
    counts = Counter(element.tag for element in root.each())
    parts = sum(counts[tag] for tag in ("body", "frame", "site"))
    check_count(root, parts, MOST_PARTS, "bodies, frames and sites")
    check_count(root, counts["geom"], MOST_GEOMS, "geoms")
    check_count(root, counts["key"], MOST_KEYS, "keys")
    check_count(root, len(sections(root, "equality")), MOST_CONSTRAINTS, "equalities")


def _options(root: Element, defaults: Defaults) -> tuple[Vector, bool]:
    """Gravity, and whether equalities hold at all."""
    gravity: tuple[float, ...] = (0.0, 0.0, -9.81)
    enabled, off, fluid, solved = True, False, False, True
    for option in root.children:
        if option.tag == "option":
            item = defaults.plain(option)
            gravity = item.numbers("gravity", gravity)
            fluid |= item.size("density", 0.0) > 0.0 or item.size("viscosity", 0.0) > 0.0
            for flag in option.children:
                words = ("enable", "disable")
                item = defaults.plain(flag)
                off = item.word("gravity", words, words[off]) == "disable"
                enabled = item.word("equality", words, words[not enabled]) == "enable"
                solved = item.word("constraint", words, words[not solved]) == "enable"
    if fluid:
        log.warning("%s: the drag of density and viscosity is not part of the equation", root.file)
    return np.zeros(3) if off else np.array(gravity), enabled and solved


def _reference(root: Element, tree: MjcfTree) -> Vector:
    """The key called "home", or the first with a qpos, or the drawing."""
    keys = [tree.defaults.plain(element) for element in sections(root, "keyframe")]
    given = [item for item in keys if "qpos" in item]
    found = [(item, _from_qpos(item, tree)) for item in given]
    named = [q for item, q in found if item.text("name") == "home"]
    return (named or [q for _, q in found] or [tree.home])[0]


def _from_qpos(item: Item, tree: MjcfTree) -> Vector:
    """A configuration from MuJoCo's qpos: its order of quaternions, and ref taken off."""
    q = np.array(item.numbers("qpos", (0.0,) * tree.model.nq))
    for joint in tree.joints.values():
        first = tree.model.idx_qs[joint.index]
        q[first] -= joint.ref
        if joint.type in ("ball", "free"):
            last = first + tree.model.nqs[joint.index]
            w, x, y, z = unit(item, "qpos", q[last - 4 : last])
            q[last - 4 : last] = x, y, z, w
    return q


def _warn(tree: MjcfTree, left_out: Mapping[str, str], limits: list[str]) -> None:
    """One record for each thing that MuJoCo would add, and the equation of motion does not."""
    if left_out:
        some = [f"{name!r} ({why})" for name, why in left_out.items()]
        more = f"; and {len(some) - 10} more" if len(some) > 10 else ""
        log.warning(
            "%s: loaded without the motors of %s actuator%s: %s%s",
            tree.root.file, len(some), "s" * (len(some) > 1), "; ".join(some[:10]), more,
        )  # fmt: skip
    if limits:
        more = f"; and {len(limits) - 10} more" if len(limits) > 10 else ""
        log.warning(
            "%s: limits of tendons hold nothing here; if they couple joints, an <equality> of the "
            "tendon, or a hc.Coupling, says so: %s%s",
            tree.root.file, "; ".join(limits[:10]), more,
        )  # fmt: skip
    if tree.idle:
        log.warning(
            "%s: equalities between parts of one body hold nothing, and are left out: %s",
            tree.root.file, listing(tree.idle),
        )  # fmt: skip
    if tree.placed:
        log.warning(
            "%s: mocap bodies, which are moved from outside, stay where they are drawn: %s",
            tree.root.file, listing(tree.placed),
        )  # fmt: skip
    if tree.lifted:
        log.warning(
            "%s: gravcomp is not part of the equation of motion; bodies: %s",
            tree.root.file, listing(tree.lifted),
        )  # fmt: skip
