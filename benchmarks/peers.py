"""The same mechanisms in Drake and in MuJoCo, made from the Pinocchio model.

Drake by hand is the leanest assembly that we found: recursive Newton-Euler, a relative Jacobian
and its bias for each closure, and the split into independent and dependent coordinates. Drake
textbook is what most write from the manual: M, the bias term, both frames of each closure, one
dense solve. MuJoCo is `mj_inverse`. Its constraints are soft and exert no force where q, v and a
satisfy them, so its torques are those of the cut tree; by how much they are off is told.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from columns import Case, Column, SaddlePoint, State, independent_rows, motor_indices
from mechanisms import Loop
from numpy.typing import NDArray

import holoctl as hc

Array = NDArray[np.float64]

CONVERSION = 1e-9
"""M and the bias efforts of a converted model may differ from Pinocchio's by this, relative."""


def peer_columns(case: Case) -> list[Column]:
    """Drake and MuJoCo; a library that cannot be imported is a column with nothing in it."""
    return [
        _column("Drake by hand", "pydrake.all", lambda: _drake_by_hand(case)),
        _column("Drake textbook", "pydrake.all", lambda: _drake_textbook(case)),
        _column("MuJoCo mj_inverse", "mujoco", lambda: _mujoco_column(case)),
    ]


def _column(name: str, module: str, make: Callable[[], Column]) -> Column:
    try:
        importlib.import_module(module)
    except ImportError:
        return Column(name, lambda s: None, missing="missing")
    return make()


# ------------------------------------------------------------------------------- coordinates


@dataclass(frozen=True)
class Axis:
    """A joint of one coordinate: how it moves, along which axis of its frame."""

    turns: bool
    axis: Array


def joint_axis(model: pin.Model, joint: int) -> Axis | None:
    """The axis of a revolute or prismatic joint; None for a floating one."""
    kind = model.joints[joint]
    if kind.shortname() == "JointModelFreeFlyer":
        if not model.jointPlacements[joint].isIdentity() or model.parents[joint]:
            raise TypeError(f"{model.names[joint]}: a floating joint must start at the world")
        return None
    if kind.nq != 1 or kind.nv != 1:
        raise TypeError(f"{model.names[joint]}: {kind.shortname()} is not converted")
    data = kind.createData()
    kind.calc(data, np.zeros(model.nq))
    S = np.asarray(data.S).ravel()
    turns = bool(np.linalg.norm(S[3:]) > 0.5)
    return Axis(turns, S[3:] if turns else S[:3])


@dataclass(frozen=True)
class Coordinates:
    """Where a peer keeps each coordinate; the turning part of a floating joint may come first,
    and be measured in axes of the world or of the body. Quaternions start with w in both."""

    model: pin.Model
    at_q: list[int]
    """For each joint, from 1: where its part of the configuration begins."""
    at_v: list[int]
    turning_first: bool
    turning_in_world: bool

    def configuration(self, q: Array) -> Array:
        """q as the peer has it."""
        out = np.zeros(self.model.nq)
        for j, at in enumerate(self.at_q, start=1):
            i = self.model.joints[j].idx_q
            if self.model.nqs[j] == 1:
                out[at] = q[i]
                continue
            position, (x, y, z, w) = q[i : i + 3], q[i + 3 : i + 7]
            parts = [position, [w, x, y, z]]
            out[at : at + 7] = np.concatenate(parts[::-1] if self.turning_first else parts)
        return out

    def transform(self, q: Array) -> Array:
        """T with ``v_peer = T v``."""
        T = np.zeros((self.model.nv, self.model.nv))
        for j, at in enumerate(self.at_v, start=1):
            i = self.model.joints[j].idx_v
            if self.model.nvs[j] == 1:
                T[at, i] = 1.0
                continue
            R = self._rotation(q, j)
            linear, turning = (at + 3, at) if self.turning_first else (at, at + 3)
            T[linear : linear + 3, i : i + 3] = R
            T[turning : turning + 3, i + 3 : i + 6] = R if self.turning_in_world else np.eye(3)
        return T

    def turning(self, q: Array, v: Array) -> Array:
        """``dT/dt v``: the linear part of a floating joint turns with its body in Pinocchio."""
        out = np.zeros(self.model.nv)
        for j, at in enumerate(self.at_v, start=1):
            if self.model.nvs[j] == 6:
                i = self.model.joints[j].idx_v
                linear = at + 3 if self.turning_first else at
                spin = np.cross(v[i + 3 : i + 6], v[i : i + 3])
                out[linear : linear + 3] = self._rotation(q, j) @ spin
        return out

    def _rotation(self, q: Array, joint: int) -> Array:
        i = self.model.joints[joint].idx_q
        return pin.Quaternion(q[i + 3 : i + 7]).toRotationMatrix()


