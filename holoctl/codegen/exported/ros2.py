"""`export_ros2`: a transmission as a package of ROS 2, around its C library.

The C library is that of `export_c`. The C++ around it follows measured motors and holds efforts
while calls fail (templates/ros2/linkage.hpp.in); a transmission and a controller of ros2_control
are thin layers on it, which find handles and interfaces by their names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from holoctl.base.checks import counted, file_path, listing, quiet
from holoctl.base.errors import InputError
from holoctl.codegen.c_text import comment, filled, number
from holoctl.codegen.exported.transmission import transmission_library
from holoctl.codegen.exported.write_files import identifier, write_files
from holoctl.transmission.transmission import Transmission

__all__ = ["export_ros2"]

REACH = 0.02
"""The longest step of the joints (scaled) from a posture to the next one: a longer one may look
like a dead point to the C library."""

LEAST_REACH = 0.1
"""The least reach of a motor over the largest, for motors that hardly move at the start."""

FILES = {
    "ros2/CMakeLists.txt": "CMakeLists.txt",
    "ros2/package.xml": "package.xml",
    "ros2/README.md": "README.md",
    "ros2/transmission_plugin.xml": "transmission_plugin.xml",
    "ros2/controller_plugin.xml": "controller_plugin.xml",
    "ros2/transmission.xml": "urdf/transmission.xml",
    "ros2/controllers.yaml": "config/controllers.yaml",
    "ros2/linkage.hpp": "include/{package}/linkage.hpp",
    "ros2/transmission.hpp": "include/{package}/transmission.hpp",
    "ros2/transmission_loader.hpp": "include/{package}/transmission_loader.hpp",
    "ros2/effort_controller.hpp": "include/{package}/effort_controller.hpp",
    "ros2/transmission.cpp": "src/transmission.cpp",
    "ros2/transmission_loader.cpp": "src/transmission_loader.cpp",
    "ros2/effort_controller.cpp": "src/effort_controller.cpp",
}
"""Template to place in the package."""

_PACKAGE = re.compile(r"[a-z](_?[a-z0-9])+")
_NAME = re.compile(r"[A-Za-z0-9_.\-]+")
_TAKEN = re.compile(
    r"std|ament_cmake|controller_interface|hardware_interface|pluginlib|rclcpp|"
    r"rclcpp_lifecycle|transmission_interface|alignas|alignof|and|and_eq|asm|auto|bitand|bitor|"
    r"bool|break|case|catch|char|class|compl|const|constexpr|const_cast|continue|decltype|"
    r"default|delete|do|double|dynamic_cast|else|enum|explicit|export|extern|false|float|for|"
    r"friend|goto|if|inline|int|long|mutable|namespace|new|noexcept|not|not_eq|nullptr|"
    r"operator|or|or_eq|private|protected|public|register|reinterpret_cast|return|short|signed|"
    r"sizeof|static|static_assert|static_cast|struct|switch|template|this|thread_local|throw|"
    r"true|try|typedef|typeid|typename|union|unsigned|using|virtual|void|volatile|wchar_t|"
    r"while|xor|xor_eq"
)
"""Package names that can be no namespace of their own."""


@quiet
def export_ros2(
    transmission: Transmission, folder: str | PathLike[str], *, package: str | None = None
) -> tuple[Path, ...]:
    """Write a ROS 2 package (ament_cmake) of a transmission, for ros2_control.

    It has the C library of `export_c` with its self-test; a plugin for
    ``transmission_interface``, with its loader and the ``<transmission>`` element of a URDF; and a
    chainable controller, from joint efforts to motor efforts. README.md of the package describes
    both. It is written for the interfaces of Jazzy and later, compiled and tested against them, and
    was not run under ROS.

    Efforts and velocities use the Jacobian at the last measured posture, never at a commanded one.
    In the control loop nothing throws or allocates: while calls fail, efforts are held for a
    limited number of calls, then they are zero, and a status says why.

    Parameters
    ----------
    transmission : Transmission
        With as many motors as joints.
    folder : str or path
        The folder of the package, made if it does not exist. Files in it are overwritten only if
        they were written by holoctl.
    package : str, optional
        The name of the package, and the namespace of its C++. Default: the name of the mechanism
        with ``_transmission``. Several transmissions of a robot need different names.

    Returns
    -------
    tuple of Path
        The files.

    Raises
    ------
    InputError
        Without CasADi; for a package name that ROS or C++ does not take; for more or fewer motors
        than joints, continuous joints, and names of joints and motors with other characters than
        letters, digits, ``_``, ``-`` and ``.``; for constraints and joints that have no
        expressions; if a file would be overwritten that holoctl did not write.
    HoloctlError
        If the folder cannot be written.

    See Also
    --------
    export_c : the C library alone.
    Transmission : the same maps in Python.

    Examples
    --------
    >>> import tempfile, holoctl as hc
    >>> mech = hc.load(hc.robot_file("ankle"))
    >>> ankle = hc.Transmission(mech, ["ankle_pitch", "ankle_roll"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = hc.export_ros2(ankle, folder)
    ...     print(*(path.name for path in paths if path.suffix == ".xml"))
    package.xml transmission_plugin.xml controller_plugin.xml transmission.xml
    """
    if not isinstance(transmission, Transmission):
        raise InputError(
            f"transmission must be a Transmission; got a {type(transmission).__name__}"
        )
    tr = transmission
    if package is None:
        package = f"{identifier(tr.mech.name)}_transmission"
    _check_package(package)
    if len(tr.motors) != len(tr.joints):
        motors, joints = counted(len(tr.motors), "motor"), counted(len(tr.joints), "joint")
        raise InputError(
            f"{tr.mech.name}: a package has as many motors as joints; got {motors} for {joints}. "
            "Fewer do not determine the joints (export_c writes the other direction); more would "
            "have to agree to rounding, which encoders do not: leave some out, actuated="
        )
    odd = [name for name in (*tr.joints, *tr.motors) if not _NAME.fullmatch(name)]
    if odd:
        raise InputError(
            f"{tr.mech.name}: names in ROS must consist of letters, digits, '_', '-' and '.'; got "
            f"{listing(odd)}: rename them"
        )
    place = file_path("folder", folder)
    library, values = transmission_library(tr, f"holoctl_{package}")
    values |= _values(tr, package, values)
    files = {to.format(package=package): filled(name, values) for name, to in FILES.items()}
    return write_files(place, files | {f"c/{name}": text for name, text in library.items()})


def _check_package(package: str) -> None:
    if not isinstance(package, str) or not _PACKAGE.fullmatch(package):
        raise InputError(
            "package must begin with a lower-case letter and consist of two or more lower-case "
            f"letters, digits and single underscores between them; got {package!r}"
        )
    if _TAKEN.fullmatch(package):
        raise InputError(
            f"package {package!r} is a word of C++ or the name of a package that is needed: choose "
            "another name"
        )


def _values(tr: Transmission, package: str, values: Mapping[str, object]) -> dict[str, object]:
    """The values of the templates beside those of the C library, `values`."""
    u_scale, y_scale = tr.scales
    sizes = np.linalg.norm(tr.jacobian(tr.y_start) * y_scale * u_scale[:, None], axis=1)
    reach = REACH * np.maximum(sizes, LEAST_REACH * sizes.max()) / u_scale
    turning = np.isin(np.arange(len(tr.motors)), tr.mech.motors.turning)
    title = quoteattr(comment(tr.mech.name))[1:-1]
    return {
        "package": package, "GUARD": package.upper(), "xml_title": title,
        "TURN": number(2.0 * np.pi),
        "joint_names": _quoted(tr.joints), "motor_names": _quoted(tr.motors),
        "joint_items": _items(values["joint_table"]), "motor_items": _items(values["motor_table"]),
        "yaml_joints": _renamed(tr.joints), "yaml_motors": _renamed(tr.motors),
        "motor_reach": ", ".join(map(number, reach)),
        "joint_reach": ", ".join(map(number, REACH * y_scale)),
        "motor_turns": ", ".join("true" if x else "false" for x in turning),
        "xml_joints": _elements("joint", tr.joints),
        "xml_actuators": _elements("actuator", tr.motors),
    }  # fmt: skip


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _renamed(names: Sequence[str]) -> str:
    return "\n".join(f'      "{name}": "{name}"' for name in names)


def _items(table: object) -> str:
    """A table of a comment of C as a list."""
    return "\n".join(f"- {line.removeprefix(' *').strip()}" for line in str(table).splitlines())


def _elements(kind: str, names: Sequence[str]) -> str:
    return "\n".join(f'  <{kind} name="{name}" role="{name}"/>' for name in names)
