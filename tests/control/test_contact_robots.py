"""Robots with loops on contacts that only push, beside programs written once more."""

from __future__ import annotations

import itertools
import pickle

import cvxpy as cp
import numpy as np
import pinocchio as pin
import pytest
from scipy.optimize import linprog
from standing import ROBOTS, rotation, standing

import holoctl as hc

PULLED = {"rod_legged": "pelvis", "quadruped": "trunk", "two_arms": "object"}
few_or_many = pytest.mark.parametrize("states", [3, pytest.param(80, marks=pytest.mark.slow)])
few_or_some = pytest.mark.parametrize("states", [1, pytest.param(25, marks=pytest.mark.slow)])
robots = pytest.mark.parametrize("name", ROBOTS)


def point_motion(model, data, joint, place):
    """The Jacobian of a point and its acceleration at a = 0, world axes."""
    if joint == 0:
        return np.zeros((3, model.nv)), np.zeros(3)
    J = pin.getFrameJacobian(model, data, joint, place, pin.LOCAL_WORLD_ALIGNED)[:3]
    v, a = place.actInv(data.v[joint]), place.actInv(data.a[joint])
    turned = (data.oMi[joint] * place).rotation
    return J, turned @ (a.linear + np.cross(v.angular, v.linear))


class Program:
    """Motions x, efforts u and forces f in world axes, by Pinocchio and `hc.project` alone."""

    def __init__(self, case, q, v, f_ext=None):
        self.mech, self.contacts = case.mech, case.contacts
        P = hc.project(case.mech, q, v, partition=case.part)
        self.P, T, gamma = P, P.terms, P.gamma
        self.known = T.known_efforts(f_ext)
        rows = [row for contact in case.contacts for row in self._points(contact, q, v)]
        self.J = np.concatenate([J for _, J, _, _ in rows])
        self.drift = np.concatenate([drift for _, _, drift, _ in rows])
        self.points = [(contact, axes) for contact, _, _, axes in rows]
        inertia = gamma.T @ T.M @ gamma
        self.x_scale = 1.0 / np.sqrt(np.diag(inertia))
        N = gamma * self.x_scale
        self.N, self.k, self.nu, self.nf = N, P.k, case.mech.nu, self.drift.size
        self.dynamics = np.hstack([N.T @ T.M @ N, -N.T @ case.mech.B, -N.T @ self.J.T])
        self.dynamics_right = -N.T @ (T.M @ P.bias + T.h - self.known)
        rest = np.zeros((self.nf, self.nu + self.nf))
        self.kept, self.kept_right = np.hstack([self.J @ N, rest]), -self.drift - self.J @ P.bias

    def _points(self, contact, q, v):
        model = self.mech.model
        data = model.createData()
        pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
        pin.computeJointJacobians(model, data, q)
        body = hc.protocols.resolve_frame(model, contact.frame, "test")
        ground = hc.protocols.resolve_frame(model, contact.relative_to, "test")
        out = data.oMi[ground.joint].rotation @ ground.placement.rotation @ contact.normal
        own = data.oMi[body.joint].rotation @ body.placement.rotation
        tangents = hc.Contact("x", out).tangents
        if len(contact.points) > 2:  # a plane foot, in the x-y plane of its frame
            out = own[:, 2] * np.sign(own[:, 2] @ out)
            tangents = own[:, 0], np.cross(out, own[:, 0])
        for point in contact.points:
            place = body.placement * pin.SE3(np.eye(3), np.array(point))
            J, drift = point_motion(model, data, body.joint, place)
            there = data.oMi[ground.joint].inverse() * data.oMi[body.joint] * place
            J_ground, drift_ground = point_motion(model, data, ground.joint, there)
            yield contact, J - J_ground, drift - drift_ground, np.array([*tangents, out])

    def cones(self, names=None):
        """A, b: the cones of the forces, ``A f <= b``; those that are named."""
        kinds = {} if names else None
        for name in names or ():
            kinds.setdefault(name.rpartition(".")[0], set()).add(name.rpartition(".")[2])
        A, b = [np.zeros((0, self.nf))], [np.zeros(0)]
        for i, (contact, (t1, t2, n)) in enumerate(self.points):
            told = {"slides", "lifts"} if names is None else kinds.get(contact.default_name, set())
            angles = 2 * np.pi * np.arange(contact.facets) / contact.facets
            inside = contact.friction * np.cos(np.pi / contact.facets)
            faces = [np.cos(x) * t1 + np.sin(x) * t2 - inside * n for x in angles]
            rows = np.array([*(faces if "slides" in told else ()), *([-n] if told else ())])
            wide = np.zeros((len(rows), self.nf))
            wide[:, 3 * i : 3 * i + 3] = rows.reshape(-1, 3)
            A.append(wide)
            b.append(np.zeros(len(rows)))
        return np.concatenate(A), np.concatenate(b)

    def possible(self, effort, names=None):
        """Whether the conditions, or those of some names alone, can be met; by linprog."""
        A, b = self.cones(names)
        limited = [names is None or name in names for name in self.mech.actuator_names]
        box = [(-effort, effort) if on else (None, None) for on in limited]
        free = [(None, None)]
        for method in "highs", "highs-ipm":
            found = linprog(
                np.zeros(self.k + self.nu + self.nf),
                np.hstack([np.zeros((len(b), self.k + self.nu)), A]), b,
                np.concatenate([self.dynamics, self.kept]),
                np.concatenate([self.dynamics_right, self.kept_right]),
                bounds=[*(self.k * free), *box, *(self.nf * free)], method=method,
            )  # fmt: skip
            if found.status in (0, 2):
                return found.status == 0
        raise AssertionError(found.message)

    def slip(self):
        """R, r: ``|R x - r|`` is the slip in the metric of the inertia."""
        L = np.linalg.cholesky(self.dynamics[:, : self.k])
        J = self.kept[:, : self.k]
        U, sizes, _ = np.linalg.svd(np.linalg.solve(L, J.T), full_matrices=False)
        R = U[:, sizes > 1e-9 * sizes[0]].T @ L.T
        return R, R @ np.linalg.lstsq(J, self.kept_right, rcond=None)[0]

    def least(self, effort, rows=None, right=None):
        """The least ``|rows x - right|^2``; without rows, of the slip, which contacts then may."""
        x, u, f = cp.Variable(self.k), cp.Variable(self.nu), cp.Variable(self.nf)
        A, b = self.cones()
        s = cp.hstack([x, u, f])
        given = [A @ f <= b, self.dynamics @ s == self.dynamics_right, cp.abs(u) <= effort]
        if rows is None:
            rows, right = self.slip()
        else:
            U, sizes, _ = np.linalg.svd(self.kept[:, : self.k])
            some = U[:, : (sizes > 1e-9 * sizes[0]).sum()].T
            given.append(some @ self.kept @ s == some @ self.kept_right)
        problem = cp.Problem(cp.Minimize(cp.sum_squares(rows @ x - right)), given)
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        assert problem.status == "optimal"
        return float(problem.value)

    def broken(self, found, effort):
        """The largest residuals: motion, cones, rounds of the cones, limits, and contacts."""
        f = np.concatenate([found.forces[one.default_name] for one in self.contacts])
        T, A = self.P.terms, self.cones()[0]
        left = T.M @ found.a + T.h - self.known - self.mech.B @ found.u - self.J.T @ f.ravel()
        pushed = np.array([one @ n for one, (_, (_, _, n)) in zip(f, self.points, strict=True)])
        held = np.linalg.norm(f, axis=1) ** 2 - pushed**2
        friction = np.array([contact.friction for contact, _ in self.points])
        size = 1.0 + abs(f).max()
        return {
            "motion": abs(self.N.T @ left).max() / (1.0 + abs(self.dynamics_right).max()),
            "pyramid": (A @ f.ravel()).max() / size,
            "round": (np.sqrt(np.maximum(held, 0.0)) - friction * pushed).max() / size,
            "limits": max(0.0, abs(found.u).max() - effort),
            "contacts": abs(self.J @ found.a + self.drift).max() / (1.0 + abs(found.a).max()),
        }