def check_conversion(
    name: str,
    states: list[State],
    coordinates: Coordinates,
    peer: Callable[[Array, Array], tuple[Array, Array]],
) -> None:
    """Compare M and the efforts at zero acceleration of a peer with Pinocchio's."""
    model, data = coordinates.model, coordinates.model.createData()
    for s in states:
        T = coordinates.transform(s.q)
        M, h = peer(coordinates.configuration(s.q), T @ s.v)
        still = np.linalg.solve(T, -coordinates.turning(s.q, s.v))  # zero for the peer
        ours = pin.crba(model, data, s.q), pin.rnea(model, data, s.q, s.v, still)
        for mine, theirs in zip(ours, (T.T @ M @ T, T.T @ h), strict=True):
            off = float(np.abs(theirs - mine).max() / np.abs(mine).max())
            if off > CONVERSION:
                raise RuntimeError(f"{name}: the converted model is off by {off:.1e}")


# ------------------------------------------------------------------------------------- Drake


def _drake_plant(case: Case) -> DrakePlant:
    """One for each column, so that none finds what another has left."""
    plant = DrakePlant(case.mech.model)
    check_conversion("Drake", case.states, plant.coordinates, plant.inertia_and_bias)
    return plant


def _drake_by_hand(case: Case) -> Column:
    plant = _drake_plant(case)
    by_hand = DrakeByHand(plant, case)

    def prepare(s: State) -> tuple[Array, Array]:
        c = plant.coordinates
        return np.concatenate([c.configuration(s.q), c.transform(s.q) @ s.v]), s.target

    by_hand.decide(prepare(case.states[0])[0])
    return Column("Drake by hand", by_hand.torque, lambda s: s.u, prepare)


def _drake_textbook(case: Case) -> Column:
    plant = _drake_plant(case)
    textbook = DrakeTextbook(plant, case)

    def prepare(s: State) -> tuple[Array, Array, Array]:
        c = plant.coordinates
        return c.configuration(s.q), c.transform(s.q) @ s.v, s.target

    textbook.decide(*prepare(case.states[0])[:2])
    return Column("Drake textbook", textbook.torque, lambda s: s.u, prepare)


