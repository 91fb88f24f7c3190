"""Exported ROS 2 packages, compiled against stubs of ros2_control and run against Python's maps."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest
import yaml
from exported import compilers, robot, run
from zoo import add_body, at

import holoctl as hc
from holoctl.codegen.c_text import arrays

sys.path.append(str(Path(__file__).parents[1] / "transmission"))
from ankles import PITCH_ROLL, alone, cranked, four_barred, pushed  # noqa: E402

STUBS = Path(__file__).parent / "ros2_stubs"
STRICT = ("-std=c++17", "-Wall", "-Wextra", "-Werror", "-O0", "-fPIC")
HEADERS = {
    "controller_interface/chainable_controller_interface.hpp", "hardware_interface/hardware_info.hpp",
    "hardware_interface/types/hardware_interface_type_values.hpp",
    "pluginlib/class_list_macros.hpp", "rclcpp/logging.hpp", "transmission_interface/exception.hpp",
    "transmission_interface/handle.hpp", "transmission_interface/transmission.hpp",
    "transmission_interface/transmission_loader.hpp",
}  # fmt: skip
"""Headers of ros2_control and its dependencies that exist: a package includes no others."""


def coupled(coefficients):
    """Motors and joints on hinges side by side; motor i turns by the coefficients of the joints."""
    C, m = np.array(coefficients, dtype=float), pin.Model()
    joints = [f"joint{j + 1}" for j in range(C.shape[1])]
    motors = [f"motor{i + 1}" for i in range(C.shape[0])]
    for k, name in enumerate((*joints, *motors)):
        place = pin.SE3(np.eye(3), np.array([0.1 * k, 0.0, 0.0]))
        j = m.addJoint(0, pin.JointModelRZ(), place, name)
        m.appendBodyToJoint(j, pin.Inertia(1.0, np.zeros(3), 1e-2 * np.eye(3)), pin.SE3.Identity())
    ties = [
        hc.Coupling({name: 1.0} | {x: -c for x, c in zip(joints, row, strict=True) if c})
        for name, row in zip(motors, C.tolist(), strict=True)
    ]
    return hc.Transmission(hc.Mechanism(m, ties, actuated=motors, name="coupled"), joints)


def parallelogram():
    """A knee whose motor at the hip drives it through a rod that stays parallel to the thigh."""
    m, thigh, lever = pin.Model(), 0.4, 0.06
    body = pin.Inertia(1.0, np.zeros(3), 1e-2 * np.eye(3))
    add_body(m, 0, pin.JointModelRY(), at(), "hip", body)
    add_body(m, "hip", pin.JointModelRY(), at(0, 0, -thigh), "knee", body)
    add_body(m, 0, pin.JointModelRY(), at(), "crank", body)
    add_body(m, "crank", pin.JointModelRY(), at(lever), "rod", body)
    loop = hc.Closure(("rod", at(0, 0, -thigh)), ("knee", at(lever)), axes="x z")
    mech = hc.Mechanism(m, [loop], actuated=["hip", "crank"], name="parallelogram")
    return hc.Transmission(mech, ["hip", "knee"])


def redundant():
    mech = alone(four_barred)
    both = hc.Mechanism(mech.model, mech.constraints, actuated=["crank", "coupler"], name="two")
    return hc.Transmission(both, ["knee"])


MADE = {
    "ankle": (lambda: hc.Transmission(robot("ankle"), ["ankle_pitch", "ankle_roll"]), [0.3, 0.2]),
    "simple": (lambda: coupled([[-7.0]]), [0.4]),
    "differential": (lambda: coupled([[5.0, 5.0], [5.0, -5.0]]), [0.4, 0.3]),
    "four_bar_linkage": (lambda: coupled([[3.0, 0.0], [2.0, 2.0]]), [0.4, 0.3]),
    "parallelogram": (parallelogram, [0.4, 0.5]),
    "knee": (lambda: hc.Transmission(alone(four_barred), ["knee"]), [0.25]),
    "cranked": (lambda: hc.Transmission(alone(cranked), PITCH_ROLL[::-1]), [0.2, 0.3]),
    "pushed": (lambda: hc.Transmission(alone(pushed), PITCH_ROLL), [0.4, 0.3]),
    "redundant": (redundant, [0.25]),
}


def known(tr, box, package):
    """The header of the test: postures of a walk, and motor positions that belong to none."""
    rng, n, p = np.random.default_rng(4), len(tr.motors), len(tr.joints)
    t = np.linspace(0.0, 2.0 * np.pi, 40)[:, None]
    phase = rng.uniform(-1.0, 1.0, p)
    y = tr.y_start + np.array(box) * (np.sin(t + phase) + 0.1)
    yd = 3.0 * np.array(box) * np.cos(t + phase)
    tau = rng.uniform(2.0, 9.0, (len(t), p))
    rows = {"Y": y, "YD": yd, "TAU": tau}
    rows |= {
        "Q": [tr.motor_positions(x) for x in y],
        "V": [tr.motor_rates(x, xd) for x, xd in zip(y, yd, strict=True)],
        "U": [tr.motor_efforts(x, at).u for x, at in zip(tau, y, strict=True)],
    }
    bad = np.tile(tr.motor_start, (3, 1))
    bad[:2, 0] = np.nan, np.inf
    bad[2] = 1e6
    text = arrays(**rows, BAD=bad).replace("nan", "NAN").replace("HUGE_VAL", "INFINITY")
    includes = ["transmission", "transmission_loader", "effort_controller"]
    return (
        "#include <cmath>\n"
        + "".join(f'#include "{package}/{name}.hpp"\n' for name in includes)
        + f"#define PACKAGE {package}\nnamespace known\n{{\nconstexpr std::size_t COUNT = {len(t)};\n"
        + f"constexpr double MOVED = {min(box)};\n{text}}}  // namespace known\n"
    )


def exported(name, folder):
    """The package, and the header of its test beside it."""
    make, box = MADE[name]
    tr, package = make(), f"{name}_transmission"
    paths = hc.export_ros2(tr, folder / package, package=package)
    (folder / "known.hpp").write_text(known(tr, box, package))
    for header in HEADERS:
        path = folder / "stubs" / header
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('#include "ros2.hpp"\n')
    return folder / package, paths


def built(place, folder):
    """Two shared objects and the program of the test; what it prints."""
    if not shutil.which("g++"):
        pytest.skip("no C++ compiler is here")
    c = next((place / "c").glob("holoctl_*_test.c")).with_name(f"holoctl_{place.name}.c")
    run(compilers()[0], "-std=c99", "-O1", "-fPIC", "-fvisibility=hidden", "-c", c,
        "-o", folder / "c.o")  # fmt: skip
    include = [f"-I{x}" for x in (folder, folder / "stubs", STUBS, place / "include", place / "c")]
    made = []
    for plugin, sources in {
        "transmission": ["transmission.cpp", "transmission_loader.cpp"],
        "controller": ["effort_controller.cpp"],
    }.items():
        made.append(folder / f"lib{plugin}.so")
        run("g++", *STRICT, *include, "-shared", *(place / "src" / x for x in sources),
            folder / "c.o", "-o", made[-1], "-lm")  # fmt: skip
    program = folder / "test"
    run("g++", *STRICT, "-rdynamic", *include, STUBS / "test_package.cpp", folder / "c.o", made[0],
        "-o", program, "-ldl", f"-Wl,-rpath,{folder}")  # fmt: skip
    return run(program, *made)


def test_the_package_of_the_ankle(tmp_path):
    place, paths = exported("ankle", tmp_path)
    found = re.search(r"(\d+) checks, 0 failures", built(place, tmp_path))
    assert int(found[1]) > 2000


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(MADE) - {"ankle"}))
def test_packages_of_other_mechanisms(name, tmp_path):
    place, _ = exported(name, tmp_path)
    assert "checks, 0 failures" in built(place, tmp_path)
