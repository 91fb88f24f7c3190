"""The keys ``rotor_inertia`` and ``gear_ratio`` of a YAML file: rotors of motors, in the model.

M has ``ratio^2 * inertia`` on its diagonal for them, by `Mechanism`.
"""

from __future__ import annotations

from collections.abc import Mapping

import pinocchio as pin

from holoctl.base.checks import known_name
from holoctl.io.xml import blamed_on
from holoctl.io.yaml_entries import Entry
from holoctl.tree.coordinates import coordinate_names, joint_of_coordinate

__all__ = ["put_rotors"]


def put_rotors(
    model: pin.Model, inertias: Mapping[str, Entry], ratios: Mapping[str, Entry]
) -> None:
    """Set rotor inertias and gear ratios of a model that is not in use yet, by coordinate.

    Raises
    ------
    LoadError
        With the line, for unknown coordinates and those of joints of several, numbers out of
        range, a ratio without a rotor, and rotors that the model has already.
    """
    names, of = coordinate_names(model), joint_of_coordinate(model)
    single = [n for n, j in zip(names, of, strict=True) if model.nvs[int(j)] == 1]
    for key, given in (("rotor_inertia", inertias), ("gear_ratio", ratios)):
        for name, entry in given.items():
            if name in names and name not in single:
                raise entry.error(
                    f"{key}: {name!r} is a coordinate of a spherical, planar or free joint, "
                    "which no rotor can drive"
                )
            with blamed_on(entry):
                known_name(name, single, "coordinate", key)
    for name, entry in ratios.items():
        if name not in inertias:
            raise entry.error(
                f"gear_ratio: {name!r} has no rotor_inertia, so its ratio has no effect: efforts "
                "are those after the gear, on the joint"
            )
    for name, entry in inertias.items():
        i, inertia = names.index(name), entry.number()
        ratio = ratios[name].number() if name in ratios else 1.0
        if inertia <= 0.0:
            raise entry.error(f"rotor_inertia: that of {name!r} must be above zero; got {inertia}")
        if ratio == 0.0:
            raise ratios[name].error(f"gear_ratio: that of {name!r} must not be zero")
        if model.armature[i] or model.rotorInertia[i]:
            raise entry.error(
                f"rotor_inertia: {name!r} has a rotor of {model.armature[i]:g} kg m^2 in the file "
                "of the robot already; remove one of them"
            )
        model.rotorInertia[i], model.rotorGearRatio[i] = inertia, ratio
