"""The visible shapes of a mechanism: those of its file, and capsules for other bodies.

A shape is fixed in a joint of the model. Bodies of a file are frames of the model with the same
names, also if fixed joints have merged several into one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pinocchio as pin

from holoctl.app.view.capsules import capsules, slide_bars
from holoctl.app.view.meshes import Meshes
from holoctl.app.view.mjcf_geometry import drawn_in_mjcf
from holoctl.app.view.sdf_geometry import drawn_in_sdf
from holoctl.app.view.shapes import DrawnSolid, Geometry, Shape
from holoctl.app.view.urdf_geometry import drawn_in_urdf
from holoctl.base.checks import listing
from holoctl.io.load import main_file, text_of
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frozen_model import plain

__all__ = ["Geometry", "Shape", "capsules", "read_geometry", "shapes_of"]

_MOST_WORDS = 10
"""Largest number of sentences that are reported; the number of further ones is added."""


def shapes_of(
    mech: Mechanism,
    path: str | os.PathLike[str] | None = None,
    include_root: str | os.PathLike[str] | None = None,
) -> Geometry:
    """The shapes of a mechanism: those of its file, capsules for bodies without shapes, and bars
    for prismatic joints between such bodies. A base is added if the file has shapes neither for the
    world nor for all bodies that move.

    Parameters
    ----------
    mech : Mechanism
    path : str or path, optional
        The file of the mechanism, as for `load`. Default: none, and all bodies are capsules.
    include_root : str or path, optional
        As for `load`.

    Returns
    -------
    Geometry

    Raises
    ------
    LoadError
        For a file that cannot be loaded.
    """
    found = Geometry(()) if path is None else read_geometry(path, mech, include_root)
    drawn = {shape.joint for shape in found.shapes}
    if drawn >= set(range(1, mech.model.njoints)):
        drawn.add(0)
    others = [shape for shape in capsules(mech) if shape.joint not in drawn]
    bars = tuple(bar for bar in slide_bars(mech) if not drawn.intersection(bar.joints))
    return Geometry((*found.shapes, *others), found.words, bars)


def read_geometry(
    path: str | os.PathLike[str],
    mech: Mechanism,
    include_root: str | os.PathLike[str] | None = None,
) -> Geometry:
    """The shapes in the file of a mechanism.

    Parameters
    ----------
    path, include_root
        As for `load`. From a URDF or SDF ``<visual>`` is read, and ``<collision>`` of links without
        any; from an MJCF geoms of the groups 0 to 2, and all geoms of a body without these.
        Infinite ground is left out.
    mech : Mechanism

    Returns
    -------
    Geometry
        Shapes in the order of the file. Its words name, with file and line, shapes that are left
        out: a missing mesh, an invalid form or number, bodies that the mechanism does not have.

    Raises
    ------
    LoadError
        For a file that cannot be loaded.
    """
    file, words = main_file(path), list[str]()
    text, folder = text_of(file), Path(os.path.abspath(file)).parent
    if (suffix := file.suffix.lower()) in (".xml", ".mjcf"):
        below = None if include_root is None else Path(include_root)
        drawn = drawn_in_mjcf(text, str(file), folder, below, words)
    elif suffix == ".sdf":
        drawn = drawn_in_sdf(text, str(file), Meshes(folder), words)
    else:
        drawn = drawn_in_urdf(text, str(file), Meshes(folder), words)
    shapes = _placed(mech, drawn, words)
    more = len(words) - _MOST_WORDS
    reported = [*words[:_MOST_WORDS], f"{more} more are left out"] if more > 0 else words
    return Geometry(shapes, tuple(reported))


def _placed(mech: Mechanism, drawn: Iterable[DrawnSolid], words: list[str]) -> tuple[Shape, ...]:
    """Shapes fixed in the joints of the model; `words` gets a sentence on unknown bodies."""
    places = {"universe": (0, pin.SE3.Identity())}
    for frame in plain(mech.model).frames:
        if frame.type == pin.FrameType.BODY:
            places[frame.name] = (int(frame.parentJoint), frame.placement.copy())
    shapes, unknown = list[Shape](), dict[str, None]()
    for one in drawn:
        if one.body not in places:
            unknown[one.body] = None
            continue
        joint, X = places[one.body]
        shapes.append(Shape.of(one.solid, joint, X * one.placement, one.body, one.color))
    if unknown:
        words.insert(
            0,
            f"{mech.name}: these bodies of the file do not belong to the mechanism, and are not "
            f"shown: {listing(list(unknown))}; is this the file of the mechanism?",
        )
    return tuple(shapes)