class DrakePlant:
    """A MultibodyPlant with the tree of a Pinocchio model."""

    def __init__(self, model: pin.Model) -> None:
        from pydrake.multibody.plant import MultibodyPlant
        from pydrake.multibody.tree import MultibodyForces

        self.plant = plant = MultibodyPlant(0.0)
        self.bodies = [plant.world_body()]
        joints = [self._add(model, j) for j in range(1, model.njoints)]
        plant.mutable_gravity_field().set_gravity_vector(model.gravity.linear)
        plant.Finalize()
        self.context = plant.CreateDefaultContext()
        self.forces = MultibodyForces(plant)
        self.coordinates = Coordinates(
            model,
            [j.position_start() for j in joints],
            [j.velocity_start() for j in joints],
            turning_first=True,
            turning_in_world=True,
        )

    def _add(self, model: pin.Model, j: int) -> Any:
        from pydrake.math import RigidTransform, RotationMatrix
        from pydrake.multibody.tree import (
            FixedOffsetFrame,
            PrismaticJoint,
            QuaternionFloatingJoint,
            RevoluteJoint,
        )

        plant, name, axis = self.plant, model.names[j], joint_axis(model, j)
        body = plant.AddRigidBody(name, _drake_inertia(model.inertias[j]))
        self.bodies.append(body)
        place = model.jointPlacements[j]
        pose = RigidTransform(RotationMatrix(place.rotation), place.translation)
        parent = self.bodies[model.parents[j]].body_frame()
        carrier = plant.AddFrame(FixedOffsetFrame(f"{name}_carrier", parent, pose))
        frames = {"frame_on_parent": carrier, "frame_on_child": body.body_frame()}
        if axis is None:
            return plant.AddJoint(QuaternionFloatingJoint(name, **frames))
        kind = RevoluteJoint if axis.turns else PrismaticJoint
        return plant.AddJoint(kind(name, **frames, axis=axis.axis, damping=0.0))

    def inertia_and_bias(self, q: Array, v: Array) -> tuple[Array, Array]:
        """M, and the efforts at zero acceleration."""
        plant, context = self.plant, self.context
        plant.SetPositions(context, q)
        plant.SetVelocities(context, v)
        plant.CalcForceElementsContribution(context, self.forces)
        h = plant.CalcInverseDynamics(context, np.zeros(v.size), self.forces)
        return plant.CalcMassMatrix(context), h

    def motors(self, mech: hc.Mechanism) -> NDArray[np.intp]:
        """The coordinate of each motor."""
        return np.array(self.coordinates.at_v)[mech.joint_of[motor_indices(mech)] - 1]


