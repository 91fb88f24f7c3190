"""SDF, the format of Gazebo: a graph of links and joints, with loops, in a `Linkage`.

Versions 1.4 to 1.12. An SDF defines motors by plugins, so motors, a reference and further closures
are given in a YAML file. The steps: the elements of the file are checked (`sdf_elements`), its
poses resolved (`sdf_frames`), links and joints added to a `Linkage` (`sdf_linkage`), then gears
(`sdf_couplings`), limits (`sdf_limits`) and forces (`sdf_forces`) are added to the mechanism.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from holoctl.base.checks import Vector, listing
from holoctl.io.file_limits import with_limits
from holoctl.io.friction_and_springs import with_forces, with_losses
from holoctl.io.reader_limits import check_size
from holoctl.io.robot_yaml import Sheet, check_constraints, motors_of, read_sheet, with_moves
from holoctl.io.sdf_couplings import couplings
from holoctl.io.sdf_elements import (
    ROOT_JOINT,
    check_words,
    child_of,
    name_of,
    ties_joints,
    triple,
    true,
)
from holoctl.io.sdf_forces import counterbalances, losses_of
from holoctl.io.sdf_frames import Drawing
from holoctl.io.sdf_limits import completed, limits_of_cut
from holoctl.io.sdf_linkage import add_bodies, add_joint, add_root, coordinates
from holoctl.io.urdf import FLAT
from holoctl.io.xml import Element, blamed_on, check_root, parsed
from holoctl.io.yaml_entries import Entry
from holoctl.io.yaml_rotors import put_rotors
from holoctl.mechanism.linkage import Linkage
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.inertia_checks import nearest_moments

__all__ = ["drawing_of", "read_sdf"]

log = logging.getLogger(__name__)

_VERSIONS = tuple(f"1.{i}" for i in range(4, 13))


def read_sdf(
    text: str,
    file: str,
    document: Entry | None,
    free_flyer: bool,
    tolerance: float | None = None,
    losses: bool = False,
) -> Mechanism:
    """The mechanism of an SDF text and of its YAML file.

    Parameters
    ----------
    text, file : str
        The text, and the name of its file for messages.
    document : Entry or None
        The YAML file: motors, reference, closures, couplings, cut.
    free_flyer : bool
        Let the canonical link float, if no joint ties the model to the world; it is fixed
        otherwise.
    tolerance : float, optional
        Tolerance of the geometry. Default: that of the YAML file, or the default for files.
    losses : bool
        Read friction and springs as forces. Default: a warning names them.

    Raises
    ------
    LoadError
        With the line, for anything that is not understood or is not a mechanism.
    """
    root, model = drawing_of(text, file)
    sheet = Sheet() if document is None else read_sheet(document, None)
    if tolerance is not None:
        sheet = replace(sheet, tolerance=tolerance)
    weighs = any(true(link, "gravity", True) for link in model.links.values())
    gravity = _gravity(root) if weighs else np.zeros(3)
    linkage = Linkage(sheet.name or name_of(model.element), gravity)
    add_bodies(model, linkage, free_flyer)
    check_size(model.element, sum(map(len, coordinates(model).values())))
    reference = add_root(model, linkage, free_flyer)
    for name, joint in model.joints.items():
        with blamed_on(joint):
            add_joint(name, joint, model, linkage)
    mech = _built(linkage, model, sheet, reference)
    mech = with_forces(mech, [*counterbalances(model, mech.model), *sheet.forces])
    _warn(model)
    mech = with_losses(mech, losses_of(model, file), losses)
    return with_moves(with_limits(mech, limits_of_cut(mech, model), sheet.limits), sheet)


def drawing_of(text: str, file: str) -> tuple[Element, Drawing]:
    """The checked elements of an SDF text, and its one model with all poses resolved."""
    root = parsed(text, file)
    check_root(root, "sdf", "an SDF")
    version = root.attributes.get("version", "")
    if version not in _VERSIONS:
        raise root.error(f"the version must be one of {', '.join(_VERSIONS)}; got {version[:60]!r}")
    check_words(root)
    model = Drawing(*_only_model(root), int(version.split(".")[1]))
    _check_model(model)
    model.read()
    if not model.links:
        raise model.element.error("there are no links")
    return root, model


def _only_model(root: Element) -> tuple[Element]:
    """The one model of the file."""
    worlds = [child for child in root.children if child.tag == "world"]
    found = [child for place in (root, *worlds) for child in place.children if child.tag == "model"]
    if len(found) != 1:
        place = found[1] if found else root
        names = [model.attributes.get("name", "") for model in found]
        raise place.error(f"one <model> is read; there are {len(found)}: {listing(names)}")
    return (found[0],)


def _check_model(model: Drawing) -> None:
    """Raise an error for elements that would change the meaning of the model."""
    element = model.element
    if element.attributes.get("placement_frame"):
        raise element.error("placement_frame is not read; give the pose of the model itself")
    if true(element, "static", False):
        raise element.error("a static model does not move, so it is not a mechanism")
    pose = child_of(element, "pose")
    if pose is not None and (pose.attributes.get("relative_to") or pose.attributes.get("frame")):
        raise pose.error("the pose of the model must be in the world, not relative to a frame")


def _gravity(root: Element) -> Vector:
    """The gravity of the world; without a world the default."""
    gravity = np.array([0.0, 0.0, -9.81])
    for world in root.children:
        if world.tag == "world":
            gravity = triple(world, "gravity", (0.0, 0.0, -9.8))  # SDF's default
            for physics in world.children:  # the place of gravity in the first versions
                if physics.tag == "physics":
                    gravity = triple(physics, "gravity", tuple(gravity))
    return gravity


def _built(
    linkage: Linkage, model: Drawing, sheet: Sheet, reference: dict[str, list[float]]
) -> Mechanism:
    """The mechanism with motors, couplings and limits."""
    free = [f"{ROOT_JOINT}[{i}]" for i in range(6)] if reference else []
    names = [*free, *(name for names in coordinates(model).values() for name in names)]
    with blamed_on(model.element):
        mech = linkage.mechanism(reference=reference, tolerance=sheet.tolerance)
    motors = motors_of(sheet, names, mech.model)
    given = {name: entry.numbers() for name, entry in sheet.reference.items()}
    places = [*sheet.cut, *sheet.reference.values(), *sheet.motors]
    if places:
        with blamed_on(places[0]):
            cut = [entry.text() for entry in sheet.cut]
            mech = linkage.mechanism(cut, motors, {**reference, **given}, tolerance=sheet.tolerance)
    extra = [*couplings(model), *sheet.closures, *sheet.couplings]
    with blamed_on(model.element):
        completed_model = completed(mech.model, model)
    put_rotors(completed_model, sheet.rotors, sheet.ratios)
    with blamed_on(model.element):
        mech = mech.with_model(completed_model)
        check_constraints([*((c, model.element) for c in mech.constraints), *extra], mech.model)
        return mech.with_constraints(*(c for c, _ in extra)) if extra else mech


def _warn(model: Drawing) -> None:
    """Log one warning for each kind of correction or reinterpretation of the file."""
    if model.flat:
        log.warning(FLAT, model.element.file, listing(model.flat))
    if model.ground is not None:
        log.warning(
            "%s: the link 'world' (line %s) is at the origin of the world and no joint ties it, "
            "so it is taken as the world",
            model.element.file, model.ground.line,
        )  # fmt: skip
    ties = [e for e in model.element.each() if e.tag == "plugin" and ties_joints(e)]
    if ties:
        some = ", ".join(f"{plugin} (line {plugin.line})" for plugin in ties[:10])
        log.warning(
            "%s: plugins are not read, and by their names these tie joints: %s; use couplings and "
            "closed_loop of the YAML file instead",
            model.element.file, some,
        )  # fmt: skip
    if model.odd:
        first = next(iter(model.odd.values()))
        given, used = (
            ", ".join(f"{m:.3g}" for m in np.linalg.eigvalsh(moments))
            for moments in (first, nearest_moments(first))
        )
        log.warning(
            "%s: no body has the principal moments of inertia of these links, because one is "
            "larger than the sum of the others; they are a thousandth of the model at most, so "
            "the nearest that a body has are used: %s (the first: %s for %s kg m^2)",
            model.element.file, listing(list(model.odd)), used, given,
        )  # fmt: skip
