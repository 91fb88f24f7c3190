"""The YAML file of a robot with displaced joints and frames.

In: the moves of `repaired_geometry`. Out: the text of a YAML file for the same URDF or SDF.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

import pinocchio as pin
import yaml

from holoctl.base.errors import InputError
from holoctl.io.load import sheet_of
from holoctl.io.robot_yaml import moves_of
from holoctl.io.yaml_entries import Entry, yaml_document
from holoctl.mechanism.frame_displacements import Move

__all__ = ["repaired_yaml"]

_EMPTY = "closed_loop: []\ntype: []\nname_mot: []\n"


def repaired_yaml(
    path: str | os.PathLike[str],
    moves: Sequence[Move],
    closures: str | os.PathLike[str] | None = None,
) -> str:
    """The YAML file of a robot with the key ``moved`` and ``tolerance: 0``.

    Parameters
    ----------
    path, closures
        As given to `load`.
    moves : sequence of Move
        Moves that are applied after those of the file.

    Returns
    -------
    str
        YAML, without the comments of the file.

    Raises
    ------
    InputError
        For an MJCF, which has no YAML file.
    LoadError
        As `load`.
    """
    main, beside, given = sheet_of(path, closures)
    if main.suffix.lower() in (".xml", ".mjcf"):
        raise InputError(
            f"{main.name}: an MJCF has no YAML file that could move its joints; "
            "hc.repaired_geometry(hc.load(path)).mech is the exact mechanism in a program"
        )
    if beside is not None:
        document = yaml_document(given, str(beside))
    else:
        document = yaml_document("{}" if main.suffix.lower() == ".sdf" else _EMPTY, str(main))
    keys = document.fields()
    added = yaml_document(_text(_behind(keys, moves)), str(main)).node
    kept = [(k, v) for k, v in document.node.value if k.value not in ("tolerance", "moved")]
    node = yaml.MappingNode(document.node.tag, [*kept, *added.value], flow_style=False)
    written: str = yaml.serialize(node, width=100, allow_unicode=True)
    return written


def _behind(keys: dict[str, Entry], moves: Sequence[Move]) -> dict[str, Move]:
    """The moves of the file, followed by `moves`."""
    found = {m.name: m for m, _ in (moves_of(keys["moved"]) if "moved" in keys else [])}
    for move in moves:
        if move.name in found:
            both = found[move.name].placement * move.placement
            found[move.name] = Move(move.name, both.translation, pin.log3(both.rotation))
        else:
            found[move.name] = move
    return found


def _text(moves: dict[str, Move]) -> str:
    lines = ["tolerance: 0", "moved:" if moves else "moved: {}"]
    for name, move in moves.items():
        numbers = [*move.translation.tolist(), *move.rotation.tolist()]
        lines.append(f"  {json.dumps(name)}: [{', '.join(map(repr, numbers))}]")
    return "\n".join(lines) + "\n"
