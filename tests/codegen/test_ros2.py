"""Exported ROS 2 packages, compiled against stubs of ros2_control and run against Python's maps."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest
import yaml
from exported import cmake, compilers, robot, run
from zoo import add_body, at

import holoctl as hc
from holoctl.codegen.c_text import arrays

sys.path.append(str(Path(__file__).parents[1] / "transmission"))
from ankles import PITCH_ROLL, alone, cranked, four_barred, pushed

STUBS = Path(__file__).parent / "ros2_stubs"
STRICT = ("-std=c++17", "-Wall", "-Wextra", "-Werror", "-O0", "-fPIC")
HEADERS = {
    "controller_interface/chainable_controller_interface.hpp",
    "hardware_interface/hardware_info.hpp",
    "hardware_interface/types/hardware_interface_type_values.hpp",
    "pluginlib/class_list_macros.hpp", "rclcpp/logging.hpp", "transmission_interface/exception.hpp",
    "transmission_interface/handle.hpp", "transmission_interface/transmission.hpp",
    "transmission_interface/transmission_loader.hpp",
}  # fmt: skip
"""Headers of ros2_control and its dependencies that exist: a package includes no others."""


def coupled(coefficients, joint="joint"):
    """Motors and joints on hinges side by side; motor i turns by the coefficients of the joints."""
    C, m = np.array(coefficients, dtype=float), pin.Model()
    joints = [f"{joint}{j + 1}" for j in range(C.shape[1])]
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


def wheel(joint=pin.JointModelRUBY):
    """A wheel that turns without end, and a rod from it to another one."""
    m, body = pin.Model(), pin.Inertia(1.0, np.zeros(3), 1e-2 * np.eye(3))
    add_body(m, 0, pin.JointModelRUBY(), at(), "motor", body)
    add_body(m, "motor", pin.JointModelRY(), at(0.1), "rod", body)
    add_body(m, 0, joint(), at(0.4), "wheel", body)
    loop = hc.Closure(("rod", at(0.4)), ("wheel", at(0.1)), axes="x z")
    turned = [np.cos(1.0), np.sin(1.0)]
    start = np.array([*turned, -1.0, *(turned if joint is pin.JointModelRUBY else [1.0])])
    mech = hc.Mechanism(m, [loop], actuated=["motor"], name="wheels", reference=start)
    return hc.Transmission(mech, ["wheel"])


MADE = {
    "ankle": (lambda: hc.Transmission(robot("ankle"), ["ankle_pitch", "ankle_roll"]), [0.3, 0.2]),
    "simple": (lambda: coupled([[-7.0]]), [0.4]),
    "differential": (lambda: coupled([[5.0, 5.0], [5.0, -5.0]]), [0.4, 0.3]),
    "parallelogram": (parallelogram, [0.4, 0.5]),
    "knee": (lambda: hc.Transmission(alone(four_barred), ["knee"]), [0.25]),
    "cranked": (lambda: hc.Transmission(alone(cranked), PITCH_ROLL[::-1]), [0.2, 0.3]),
    "endless": (lambda: wheel(pin.JointModelRY), [0.3]),
    "pushed": (lambda: hc.Transmission(alone(pushed), PITCH_ROLL), [0.4, 0.3]),
}


def known(tr, box, package):
    """The header of the test: postures of a walk, and motor positions that belong to none."""
    rng, p = np.random.default_rng(4), len(tr.joints)
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
    turning = np.isin(np.arange(len(tr.motors)), tr.mech.motors.turning)
    bad[2] = np.where(turning, -np.inf, 1e6)
    text = (
        arrays(**rows, BAD=bad, TURNS=6.0 * np.pi * turning)
        .replace("nan", "NAN")
        .replace("HUGE_VAL", "INFINITY")
    )
    includes = ["transmission", "transmission_loader", "effort_controller"]
    return (
        "#include <cmath>\n"
        + "".join(f'#include "{package}/{name}.hpp"\n' for name in includes)
        + f"#define PACKAGE {package}\nnamespace known\n{{\n"
        + f"constexpr std::size_t COUNT = {len(t)};\n"
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
        pytest.skip("no C compiler for C++ is here")
    c = place / "c" / f"holoctl_{place.name}.c"
    run(compilers()[0], "-std=c99", "-O0", "-fPIC", "-c", c,
        "-o", folder / "c.o")  # fmt: skip
    made = []
    for plugin, sources in {
        "transmission": ["transmission.cpp", "transmission_loader.cpp"],
        "controller": ["effort_controller.cpp"],
    }.items():
        made.append(folder / f"lib{plugin}.so")
        run("g++", *STRICT, *include(place, folder), "-shared", folder / "c.o",
            *(place / "src" / x for x in sources), "-o", made[-1], "-lm")  # fmt: skip
    return checked(place, folder, made)


def include(place, folder):
    return [f"-I{x}" for x in (folder, folder / "stubs", STUBS, place / "include", place / "c")]


def checked(place, folder, libraries):
    """What the program of the test prints, with these shared objects."""
    program, own = folder / "test", libraries[0]
    run("g++", *STRICT, "-rdynamic", *include(place, folder), STUBS / "test_package.cpp", own,
        "-o", program, "-ldl", f"-Wl,-rpath,{own.parent}")  # fmt: skip
    return run(program, *libraries)


@pytest.mark.slow
def test_the_package_of_the_ankle(tmp_path):
    place, paths = exported("ankle", tmp_path)
    assert all("Written by holoctl" in path.read_text().splitlines()[0] for path in paths)
    included = re.findall(r'#include "(.*)"', "".join(
        path.read_text() for path in paths if path.suffix in (".hpp", ".cpp")
    ))  # fmt: skip
    assert {x for x in included if place.name not in x} == HEADERS
    found = re.search(r"(\d+) checks, 0 failures", built(place, tmp_path))
    assert int(found[1]) > 5000


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(MADE) - {"ankle"}))
def test_packages_of_other_mechanisms(name, tmp_path):
    place, _ = exported(name, tmp_path)
    assert "checks, 0 failures" in built(place, tmp_path)


@pytest.mark.slow
def test_the_package_is_built_and_installed_by_cmake(tmp_path):
    cmake()
    place, _ = exported("ankle", tmp_path)
    package_files(tmp_path)
    build, installed = tmp_path / "build", tmp_path / "installed"
    run("cmake", "-S", place, "-B", build, f"-DCMAKE_PREFIX_PATH={tmp_path / 'cmake'}",
        f"-DCMAKE_INSTALL_PREFIX={installed}", "-DCMAKE_BUILD_TYPE=Debug",
        "-DCMAKE_CXX_FLAGS=-Werror")  # fmt: skip
    run("cmake", "--build", build, "--parallel", 2)
    assert "100% tests passed" in run("ctest", "--test-dir", build)
    run("cmake", "--install", build)
    libraries = [
        installed
        / "lib"
        / f"lib{ElementTree.parse(place / f'{x}_plugin.xml').getroot().get('path')}.so"
        for x in ("transmission", "controller")
    ]
    assert "checks, 0 failures" in checked(place, tmp_path, libraries)
    headers = {path.name for path in (installed / "include" / place.name).rglob("*.h*")}
    assert headers >= {"transmission.hpp", "linkage.hpp", f"holoctl_{place.name}.h"}
    assert (installed / "share" / place.name / "urdf" / "transmission.xml").exists()
    exports = (build / "plugins.txt").read_text().split()
    assert exports == ["transmission_interface", "transmission_plugin.xml", "controller_interface",
                       "controller_plugin.xml"]  # fmt: skip


def package_files(folder):
    """Packages that CMake finds, with the targets and functions that the package takes of them."""
    targets = ("controller_interface", "hardware_interface", "pluginlib", "rclcpp",
               "rclcpp_lifecycle", "transmission_interface")  # fmt: skip
    texts = {
        name: f"add_library({name}::{name} INTERFACE IMPORTED)\n"
        f"target_include_directories({name}::{name} INTERFACE {folder / 'stubs'} {STUBS})\n"
        for name in targets
    }
    texts["ament_cmake"] = (
        "macro(pluginlib_export_plugin_description_file base file)\n"
        '  file(APPEND "${CMAKE_BINARY_DIR}/plugins.txt" "${base} ${file}\\n")\nendmacro()\n'
        "macro(ament_export_targets name)\n"
        "  install(EXPORT ${name} DESTINATION cmake)\nendmacro()\n"
        "macro(ament_export_dependencies)\nendmacro()\nmacro(ament_package)\nendmacro()\n"
    )
    for name, text in texts.items():
        path = folder / "cmake" / name / f"{name}Config.cmake"
        path.parent.mkdir(parents=True)
        path.write_text(text)


def test_files_for_ros(tmp_path):
    ankle = MADE["ankle"][0]()
    place = tmp_path / "made" / "here"
    paths = hc.export_ros2(ankle, place, package="left_ankle2")
    texts = {path.relative_to(place).as_posix(): path.read_text() for path in paths}
    roots = {x: ElementTree.fromstring(text) for x, text in texts.items() if x.endswith(".xml")}
    package = roots["package.xml"]
    assert package.findtext("name") == "left_ankle2"
    assert package.findtext("export/build_type") == "ament_cmake"
    depends = {x.text for x in package.findall("depend")}
    assert depends == set(
        re.search(r"foreach\(dependency ([\w\s]*)\)", texts["CMakeLists.txt"])[1].split()
    )
    for plugin, base in {
        "transmission": "transmission_interface::TransmissionLoader",
        "controller": "controller_interface::ChainableControllerInterface",
    }.items():
        (one,) = roots[f"{plugin}_plugin.xml"]
        assert one.get("base_class_type") == base
        source = "transmission_loader" if plugin == "transmission" else "effort_controller"
        macro = re.search(r"PLUGINLIB_EXPORT_CLASS\(\s*(\S+), (\S+)\)", texts[f"src/{source}.cpp"])
        assert macro.groups() == (one.get("type"), base)
    element = roots["urdf/transmission.xml"]
    assert element.findtext("plugin") == roots["transmission_plugin.xml"][0].get("name")
    for kind, names in [("joint", ankle.joints), ("actuator", ankle.motors)]:
        found = [(x.get("name"), x.get("role")) for x in element.findall(kind)]
        assert found == [(name, name) for name in names]
    given = yaml.safe_load(texts["config/controllers.yaml"])
    (kind,) = given["controller_manager"]["ros__parameters"].values()
    assert kind["type"] == roots["controller_plugin.xml"][0].get("name")
    parameters = given["left_ankle2_controller"]["ros__parameters"]
    assert list(parameters["joints"]) == list(ankle.joints)
    assert list(parameters["motors"]) == list(ankle.motors)
    hc.export_c(ankle, tmp_path / "c", name="left_ankle2")
    for path in (tmp_path / "c").iterdir():
        assert path.read_text() == texts[f"c/{path.name}"]
    assert hc.export_ros2(ankle, place, package="left_ankle2") == paths  # written again


@pytest.mark.parametrize(
    "package", ["Ankle", "_ankle", "ankle_", "left__ankle", "a", "2ankle", "left ankle", "", 3,
                "double", "std", "pluginlib", "../ankle"],
)  # fmt: skip
def test_names_that_are_no_packages_are_refused(package, tmp_path):
    with pytest.raises(hc.InputError, match=r"package .*(lower-case|another name)"):
        hc.export_ros2(MADE["ankle"][0](), tmp_path / "new", package=package)
    assert not (tmp_path / "new").exists()


def test_what_no_package_can_be_made_of_is_refused(tmp_path):
    def refused(tr, pattern, folder="new", **options):
        with pytest.raises(hc.InputError, match=pattern):
            hc.export_ros2(tr, tmp_path / folder, **options)
        assert not (tmp_path / "new").exists()

    knee = alone(four_barred)
    both = hc.Mechanism(knee.model, knee.constraints, actuated=["crank", "coupler"], name="two")
    refused(hc.Transmission(both, ["knee"]), "got 2 motors for 1 joint. .* to rounding")
    ankle = alone(cranked)
    one = hc.Mechanism(ankle.model, ankle.constraints, actuated=["left"], name="one")
    refused(hc.Transmission(one, PITCH_ROLL), "got 1 motor for 2 joints. Fewer do not determine")
    refused(ankle, "transmission must be a Transmission; got a Mechanism")
    odd = coupled([[2.0]], "joint/")
    refused(odd, "letters, digits, '_', '-' and '.'; got 'joint/1'")
    tr = hc.Transmission(ankle, PITCH_ROLL)
    foreign = tmp_path / "mine" / "src" / "transmission.cpp"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("// mine")
    refused(tr, "without the mark 'Written by holoctl'", "mine")
    assert [x for x in (tmp_path / "mine").rglob("*") if x.is_file()] == [foreign]
    (tmp_path / "file").write_text("")
    refused(tr, "is not a folder", "file")
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "src").write_text("a file where a folder is to be")
    with pytest.raises(hc.HoloctlError, match="cannot be written to"):
        hc.export_ros2(tr, tmp_path / "half")
    assert [x.name for x in (tmp_path / "half").rglob("*") if x.is_file()] == ["src"]
    refused(wheel(), "continuous joints")


def test_a_mechanism_on_a_floating_robot(tmp_path):
    leg = hc.load(hc.robot_file("leg"), free_flyer=True)
    hc.export_ros2(hc.Transmission(leg, ["knee"]), tmp_path)
    text = (tmp_path / "README.md").read_text()
    assert "# leg_knee_transmission" in text
    assert "- u[0]       knee_motor, N m" in text
