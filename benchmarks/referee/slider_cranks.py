"""Two slider-cranks: one with equal bars, which bifurcates, and the rigid spatial one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import holoctl as hc
from referee.one_freedom import OneFreedom, Pose, one_freedom
from referee.planar import GRAVITY, bar, hinge, plane_model, pose, started
from referee.problem import Problem, at

Array = NDArray[np.float64]

# ------------------------------------------------------------------------------- equal bars

EQUAL_START, EQUAL_RATE, SLIDER = 0.25 * np.pi, 4.0 / np.sqrt(2.0), 1.0
"""rad; rad/s, the slider at -4 m/s; kg."""
EQUAL_TIMES = np.linspace(0.0, 18.2, 92)


def make_equal() -> tuple[hc.Mechanism, Array, Array]:
    """Crank, rod and slider; the pin of the slider is cut."""
    model = plane_model("equal_bars")
    hinge(model, "universe", "crank", at(), bar(1.0, 1.0))
    hinge(model, "crank", "rod", at(1.0), bar(1.0, 1.0))
    slide = model.addJoint(0, pin.JointModelPX(), at(), "slide")
    model.appendBodyToJoint(slide, pin.Inertia(SLIDER, np.zeros(3), 0.01 * np.eye(3)), at())
    pin_of_slider = hc.Closure("slide", ("rod", at(1.0)), axes="x y", name="pin")
    start = [EQUAL_START, -2.0 * EQUAL_START, 2.0 * np.cos(EQUAL_START)]
    mech = hc.Mechanism(model, [pin_of_slider], reference=start)
    return started(mech, {"crank": EQUAL_RATE})


def _equal_poses(a: float) -> list[Pose]:
    """The smooth branch: an isosceles triangle, with the slider at 2 cos(a)."""
    c, s = np.cos(a), np.sin(a)
    return [
        pose(0.5 * c, 0.5 * s, a), pose(1.5 * c, 0.5 * s, -a), pose(2.0 * c, 0.0, 0.0),
    ]  # fmt: skip


def equal() -> OneFreedom:
    """The motion of one freedom."""
    thin = np.diag([0.0, 1.0, 1.0]) / 12.0
    bodies = [(1.0, thin), (1.0, thin), (SLIDER, np.zeros((3, 3)))]
    return one_freedom(_equal_poses, bodies, GRAVITY, samples=32)


def equal_reference(times: Array = EQUAL_TIMES) -> Array:
    """The tip of the crank, and the slider."""
    a, _ = equal().motion(times, EQUAL_START, EQUAL_RATE)
    zero = 0.0 * a
    crank, slider = ([np.cos(a), np.sin(a), zero], [2.0 * np.cos(a), zero, zero])
    return np.stack([np.stack(p, axis=1) for p in (crank, slider)], axis=1)


def equal_passages(duration: float) -> int:
    """How often the slider passes the centre of the crank."""
    a, _ = equal().motion(np.linspace(0.0, duration, 4001), EQUAL_START, EQUAL_RATE)
    return int(np.abs(np.diff(np.floor(a / np.pi - 0.5))).sum())


EQUAL_BARS = Problem(
    "slider-crank with equal bars",
    "Bars of 1 m and 1 kg, crank at 45 degrees, slider at -4 m/s as, from memory, in the "
    "literature on singular configurations (Bayo and Avello 1994); our slider has 1 kg. "
    "Reference: the smooth branch is an isosceles triangle; one freedom, DOP853 at 1e-13.",
    make_equal, (("crank", at(1.0)), "slide"), EQUAL_TIMES, equal_reference,
    options={"at_singular": "cross"}, steps={"Exudyn": 1e-3, "MuJoCo": 1e-3},
    passages=lambda: equal_passages(EQUAL_TIMES[-1]),
)  # fmt: skip

# ---------------------------------------------------------------------------------- spatial

CRANK, ROD, CENTRE = 0.08, 0.3, np.array([0.0, 0.1, 0.12])
SPATIAL_RATE = 6.0
SPATIAL_TIMES = np.linspace(0.0, 5.0, 101)
DOWN = np.array([0.0, 0.0, -9.81])


@dataclass(frozen=True)
class Reading:
    """What the published data leave open.

    Attributes
    ----------
    rod : tuple of float
        The rod's inertia along itself, about the axis of the joint at the slider that is fixed in
        it, and square to both, kg m^2.
    crank_com : float
        Where the centre of mass of the crank is: 0 on its axis, 0.5 in the middle.
    upright : bool
        The joint at the slider has one axis along y, not along the guide.
    """

    rod: tuple[float, float, float] = (4e-4, 4e-3, 4e-3)
    crank_com: float = 0.5
    upright: bool = False

    @property
    def bodies(self) -> list[tuple[float, Array]]:
        """Crank (from its axis along z), rod (along x), slider: kg, kg m^2 about the centres."""
        return [
            (0.12, np.diag([1e-4, 1e-4, 1e-5])), (0.5, np.diag(self.rod)), (2.0, 1e-4 * np.eye(3)),
        ]  # fmt: skip


AS_FILES = Reading()
"""As Exudyn's file has it, the joint as MBDyn's."""


def _rod_axes(crank_pin: Array, slider: Array, upright: bool = False) -> Array:
    """x along the rod from the slider, y square to it and to the guide: the axis of the joint.

    Upright: z square to it and to the world's y.
    """
    along = (crank_pin - slider) / ROD
    across = np.cross(along, [0.0, 1.0, 0.0]) if upright else np.cross([1.0, 0.0, 0.0], along)
    across /= np.linalg.norm(across)
    other = np.cross(along, across)
    return np.stack([along, -other, across] if upright else [along, across, other], axis=1)


def _spatial_points(a: float) -> tuple[Array, Array]:
    pin_at = CENTRE + CRANK * np.array([0.0, -np.sin(a), np.cos(a)])
    x = np.sqrt(ROD**2 - pin_at[1] ** 2 - pin_at[2] ** 2)
    return pin_at, np.array([x, 0.0, 0.0])


def _spatial_poses(a: float, reading: Reading) -> list[Pose]:
    crank_pin, slider = _spatial_points(a)
    c, s = np.cos(a), np.sin(a)
    turn = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
    return [
        (CENTRE + reading.crank_com * (crank_pin - CENTRE), turn),
        (0.5 * (crank_pin + slider), _rod_axes(crank_pin, slider, reading.upright)),
        (slider, np.eye(3)),
    ]


def make_spatial(reading: Reading = AS_FILES) -> tuple[hc.Mechanism, Array, Array]:
    """The rod hangs from the slider; its ball joint with the crank is cut."""
    model = pin.Model()
    model.name, model.gravity.linear = "spatial_slider_crank", DOWN
    (m_crank, J_crank), (m_rod, J_rod), (m_slider, J_slider) = reading.bodies
    kinds = (
        (pin.JointModelRY(), pin.JointModelRZ()) if reading.upright
        else (pin.JointModelRX(), pin.JointModelRY())
    )  # fmt: skip
    crank = model.addJoint(0, pin.JointModelRX(), at(*CENTRE), "crank")
    slide = model.addJoint(0, pin.JointModelPX(), at(), "slide")
    guide = model.addJoint(slide, kinds[0], at(), "on_slide")
    rod = model.addJoint(guide, kinds[1], at(), "rod")
    for joint, mass, centre, inertia in (
        (crank, m_crank, [0.0, 0.0, reading.crank_com * CRANK], J_crank),
        (slide, m_slider, [0.0, 0.0, 0.0], J_slider),
        (rod, m_rod, [0.5 * ROD, 0.0, 0.0], J_rod),
    ):
        model.appendBodyToJoint(joint, pin.Inertia(mass, np.array(centre), inertia), at())
    crank_pin, slider = _spatial_points(0.0)
    R = _rod_axes(crank_pin, slider, reading.upright)  # Rx(on_slide) Ry(rod), or Ry Rz
    angles = (
        (np.arctan2(-R[2, 0], R[0, 0]), np.arcsin(R[1, 0])) if reading.upright
        else (np.arctan2(R[2, 1], R[1, 1]), np.arctan2(R[0, 2], R[0, 0]))
    )  # fmt: skip
    start = {"crank": 0.0, "slide": slider[0], "on_slide": angles[0], "rod": angles[1]}
    ball = hc.Closure(("crank", at(z=CRANK)), ("rod", at(ROD)), joint="spherical", name="ball")
    mech = hc.Mechanism(model, [ball], reference=[start[n] for n in list(model.names)[1:]])
    return started(mech, {"crank": SPATIAL_RATE})


def spatial(samples: int = 512, reading: Reading = AS_FILES) -> OneFreedom:
    """The motion of one freedom, the angle of the crank."""
    return one_freedom(lambda a: _spatial_poses(a, reading), reading.bodies, DOWN, samples)


def spatial_reference(times: Array = SPATIAL_TIMES, reading: Reading = AS_FILES) -> Array:
    """The pin of the crank, and the slider."""
    a, _ = spatial(512, reading).motion(times, 0.0, SPATIAL_RATE)
    return np.array([_spatial_points(x) for x in a])


SPATIAL = Problem(
    "rigid spatial slider-crank",
    "Data: IFToMM benchmark, read in MBDyn's file srscm and Exudyn's sliderCrank3Dbenchmark.py. "
    "Universal joint at the slider: one axis along the guide, the other fixed in the rod, square "
    "to it and to the guide, as in MBDyn's file; published histories do not agree: see below. "
    "The rod has 4e-4 kg m^2 along itself and 4e-3 across. "
    "Reference: one freedom, the angle of the crank, DOP853 at 1e-13.",
    make_spatial, (("crank", at(z=CRANK)), "slide"), SPATIAL_TIMES, spatial_reference,
    steps={"Exudyn": 1e-3, "MuJoCo": 1e-3},
)  # fmt: skip
