"""What the search of the site finds first.

The theme ranks titles, tags and texts (boosts in mkdocs.yml). Added here, before it writes its
index: terms of the glossary and words of users as tags of the page or section that treats them, a
weight for each kind of page, and of an example only its title and what it is about.
tests/test_site.py asks in users' words and compares the page that comes first.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.plugins import event_priority, get_plugin_logger

log = get_plugin_logger("search")

GLOSSARY = Path(__file__).resolve().parents[1] / "glossary.md"
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| [^|]+ \| \[[^\]]+\]\(([^)]+)\)", re.MULTILINE)

WEIGHTS = {
    "reference/": 0.5,
    "examples/": 0.25,
    "derivations": 0.1,
    "referee": 0.1,
    "decisions": 0.05,
    "architecture": 0.05,
    "benchmarks/": 0.1,
    "CHANGELOG": 0.05,
    "CONTRIBUTING": 0.05,
    "tests/": 0.02,
}
"""By the beginning of the address; a page that is not named has 1."""
NAME = 1.05
"""Of a public name in the reference, so that it comes before a section that mentions it. For an
error the page that says what to do comes first."""

WORDS = {
    "index.html#install": "installation, pip, conda, Windows, macOS, quick start, getting started, "
    "requirements",
    "tutorial-own-robot.html": "CAD export, URDF export, SolidWorks, Onshape, gripper, missing "
    "meshes, mimic joint",
    "tutorial-delta.html": "delta robot, parallel robot, step by step",
    "tutorial-five-bar.html": "five-bar linkage, planar parallel robot, step by step, first steps",
    "tutorial-identification.html": "my CAD masses are wrong, log file, CSV of a motion, step by "
    "step",
    "identification.html": "identify masses from measurements, identify friction, identify "
    "parameters, wrong masses, fit, regressor, calibration of masses",
    "identification.html#payload-mass-and-drive-gains": "identify the payload, payload mass, "
    "unknown load, motor constant, torque constant",
    "closing-axes.html": "closing joint, hinge, ball joint, universal joint, screw joint, "
    "prismatic joint, slider, rod, loop axes",
    "file-formats.html": "URDF with loops, robot description, load a robot file, YAML",
    "file-formats-urdf.html": "xacro",
    "file-formats-mjcf.html": "MuJoCo XML, read MJCF",
    "file-formats-sdf.html": "Gazebo, SDFormat",
    "interoperability.html": "export to MuJoCo, write MJCF, convert URDF to MJCF, save a mechanism",
    "interoperability.html#constraints-of-pinocchio": "export constraints to Pinocchio",
    "interoperability.html#runs-as-tables": "pandas, data frame, CSV of a run, export a run",
    "doctor.html": "diagnosis, mechanism does not move, stuck, redundant constraints, "
    "overconstrained",
    "assembly-modes.html": "wrong configuration, wrong posture, wrong elbow, robot closes the "
    "other way",
    "transmissions.html": "knee driven through a four-bar, four-bar knee, ankle motors",
    "doctor.html#a-stewart-platform": "hexapod, Gough platform",
    "doctor.html#motions": "locked joint",
    "view.html": "visualization, viewer, 3D, GUI, browser, slider",
    "simulation.html": "simulator, integrate, integrator",
    "simulation.html#what-to-choose": "stiff equations, step size, implicit integrator",
    "simulation.html#look-at-it": "plot, results, animation, film, video, movie, GIF, MP4, talk, "
    "figure for a paper, IEEE column, journal, publication figure, vector graphics",
    "realtime.html": "control loop, 1 kHz, servo, latency, jitter, PD control",
    "realtime.html#when-there-is-no-torque": "safety, emergency stop, fallback law, watchdog",
    "realtime.html#threads": "thread-safe, several robots in one process",
    "encoders.html": "encoders, passive joints, forward kinematics, velocity from positions, "
    "state estimation",
    "limits.html": "motor limits, joint limits, joint velocity limit, saturation",
    "limits.html#more-motors-than-motions": "cable-driven robot, cable tension, redundant "
    "actuation",
    "limits.html#what-it-costs": "QP solver, quadratic program, DAQP",
    "task-space.html": "tool, end effector, pose, operational space",
    "inverse-kinematics.html": "IK, pose to joint angles",
    "external-forces.html": "contact force sensing, collision detection, disturbance",
    "forces.html": "spring, damper, external force, load",
    "forces.html#joint-friction": "joint friction, viscous, Coulomb, Stribeck",
    "forces.html#counterbalances": "counterweight, static balancing",
    "forces.html#friction-in-a-controller": "friction compensation",
    "notation.html": "letters, symbols",
    "notation.html#three-things-are-called-gamma": "gamma, G",
    "design.html#regulators": "balance, optimal control, inverted pendulum, unstable pose",
    "trajectories.html": "fastest trajectory along a path, retime, time-optimal, pick and place, "
    "way points, spline",
    "singularities.html": "path through a singularity, cross a singularity, avoid singularities, "
    "singular path, dead point on the way, change assembly mode, control through a singularity",
    "sweeps.html": "parallel, cores, cluster, Monte Carlo, parameter study, multiprocessing, "
    "design optimization, optimize link lengths",
    "equilibria.html": "static equilibrium, statics",
    "design.html#linear-models": "state space model, poles, linearization, derivatives of forward "
    "dynamics, sensitivity",
    "embedded.html": "microcontroller, board, firmware, STM32, embedded, C code, C++, export",
    "embedded.html#3-build-and-test": "compiler flags, CMake, Arduino, AVR",
    "embedded.html#what-it-does-not-do": "single precision, float32",
    "embedded-status.html": "error code, status code, fallback torque",
    "troubleshooting.html": "error message, exception, it fails",
    "troubleshooting.html#assemblyerror": "does not close, assembly fails",
    "troubleshooting.html#without-an-error": "robot shakes, vibrates, oscillates, unstable, sinks, "
    "wrong torque, noisy torque, factor, millimetres",
    "faq.html#which-units": "millimetres, degrees, SI",
    "faq.html#my-encoders-have-another-zero-or-direction": "homing, offset, calibration",
    "faq.html#how-do-i-cite-it": "citation, license",
    "faq.html#q-has-more-entries-than-v-why": "quaternion, continuous joint, nq and nv",
    "faq.html#where-is-the-tip-for-a-given-q": "tip position, pose from motor angles",
    "faq.html#does-it-need-ros": "ROS 2, ros2_control",
    "faq.html#how-do-i-add-a-payload": "payload, gripper, load at the tool, tool mass",
    "faq.html#what-does-certified-mean": "certificate, certified",
    "faq.html#can-i-have-the-forces-in-the-joints": "reaction forces, bearing forces, joint "
    "reactions, constraint forces, Lagrange multipliers",
    "faq.html#contacts": "contacts, contact, ground contact",
    "faq.html#can-two-feet-stand-on-the-ground": "two feet, walking, legged, double support, "
    "stance, ground reaction force, contact of feet",
    "scope.html": "comparison, compare with Drake, MuJoCo, alternatives, not supported",
    "scope.html#out": "collision checking, self-collision, "
    "MPC, model-predictive control, GPU, Simulink, FMU, flexible joint, elastic joint, "
    "backlash, rolling wheels",
    "from-pinocchio.html": "constraintDynamics, RigidConstraintModel",
    "from-rbdl.html": "ConstraintSet, ForwardDynamicsConstraintsDirect",
    "derivations-saddle-point.html": "KKT, saddle point, proximal",
    "from-spatial-v2.html": "Featherstone, FDgq, gamma_q, Matlab",
    "benchmarks/RESULTS.html": "benchmark, speed, computation time, performance",
    "reference/constraints.html#holoctl.Coupling": "gears, gear ratio, belt drive, differential, "
    "coupled joints",
    "reference/index.html": "API, functions, classes",
    "gallery.html": "examples, sample programs, demo code",
}
"""Words of users for a page or section, in addition to its title and the glossary's."""