def asked(name, states, seed):
    """Random states, commands, limits and pulls."""
    case, rng = standing(name), np.random.default_rng(seed)
    for i in range(states):
        q, v = case.state(rng)
        target = (0.1, 3.0, 30.0)[i % 3] * rng.normal(size=case.mech.nu)
        effort = case.effort * (1.0, 0.3, 0.05)[(i // 3 + i) % 3]
        pull = (20.0, 400.0)[i % 2] * np.concatenate([rng.normal(size=3), np.zeros(3)])
        yield case, q, v, target, effort, {PULLED[name]: tuple(pull)}


@few_or_many
@robots
def test_verdicts_and_solutions_hold_for_an_independent_program(name, states):
    kept = refused = 0
    for case, q, v, target, effort, pull in asked(name, states, seed=1):
        program, limits = Program(case, q, v, pull), hc.Limits(effort=effort)
        near = case.solved(q, v, target, limits, f_ext=pull, policy="nearest")
        assert near.certificate.ok, near.certificate
        broken = program.broken(near, effort)
        slips = broken.pop("contacts")
        if program.possible(effort):
            kept += 1
            found = case.solved(q, v, target, limits, f_ext=pull)
            assert np.array_equal(found.u, near.u)
            assert slips < 1e-9
        else:
            refused += 1
            with pytest.raises(hc.LimitError) as told:
                case.solved(q, v, target, limits, f_ext=pull)
            assert not program.possible(effort, told.value.names)
            assert slips > 1e-6
        assert broken.pop("limits") == 0.0
        assert max(broken.values()) < 1e-7, broken
    assert kept
    assert refused or states < 80


@few_or_some
@robots
def test_costs_are_those_of_an_independent_program(name, states):
    excess = []
    for case, q, v, target, effort, pull in asked(name, 3 * states, seed=2):
        limits = hc.Limits(effort=effort)
        found = case.solved(q, v, target, limits, f_ext=pull, policy="nearest")
        program, slips = Program(case, q, v, pull), any(s.any() for s in found.slip.values())
        if slips:
            R, r = program.slip()
            x = np.linalg.lstsq(program.N, found.a - program.P.bias, rcond=None)[0]
            got, least = float(((R @ x - r) ** 2).sum()), program.least(effort)
            assert got == pytest.approx(least, rel=1e-2)
            continue
        rows = case.mech.B.T @ program.N
        least = program.least(effort, rows, target - case.mech.B.T @ program.P.bias)
        got = float(((case.mech.B.T @ found.a - target) ** 2).sum())
        excess.append((got - least) / (least + 1.0))
    # where motions hardly move the motors, their weight in the program is not seen
    assert max(map(abs, excess)) < 1e-3
    assert np.quantile(np.abs(excess), 0.9) < 1e-6


@robots
def test_where_nothing_acts_they_are_bilateral(name):
    case, rng, seen = standing(name), np.random.default_rng(3), 0
    for _ in range(12):
        q, v = case.state(rng, speed=0.02, away=0.02)
        target = 0.02 * rng.normal(size=case.mech.nu)
        if name == "two_arms":  # pads are pressed on the object
            turned = rotation(case.mech, case.mech.model.getJointId("object"), q)[:, 0]
            f_ext = {f"hand_{x}": (*(s * 1000.0 * turned), 0, 0, 0) for x, s in SIDES}
        else:
            f_ext = {one.frame: (0.0, 0.0, -2000.0, 0.0, 0.0, 0.0) for one in case.contacts}
        found = case.solved(q, v, target, f_ext=f_ext)
        if found.saturated:
            continue
        seen += 1
        held = hc.inverse_dynamics(
            case.held, q, v, target, f_ext=f_ext, partition=case.held_part, inconsistent="project"
        )
        assert abs(found.a - held.a).max() < 1e-10 * (1.0 + abs(held.a).max())
        assert abs(found.u - held.u).max() < 1e-10 * (1.0 + abs(held.u).max())
    assert seen


SIDES = ("left", 1.0), ("right", -1.0)


@few_or_many
@robots
def test_controllers_on_all_subsets_of_contacts_give_the_single_call(name, states):
    case, limits = standing(name), hc.Limits(effort=standing(name).effort)
    ctl = hc.ComputedTorque(
        case.mech, 0.0, 0.0, limits=limits, contacts=case.contacts, partition=case.part,
        policy="nearest",
    )  # fmt: skip
    again, rest, acted = pickle.loads(pickle.dumps(ctl)), np.zeros(case.mech.nu), 0
    names = [one.name for one in case.contacts]
    subsets = [s for n in range(len(names) + 1) for s in itertools.combinations(names, n)]
    for i, (_, q, v, target, _, _) in enumerate(asked(name, states, seed=4)):
        active = subsets[-1 - i % len(subsets)]
        one = hc.contact_inverse_dynamics(
            case.mech, q, v, target, [c for c in case.contacts if c.name in active], limits,
            partition=case.part, policy="nearest",
        )  # fmt: skip
        acted += bool(one.saturated)
        home = case.mech.motor_positions(q)
        u = ctl.torque(q, v, home, rest, target, active=active)
        assert abs(u - one.u).max() < 1e-9 * (1.0 + abs(one.u).max())
        assert np.array_equal(u, again.torque(q, v, home, rest, target, active=active))
    assert acted


def test_what_is_not_a_list_of_names_is_not_a_flight():
    case = standing("quadruped")
    ctl = hc.ComputedTorque(case.mech, 0.0, 0.0, contacts=case.contacts, partition=case.part)
    q, v = hc.assemble(case.held)
    home, rest = case.mech.motor_positions(q), np.zeros(12)
    for active in 3, case.contacts[0], {"fl": False}, [["fl"]], [True, False], case.contacts, ["x"]:
        with pytest.raises(hc.InputError, match="active"):
            ctl.torque(q, v, home, rest, rest, active=active)
    for target in np.nan, np.inf, 1e200:
        with pytest.raises(hc.InputError, match="finite"):
            ctl.torque(q, v, home, rest, np.full(12, target))
    u = ctl.torque(q, v, home, rest, rest, active=("fl", "hr"))
    assert np.array_equal(u, ctl.torque(q, v, home, rest, rest, active={"hr": 1, "fl": 1}.keys()))


def test_a_contact_with_another_body_has_no_contact_with_the_world():
    for pad in standing("two_arms").contacts:
        with pytest.raises(hc.InputError, match="another frame"):
            _ = pad.bilateral


@pytest.mark.parametrize("turn", [(0.0, np.pi / 2, 0.0), (np.pi / 2, 0.0, 0.0), (0.3, 0.5, 0.7)])
def test_the_frame_of_a_foot_and_the_order_of_its_points_do_not_matter(turn):
    case, rng, acted = standing("biped"), np.random.default_rng(5), 0
    R, feet = pin.rpy.rpyToMatrix(*turn), []
    for foot in case.contacts:
        points = np.array(foot.points)[[3, 0, 2, 1, 0]] @ R  # one twice
        place = (foot.frame, pin.SE3(R, np.zeros(3)))
        feet.append(hc.UnilateralContact(place, points, friction=0.8, name=foot.name))
    for size in 1.0, 20.0:
        q, v = case.state(rng)
        target, limits = size * rng.normal(size=12), hc.Limits(effort=case.effort)
        found = case.solved(q, v, target, limits)
        other = hc.contact_inverse_dynamics(case.mech, q, v, target, feet, limits)
        acted += bool(found.saturated)
        # the pyramid turns with the foot, so that only what it does not limit is the same
        if not any("slides" in name for name in found.saturated + other.saturated):
            assert abs(other.u - found.u).max() < 1e-7 * (1.0 + abs(found.u).max())
            for name, f in found.forces.items():
                assert abs(other.forces[name].sum(axis=0) - f.sum(axis=0)).max() < 1e-5
        assert other.certificate.ok
    assert acted


@pytest.mark.parametrize(
    "points",
    [
        [(0.12, 0.05), (0.12, -0.05), (-0.08, 0.0)],
        [(0.12, 0.05), (0.12, -0.05), (-0.08, 0.05), (-0.08, -0.05), (0.14, 0.0)],
        [(x, y) for x in (2.0, -2.0) for y in (1e-3, -1e-3)],
        [(x, y) for x in (5e-4, -5e-4) for y in (5e-4, -5e-4)],
    ],
)
@pytest.mark.parametrize("friction", [1e-6, 0.6, 10.0])
def test_feet_of_other_shapes_keep_their_cones(points, friction):
    case = standing("biped")
    feet = [
        hc.UnilateralContact(
            one.frame, [(*xy, -0.05) for xy in points], friction=friction, facets=16,
            least=1.0, name=one.name,
        ) for one in case.contacts
    ]  # fmt: skip
    q, v = case.state(np.random.default_rng(2))
    found = hc.contact_inverse_dynamics(
        case.mech, q, v, np.full(12, 3.0), feet, hc.Limits(effort=200.0), partition=case.part
    )
    assert found.certificate.ok
    case.contacts, shown = feet, case.contacts
    try:
        broken = Program(case, q, v).broken(found, 200.0)
    finally:
        case.contacts = shown
    assert max(broken.values()) < 1e-8, broken
    assert min(f[:, 2].min() for f in found.forces.values()) > 1.0 - 1e-6