def _drake_inertia(inertia: pin.Inertia) -> Any:
    from pydrake.multibody.tree import RotationalInertia, SpatialInertia

    if inertia.mass == 0.0:
        return SpatialInertia.Zero()
    I = inertia.inertia  # noqa: E741
    about_centre = RotationalInertia(I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
    return SpatialInertia.MakeFromCentralInertia(inertia.mass, inertia.lever, about_centre)


class DrakeByHand:
    """u from Drake's Newton-Euler pass and the Jacobians of the closures.

    One relative Jacobian and one bias a closure, in the axes of the frame that carries it; the
    rows that count and the dependent coordinates are decided once. Motors are independent
    coordinates. Where more motions than motors are left, the rest follows from M.
    """

    def __init__(self, plant: DrakePlant, case: Case) -> None:
        from pydrake.multibody.tree import JacobianWrtVariable

        self.plant, self.context, self.forces = plant.plant, plant.context, plant.forces
        self.speeds = JacobianWrtVariable.kV
        mech = case.mech
        self.motors = plant.motors(mech)
        self.rank = case.part.rank
        self.loops = [self._loop(plant, loop) for loop in case.loops]
        rows = sum(6 if weld else 3 for weld, *_ in self.loops)
        self.G, self.drift = np.zeros((rows, mech.nv)), np.zeros(rows)
        self.a = np.zeros(mech.nv)

    def _loop(self, plant: DrakePlant, loop: Loop) -> tuple[bool, Any, Array, Any]:
        """Weld or point, the body of b, the point in it, and the body of a, whose axes serve."""
        a, b = (plant.bodies[f.joint].body_frame() for f in (loop.frame_a, loop.frame_b))
        return loop.weld, b, loop.frame_b.placement.translation.reshape(3, 1).copy(), a

    def decide(self, x: Array) -> None:
        """Which rows count and which coordinates depend on others, at one state."""
        self.plant.SetPositionsAndVelocities(self.context, x)
        self._closures()
        rows = independent_rows(self.G, self.rank)
        self.keep = None if rows.size == self.G.shape[0] else rows
        others = np.setdiff1d(np.arange(self.a.size), self.motors)
        self.dependent = others[independent_rows(self.G[np.ix_(rows, others)].T, self.rank)]
        self.passive = np.setdiff1d(others, self.dependent)
        self.independent = np.concatenate([self.motors, self.passive])
        self.right = np.empty((rows.size, self.independent.size + 1))

    def _closures(self) -> None:
        plant, context, speeds, at = self.plant, self.context, self.speeds, 0
        for weld, b, point, a in self.loops:
            if weld:
                here = slice(at, at + 6)
                self.G[here] = plant.CalcJacobianSpatialVelocity(context, speeds, b, point, a, a)
                bias = plant.CalcBiasSpatialAcceleration(context, speeds, b, point, a, a)
                self.drift[here] = bias.get_coeffs()
                at += 6
                continue
            here = slice(at, at + 3)
            self.G[here] = plant.CalcJacobianTranslationalVelocity(context, speeds, b, point, a, a)
            self.drift[here] = plant.CalcBiasTranslationalAcceleration(
                context, speeds, b, point, a, a
            )[:, 0]
            at += 3

    def torque(self, x: tuple[Array, Array]) -> Array:
        """u at a state in Drake's coordinates, for a target of the motors."""
        state, target = x
        plant, context, nu = self.plant, self.context, self.motors.size
        plant.SetPositionsAndVelocities(context, state)
        self._closures()
        G, drift, right = self.G, self.drift, self.right
        if self.keep is not None:
            G, drift = G.take(self.keep, 0), drift.take(self.keep)
        right[:, :-1], right[:, -1] = G.take(self.independent, 1), drift
        X = np.linalg.solve(G.take(self.dependent, 1), right)
        a = self.a
        a[self.motors] = target
        a[self.passive] = 0.0
        a[self.dependent] = -(X[:, :nu] @ target) - X[:, -1]
        plant.CalcForceElementsContribution(context, self.forces)
        w = plant.CalcInverseDynamics(context, a, self.forces)
        if self.passive.size:
            w = w + self._passive_efforts(X[:, nu:-1], w)
        return w[self.motors] - X[:, :nu].T @ w[self.dependent]

    def _passive_efforts(self, X: Array, w: Array) -> Array:
        """What the motion of the passive coordinates adds to the efforts."""
        gamma = np.zeros((self.a.size, self.passive.size))
        gamma[self.passive] = np.eye(self.passive.size)
        gamma[self.dependent] = -X
        moved = self.plant.CalcMassMatrix(self.context) @ gamma
        return moved @ np.linalg.solve(gamma.T @ moved, -(gamma.T @ w))


class DrakeTextbook:
    """u from the saddle point system of columns.SaddlePoint, each part by the call that the
    manual names for it.

    Rows are differences of what the two frames of a closure do in the world, in its axes; which
    of them count is decided once. The world itself, as one end of a closure, takes no call.
    """

    def __init__(self, plant: DrakePlant, case: Case) -> None:
        from pydrake.multibody.tree import JacobianWrtVariable

        self.plant, self.context = plant.plant, plant.context
        self.speeds, self.world = JacobianWrtVariable.kV, plant.plant.world_frame()
        mech, self.rank = case.mech, case.part.rank
        self.loops = [(loop.weld, self._ends(plant, loop)) for loop in case.loops]
        rows = sum(6 if weld else 3 for weld, *_ in self.loops)
        self.G, self.drift = np.zeros((rows, mech.nv)), np.zeros(rows)
        B = np.zeros((mech.nv, mech.nu))
        B[plant.motors(mech), np.arange(mech.nu)] = 1.0
        self.system = SaddlePoint(B, self.rank)

    def _ends(self, plant: DrakePlant, loop: Loop) -> list[tuple[Any, Array]]:
        """The bodies, and the point in each; without the world."""
        return [
            (plant.bodies[f.joint].body_frame(), f.placement.translation.reshape(3, 1).copy())
            for f in (loop.frame_b, loop.frame_a)
            if f.joint
        ]

    def decide(self, q: Array, v: Array) -> None:
        """Which rows count, at one state."""
        self.plant.SetPositions(self.context, q)
        self.plant.SetVelocities(self.context, v)
        self._rows()
        rows = independent_rows(self.G, self.rank)
        self.keep = slice(None) if rows.size == self.G.shape[0] else rows

    def _rows(self) -> None:
        at = 0
        for weld, ends in self.loops:
            G, drift = self._motion(weld, *ends[0])
            for end in ends[1:]:
                G_a, drift_a = self._motion(weld, *end)
                G, drift = G - G_a, drift - drift_a
            here = slice(at, at + len(G))
            self.G[here], self.drift[here] = G, drift
            at = here.stop

    def _motion(self, weld: bool, frame: Any, point: Array) -> tuple[Array, Array]:
        """Jacobian and bias of a point, or of a frame there, relative to the world."""
        plant, context, where = self.plant, self.context, (frame, point, self.world, self.world)
        if weld:
            J = plant.CalcJacobianSpatialVelocity(context, self.speeds, *where)
            bias = plant.CalcBiasSpatialAcceleration(context, self.speeds, *where)
            return J, bias.get_coeffs()
        J = plant.CalcJacobianTranslationalVelocity(context, self.speeds, *where)
        return J, plant.CalcBiasTranslationalAcceleration(context, self.speeds, *where)[:, 0]

    def torque(self, x: tuple[Array, Array, Array]) -> Array:
        """u at a state in Drake's coordinates, for a target of the motors."""
        q, v, target = x
        plant, context = self.plant, self.context
        plant.SetPositions(context, q)
        plant.SetVelocities(context, v)
        M = plant.CalcMassMatrix(context)
        h = plant.CalcBiasTerm(context) - plant.CalcGravityGeneralizedForces(context)
        self._rows()
        return self.system.efforts(M, h, self.G[self.keep], self.drift[self.keep], target)


# ------------------------------------------------------------------------------------ MuJoCo


def _mujoco_column(case: Case) -> Column:
    import mujoco

    model = case.mech.model
    tree = mujoco.MjModel.from_xml_string(mjcf(model, []))
    coordinates = _mujoco_coordinates(tree, model)
    check_conversion("MuJoCo", case.states, coordinates, _MujocoTree(tree).inertia_and_bias)
    m = mujoco.MjModel.from_xml_string(mjcf(model, case.loops))
    d = mujoco.MjData(m)
    motors = np.array(coordinates.at_v)[case.mech.joint_of[motor_indices(case.mech)] - 1]
    inverse = mujoco.mj_inverse

    def prepare(s: State) -> tuple[Array, Array, Array]:
        T = coordinates.transform(s.q)
        a = T @ s.a + coordinates.turning(s.q, s.v)
        return coordinates.configuration(s.q), T @ s.v, a

    def call(x: tuple[Array, Array, Array]) -> Array:
        d.qpos[:], d.qvel[:], d.qacc[:] = x
        inverse(m, d)
        return d.qfrc_inverse[motors]

    for s in case.states:
        call(prepare(s))
        _check_projected(case, s, coordinates.transform(s.q).T @ d.qfrc_inverse)
    return Column("MuJoCo mj_inverse", call, lambda s: s.u, prepare, tolerance=None)


def _check_projected(case: Case, s: State, efforts: Array) -> None:
    """Along the motions that the closures allow, MuJoCo's efforts must be those of the motors:
    whatever its constraint forces are, they do no work there if its closures are ours."""
    P = hc.project(case.mech, s.q, s.v, partition=case.part)
    off = P.gamma.T @ (efforts - s.tau)
    size = np.abs(P.gamma.T) @ np.abs(efforts)
    if np.abs(off).max() > CONVERSION * size.max():
        raise RuntimeError(f"MuJoCo: other closures, off by {np.abs(off).max():.1e}")


def _mujoco_coordinates(m: Any, model: pin.Model) -> Coordinates:
    joints = [m.joint(model.names[j]) for j in range(1, model.njoints)]
    return Coordinates(
        model,
        [int(j.qposadr[0]) for j in joints],
        [int(j.dofadr[0]) for j in joints],
        turning_first=False,
        turning_in_world=False,
    )


class _MujocoTree:
    """A model without closures, to compare with Pinocchio."""

    def __init__(self, m: Any) -> None:
        import mujoco

        self.mujoco, self.m, self.d = mujoco, m, mujoco.MjData(m)

    def inertia_and_bias(self, q: Array, v: Array) -> tuple[Array, Array]:
        """M, and the efforts at zero acceleration."""
        m, d = self.m, self.d
        d.qpos[:], d.qvel[:], d.qacc[:] = q, v, 0.0
        self.mujoco.mj_forward(m, d)
        M = np.zeros((m.nv, m.nv))
        self.mujoco.mj_fullM(m, d, M)
        return M, np.array(d.qfrc_bias)


def mjcf(model: pin.Model, closures: list[Loop]) -> str:
    """The model as MJCF: points become `connect`, welds become `weld`, between sites."""
    children: list[list[int]] = [[] for _ in range(model.njoints)]
    for j in range(1, model.njoints):
        children[model.parents[j]].append(j)
    sites = dict.fromkeys(range(model.njoints), "")
    equalities = ""
    for i, loop in enumerate(closures):
        for end, frame in (("a", loop.frame_a), ("b", loop.frame_b)):
            sites[frame.joint] += f'<site name="{i}{end}" {_pose(frame.placement)}/>\n'
        kind = "weld" if loop.weld else "connect"
        equalities += f'<{kind} site1="{i}a" site2="{i}b"/>\n'
    bodies = "".join(_body(model, j, children, sites, "", pin.SE3.Identity()) for j in children[0])
    return f"""<mujoco>
<compiler angle="radian" autolimits="false" boundmass="0" boundinertia="0"
  inertiafromgeom="false" balanceinertia="false" fusestatic="false"/>
<option gravity="{_numbers(model.gravity.linear)}"/>
<default><joint armature="0" damping="0" frictionloss="0" stiffness="0" limited="false"/></default>
<worldbody>
{sites[0]}{bodies}</worldbody>
<equality>
{equalities}</equality>
</mujoco>"""


def _body(
    model: pin.Model, j: int, children: list[list[int]], sites: dict[int, str], before: str,
    since: pin.SE3,
) -> str:  # fmt: skip
    """A body with all that it carries.

    MuJoCo has no moving bodies without mass: the joint of one goes into the body that it
    carries (`before`: that joint; `since`: where the body to come stands).
    """
    here = since * model.jointPlacements[j]
    if model.inertias[j].mass == 0.0:
        if len(children[j]) != 1 or sites[j] or before:
            raise TypeError(f"{model.names[j]}: no mass, and not just a link of a universal joint")
        child = children[j][0]
        place = model.jointPlacements[child].inverse()
        return _body(model, child, children, sites, before + _joint(model, j, place), here)
    inertia = model.inertias[j]
    I = inertia.inertia  # noqa: E741
    full = (I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
    inside = "".join(_body(model, c, children, sites, "", pin.SE3.Identity()) for c in children[j])
    return (
        f'<body name="{model.names[j]}" {_pose(here)}>\n'
        f'<inertial pos="{_numbers(inertia.lever)}" mass="{inertia.mass!r}" '
        f'fullinertia="{_numbers(full)}"/>\n'
        f"{before}{_joint(model, j, pin.SE3.Identity())}{sites[j]}{inside}</body>\n"
    )


def _joint(model: pin.Model, j: int, place: pin.SE3) -> str:
    """A joint whose frame is at `place` in the body."""
    name, axis = model.names[j], joint_axis(model, j)
    if axis is None:
        return f'<freejoint name="{name}"/>\n'
    kind = "hinge" if axis.turns else "slide"
    direction = _numbers(place.rotation @ axis.axis)
    return (
        f'<joint name="{name}" type="{kind}" pos="{_numbers(place.translation)}" '
        f'axis="{direction}"/>\n'
    )


def _pose(place: pin.SE3) -> str:
    x, y, z, w = pin.Quaternion(place.rotation).coeffs()
    return f'pos="{_numbers(place.translation)}" quat="{_numbers((w, x, y, z))}"'


def _numbers(values: Any) -> str:
    return " ".join(repr(float(x)) for x in values)
