"""Two arms of the da Vinci Research Kit as mechanisms: the patient side and the master manipulator.

Lengths, ratios of the cables and the axes were read in the notebooks of
github.com/WPI-AIM/dvrk_dynamics_identification, which has no licence: the description is our own,
through pins and cables where the notebooks have trees whose angles depend on each other. Masses are
rough guesses. Placements are by modified Denavit-Hartenberg parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import holoctl as hc

Array = NDArray[np.float64]
QUARTER = 0.5 * np.pi
GUESS = 1e-3
"""Of friction, in SI units: only which rates have some, and its width, are used."""
ROTOR = 1e-4
"""Of each motor with a rotor of its own, kg m^2."""


@dataclass(frozen=True)
class Arm:
    """What is measured, and what was published.

    Attributes
    ----------
    name : str
        Of its folder.
    make : function (widths) -> Mechanism
        Widths: the rates over which the friction of each joint changes its sign, by name.
    rates : tuple of str
        The joints with friction.
    rotors : tuple of str
        The motors with a rotor inertia.
    frequency : float
        Stated cutoff of the filter, Hz; it acts at pi times this.
    period : int
        The number of samples that errors are taken of, as published.
    repeats : int
        The number of samples after which the motion repeats itself.
    weighted : bool
        Whether the published least squares divide by the ranges of the efforts.
    published, semidefinite : tuple of float
        Published test errors by joint, of least squares and of the semidefinite fit.
    spring : (str, function)
        A joint, and the effort against the spring there by position, for a unit of stiffness.
    cable : tuple of float, optional
        By motor, what an angle turns by whose cable has a known torque.
    """

    name: str
    make: Callable[[dict[str, float]], hc.Mechanism]
    rates: tuple[str, ...]
    rotors: tuple[str, ...]
    frequency: float
    period: int
    repeats: int
    weighted: bool
    published: tuple[float, ...]
    semidefinite: tuple[float, ...]
    spring: tuple[str, Callable[[float], float]]
    cable: tuple[float, ...] = ()


def place(a: float = 0.0, alpha: float = 0.0, d: float = 0.0, theta: float = 0.0) -> pin.SE3:
    """Of a joint in its parent: about and along x, then about and along z."""
    along_x = pin.SE3(pin.utils.rotate("x", alpha), np.array([a, 0.0, 0.0]))
    return along_x * pin.SE3(pin.utils.rotate("z", theta), np.array([0.0, 0.0, d]))


def at(x: float, y: float = 0.0) -> pin.SE3:
    """A point of a link."""
    return pin.SE3(np.eye(3), np.array([x, y, 0.0]))


def box(mass: float, low: Sequence[float], high: Sequence[float]) -> pin.Inertia:
    """A body that fills the box between two corners."""
    size = np.subtract(high, low)
    inertia = pin.Inertia.FromBox(mass, *size)
    return pin.SE3(np.eye(3), 0.5 * np.add(low, high)).act(inertia)


Link = tuple[str, str, pin.SE3, str, pin.Inertia | None]
"""Name, parent, placement in it, "R" or "P" along z, body."""


def links(name: str, found: Sequence[Link]) -> pin.Model:
    """A model of these links."""
    model = pin.Model()
    model.name = name
    kinds = {"R": pin.JointModelRZ, "P": pin.JointModelPZ}
    for link, parent, where, kind, body in found:
        joint = model.addJoint(model.getJointId(parent), kinds[kind](), where, link)
        if body is not None:
            model.appendBodyToJoint(joint, body, pin.SE3.Identity())
    return model


def friction(widths: dict[str, float]) -> hc.JointFriction:
    """Viscous and Coulomb friction on these rates."""
    some = dict.fromkeys(widths, GUESS)
    return hc.JointFriction(viscous=some, coulomb=some, transition=widths)


def with_rotors(model: pin.Model, names: Sequence[str]) -> pin.Model:
    """The model with a rotor on these joints."""
    armature = np.zeros(model.nv)
    armature[[model.idx_vs[model.getJointId(x)] for x in names]] = ROTOR
    model.armature = armature
    return model


# ------------------------------------------------------------------------ the patient side

SIDE, LOW, GAP, LONG, SHORT = 0.04009, 0.14454, 0.03808, 0.516, 0.096
"""Of its parallelograms, m: the offset of the bars from their axes, the first bar from the axis,
the second from the first, and the lengths of both bars to the last and to the middle coupler."""
REMOTE, TOOL, FINGER = 0.4318, 0.4162, 0.0091
"""m: the bottom from the remote centre, the wrist on the tool, its two axes."""
WRIST, ACROSS, JAW = 1.0186, -0.8306, 1.2178
"""What motors 5 to 7 turn by their cables: wrist by 5, jaws by 5, each jaw by its own motor."""


def patient_side(widths: dict[str, float]) -> hc.Mechanism:
    """Pitch turns two bars that stay level by three pins; insertion moves a counterweight; four
    motors turn the tool by cables."""
    bar = place(a=SIDE, theta=QUARTER)
    rail = place(a=SIDE, alpha=-QUARTER)
    model = links("patient side manipulator", [
        ("yaw", "universe", place(alpha=QUARTER, theta=QUARTER), "R",
         box(5.0, (-0.1, -0.1, -0.1), (0.1, 0.1, 0.1))),
        ("pitch", "yaw", place(alpha=-QUARTER, theta=-QUARTER), "R",
         box(3.0, (-0.05, -0.15, -0.05), (0.1, 0.2, 0.05))),
        ("front", "pitch", bar * place(a=LOW, theta=QUARTER), "R",
         box(1.0, (0.0, -0.03, -0.03), (LONG, 0.03, 0.03))),
        ("bottom", "front", place(a=LONG), "R", box(0.8, (-0.02, -0.4, -0.03), (0.06, 0.05, 0.03))),
        ("insertion", "bottom", place(a=SIDE, alpha=-QUARTER, d=LOW - REMOTE), "P",
         box(0.5, (-0.05, -0.03, -0.1), (0.05, 0.03, 0.1))),
        ("roll", "insertion", place(d=TOOL), "R", None),
        ("wrist", "roll", place(alpha=QUARTER, theta=QUARTER), "R", None),
        ("jaw_1", "wrist", place(a=FINGER, alpha=-QUARTER, theta=QUARTER), "R", None),
        ("jaw_2", "wrist", place(a=FINGER, alpha=-QUARTER, theta=QUARTER), "R", None),
        ("top", "front", place(a=SHORT, theta=np.pi), "R",
         box(0.3, (-0.05, -0.15, 0.0), (0.0, 0.05, 0.06))),
        ("rod", "pitch", bar * place(a=LOW + GAP, theta=QUARTER), "R",
         box(0.5, (0.0, -0.02, -0.02), (LONG, 0.02, 0.02))),
        ("counterweight", "pitch", rail, "P", box(0.5, (-0.05, -0.03, -0.1), (0.05, 0.03, 0.1))),
        *((f"motor_{i}", "universe", place(), "R", None) for i in (5, 6, 7)),
    ])  # fmt: skip
    axis = place(alpha=-QUARTER, theta=-QUARTER)
    loops = [
        hc.Closure(("yaw", axis * at(-SHORT)), ("top", at(-SIDE, -LOW)), "revolute", name="pin_1"),
        hc.Closure(("rod", at(SHORT)), ("top", at(0.0, GAP)), "revolute", name="pin_2"),
        hc.Closure(("rod", at(LONG)), ("bottom", at(0.0, -GAP)), "revolute", name="pin_3"),
        hc.Closure("jaw_1", "jaw_2", "revolute", name="jaws"),
        hc.Coupling({"counterweight": 1.0, "insertion": -1.0}),
        hc.Coupling({"wrist": 1.0, "motor_5": -WRIST}),
        hc.Coupling({"jaw_1": 1.0, "motor_5": -ACROSS, "motor_6": -JAW}),
        hc.Coupling({"jaw_2": 1.0, "motor_5": -ACROSS, "motor_7": -JAW}),
    ]
    motors = ["yaw", "pitch", "insertion", "roll", "motor_5", "motor_6", "motor_7"]
    return hc.Mechanism(
        with_rotors(model, motors[3:]), loops, actuated=motors, forces=[friction(widths)]
    )


# ------------------------------------------------------------------------------ the master

HEIGHT, UPPER, BACK, FORE, OUT = 0.2154, 0.2794, 0.1, 0.3645, 0.151
"""m: the shoulder below the base; upper arm, crank of the parallelogram, forearm, wrist."""
CABLE = 0.6697
"""What the angle between shoulder and crank turns the platform by, through its cable."""
SPRING, POST, RELAXED, AHEAD = 0.0075, 0.1035, 0.0613, np.deg2rad(23.0)
"""The spring that balances the wrist: m, m, m, and where it is in line, rad."""


def master(widths: dict[str, float]) -> hc.Mechanism:
    """A parallelogram moves the elbow; a cable turns the platform on the forearm."""
    model = links("master manipulator", [
        ("yaw", "universe", place(d=-HEIGHT), "R", box(4.0, (-0.1, -0.1, -0.1), (0.1, 0.1, 0.2))),
        ("shoulder", "yaw", place(alpha=-QUARTER, theta=QUARTER), "R",
         box(2.0, (-0.1, -0.05, -0.05), (UPPER, 0.05, 0.05))),
        ("elbow", "shoulder", place(a=UPPER, theta=QUARTER), "R",
         box(1.0, (0.0, -0.03, -0.03), (FORE, 0.03, 0.03))),
        ("platform", "elbow", place(a=FORE, alpha=-QUARTER, d=OUT), "R",
         box(0.5, (-0.03, -0.03, -0.15), (0.03, 0.1, 0.0))),
        ("wrist_pitch", "platform", place(alpha=QUARTER), "R",
         box(0.3, (-0.03, -0.08, -0.08), (0.03, 0.02, 0.02))),
        ("wrist_yaw", "wrist_pitch", place(alpha=-QUARTER, theta=QUARTER), "R",
         box(0.2, (-0.03, -0.02, -0.08), (0.03, 0.08, 0.02))),
        ("wrist_roll", "wrist_yaw", place(alpha=-QUARTER, theta=np.pi), "R",
         box(0.1, (-0.02, -0.02, 0.0), (0.02, 0.02, 0.08))),
        ("back", "yaw", place(alpha=-QUARTER, theta=np.pi), "R",
         box(2.0, (-0.1, -0.05, -0.05), (BACK, 0.05, 0.05))),
        ("rod", "back", place(a=BACK, theta=-QUARTER), "R",
         box(0.4, (0.0, -0.02, -0.02), (UPPER, 0.02, 0.02))),
        ("motor_4", "universe", place(), "R", None),
    ])  # fmt: skip
    loops = [
        hc.Closure(("rod", at(UPPER)), ("elbow", at(BACK)), "revolute", name="pin"),
        hc.Coupling({"platform": 1.0, "shoulder": -CABLE, "back": CABLE, "motor_4": -1.0}),
    ]
    motors = ["yaw", "shoulder", "back", "motor_4", "wrist_pitch", "wrist_yaw", "wrist_roll"]
    return hc.Mechanism(
        with_rotors(model, ["motor_4"]), loops, actuated=motors, forces=[friction(widths)]
    )


def balance(q: float) -> float:
    """The torque on the wrist for a unit of stiffness, against the spring's."""
    angle = np.pi + AHEAD - q
    length = np.sqrt(SPRING**2 + POST**2 - 2.0 * SPRING * POST * np.cos(angle))
    return float(-SPRING * POST * np.sin(angle) / length * (length - RELAXED))