@event_priority(100)
def on_post_build(config: Any) -> None:
    """Before the search writes its index."""
    entries = config.plugins["material/search"].search_index.entries
    tags = glossary_tags()
    for address, words in WORDS.items():
        tags.setdefault(address, []).append(words)
    places = {entry["location"] for entry in entries}
    for address in tags.keys() - places:
        log.warning("words for the search of %s, which is no page or section", address)
    for entry in entries:
        address = entry["location"]
        if of_example(address):
            entry["text"] = "" if "#" in address else first_paragraph(entry["text"])
        if address in tags:
            entry["tags"] = tags[address]
        entry["boost"] = weight(address)


def glossary_tags() -> dict[str, list[str]]:
    """Terms and synonyms, by the address of the page or section that their row links to."""
    tags: dict[str, list[str]] = {}
    for term, synonyms, target in ROW.findall(GLOSSARY.read_text("utf-8")):
        path, mark, anchor = target.partition("#")
        path = posixpath.normpath(path).removeprefix("../").removesuffix(".md")
        tags.setdefault(f"{path}.html{mark}{anchor}", []).append(f"{term}, {synonyms}")
    return tags


def weight(address: str) -> float:
    if re.fullmatch(r"reference/(?!errors)\w+\.html#holoctl\.\w+", address):
        return NAME
    return next((w for start, w in WEIGHTS.items() if address.startswith(start)), 1.0)


def of_example(address: str) -> bool:
    return address.startswith("examples/") and ".py" in address


def first_paragraph(text: str) -> str:
    return text.partition("</p>")[0] + "</p>"