ARMS = (
    Arm(
        "psm", patient_side,
        ("yaw", "pitch", "insertion", "roll", "wrist", "jaw_1", "jaw_2", "motor_6", "motor_7",
         "jaws"),
        ("roll", "motor_5", "motor_6", "motor_7"), 5.4, 1111, 1296, False,
        (0.10271958, 0.18394008, 0.19826131, 0.13442613, 0.24024134, 0.21187137, 0.26383741),
        (0.09289571, 0.17829876, 0.1907355, 0.13445973, 0.2393902, 0.21251855, 0.26420205),
        ("roll", float),
    ),
    Arm(
        "mtm", master,
        ("yaw", "shoulder", "elbow", "platform", "wrist_pitch", "wrist_yaw", "wrist_roll", "back",
         "rod", "motor_4"),
        ("motor_4",), 1.8, 2000, 2333, True,
        (0.08178377, 0.16308936, 0.19056985, 0.2090203, 0.26304677, 0.23482655, 0.33959325),
        (0.07691726, 0.14853754, 0.16953016, 0.223162, 0.27995774, 0.23416671, 0.33950312),
        ("wrist_pitch", balance), cable=(0.0, CABLE, -CABLE, 1.0, 0.0, 0.0, 0.0),
    ),
)  # fmt: skip
