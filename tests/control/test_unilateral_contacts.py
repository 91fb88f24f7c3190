"""Contacts that only push: efforts, forces and verdicts beside independent ones."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from scipy.optimize import linprog
from standing import NAMES, rotation, sole, standing
from zoo import add_body, at

import holoctl as hc

INFINITE = float("inf")


def point_rows(mech, contacts, q, v):
    """Jacobians and drifts of all points by Pinocchio, world axes, with the contact of each."""
    data = mech.model.createData()
    pin.forwardKinematics(mech.model, data, q, v, np.zeros(mech.nv))
    pin.computeJointJacobians(mech.model, data, q)
    for contact in contacts:
        frame = hc.protocols.resolve_frame(mech.model, contact.frame, "test")
        for point in contact.points:
            place = frame.placement * pin.SE3(np.eye(3), np.array(point))
            world = pin.LOCAL_WORLD_ALIGNED
            J = pin.getFrameJacobian(mech.model, data, frame.joint, place, world)[:3]
            X = data.oMi[frame.joint] * place
            motion = place.actInv(data.v[frame.joint]), place.actInv(data.a[frame.joint])
            turned = np.cross(motion[0].angular, motion[0].linear)
            yield contact, J, X.rotation @ (motion[1].linear + turned)


def facets(contact):
    """The cone of a point on its force in world axes, ``A f <= b``, written down once more."""
    n = np.array(contact.normal)
    t = np.linalg.svd(n[None])[2][1:]
    # the pyramid depends on the tangents, which are documented as those of a Contact
    t = np.array(hc.Contact("x", contact.normal).tangents) if t.size else t
    inside = contact.friction * np.cos(np.pi / contact.facets)
    angles = 2 * np.pi * np.arange(contact.facets) / contact.facets
    rows = [np.cos(x) * t[0] + np.sin(x) * t[1] - inside * n for x in angles]
    rows, bound = [*rows, -n], [*np.zeros(len(rows)), -contact.least]
    if contact.most < INFINITE:
        rows, bound = [*rows, n], [*bound, contact.most]
    return np.array(rows), np.array(bound)


def feasible(case, q, v, limits, f_ext):
    """Whether some ydd, u and forces satisfy everything: by linprog, from public terms."""
    mech, P = case.mech, hc.project(case.mech, q, v, partition=case.part)
    M, h, gamma, bias, known = P.terms.M, P.terms.h, P.gamma, P.bias, P.terms.known_efforts(f_ext)
    points = list(point_rows(mech, case.contacts, q, v))
    J, drift = np.concatenate([x[1] for x in points]), np.concatenate([x[2] for x in points])
    k, nu, m = P.k, mech.nu, len(drift)
    equal = np.block([
        [gamma.T @ M @ gamma, -gamma.T @ mech.B, -gamma.T @ J.T],
        [J @ gamma, np.zeros((m, nu + m))],
    ])  # fmt: skip
    right = np.concatenate([-gamma.T @ (M @ bias + h - known), -drift - J @ bias])
    rows, bound = [], []
    for i, (contact, _, _) in enumerate(points):
        A, b = facets(contact)
        rows.append(
            np.hstack([np.zeros((len(b), k + nu + 3 * i)), A, np.zeros((len(b), m - 3 * i - 3))])
        )
        bound.append(b)
    size = limits.effort
    box = [(None, None)] * k + [(-size, size)] * nu + [(None, None)] * m
    found = linprog(np.zeros(k + nu + m), np.concatenate(rows), np.concatenate(bound), equal, right,
                    bounds=box, method="highs")  # fmt: skip
    assert found.status in (0, 2)
    return found.status == 0


@pytest.mark.parametrize("states", [8, pytest.param(80, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
def test_forces_stay_in_their_cones_and_cause_the_motion(name, states):
    case, rng, seen = standing(name), np.random.default_rng(8), set()
    for i in range(states):
        q, v = case.state(rng)
        size = (0.1, 1.0, 5.0, 30.0)[i % 4]
        target = size * rng.normal(size=case.mech.nu)
        limits = hc.Limits(effort=case.effort) if i % 3 else None
        try:
            found = case.solved(q, v, target, limits)
        except hc.LimitError:
            continue
        assert found.certificate.ok, found.certificate
        seen |= {x.partition(".")[2] for x in found.saturated} if found.saturated else {"free"}
        f_ext = {}
        for contact in case.contacts:
            f, n = found.forces[contact.default_name], np.array(contact.normal)
            pushed = f @ n
            sideways = np.linalg.norm(f - np.outer(pushed, n), axis=1)
            assert (pushed >= contact.least - 1e-6).all()
            assert (sideways <= contact.friction * pushed + 1e-6).all()
            base = hc.protocols.resolve_frame(case.mech.model, contact.frame, "test")
            place = np.array([base.placement.translation + p for p in contact.points])
            moment = np.cross(place, f @ rotation(case.mech, base.joint, q)).sum(axis=0)
            turned = rotation(case.mech, base.joint, q) @ moment
            f_ext[case.mech.model.names[base.joint]] = (f.sum(axis=0), turned)
        if limits:
            assert abs(found.u).max() <= case.effort
        caused = hc.forward_dynamics(case.mech, q, v, u=found.u, f_ext=f_ext, partition=case.part).a
        assert abs(caused - found.a).max() < 1e-7 * (1.0 + abs(found.a).max())
        for _, J, drift in point_rows(case.mech, case.contacts, q, v):
            assert abs(J @ found.a + drift).max() < 1e-9 * (1.0 + abs(found.a).max())
    assert len(seen) > 1


@pytest.mark.parametrize("name", NAMES)
def test_inactive_cones_change_nothing(name):
    case, rng, seen = standing(name), np.random.default_rng(3), 0
    for _ in range(4):
        q, v = case.state(rng, speed=0.02, away=0.02)
        target = 0.02 * rng.normal(size=case.mech.nu)
        down = {c.frame: (0.0, 0.0, -2000.0, 0.0, 0.0, 0.0) for c in case.contacts}
        found = case.solved(q, v, target, f_ext=down)
        if found.saturated:
            continue
        seen += 1
        held = hc.inverse_dynamics(
            case.held, q, v, target, f_ext=down, partition=case.held_part, inconsistent="project"
        )
        assert abs(found.a - held.a).max() < 1e-10
        assert abs(found.u - held.u).max() < 1e-10 * (1.0 + abs(held.u).max())
    assert seen > 1


@pytest.mark.parametrize("states", [4, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
def test_verdicts_are_those_of_linprog(name, states):
    case, rng, verdicts = standing(name), np.random.default_rng(5), []
    for i in range(states):
        q, v = case.state(rng)
        limits = hc.Limits(effort=case.effort * (0.05, 0.2, 0.6, 1.0)[i % 4])
        frame = case.contacts[-1].frame
        pull = {frame: (*(60.0 * rng.normal(size=2)), 300.0 * rng.uniform(), 0.0, 0.0, 0.0)}
        try:
            found = case.solved(q, v, np.zeros(case.mech.nu), limits, f_ext=pull)
            verdicts.append(True)
        except hc.LimitError:
            verdicts.append(False)
        else:
            assert found.certificate.ok
        assert verdicts[-1] == feasible(case, q, v, limits, pull)
    assert len(set(verdicts)) == 2


@pytest.mark.parametrize("name", NAMES)
def test_the_cost_is_that_of_clarabel(name):
    case, rng, acted = standing(name), np.random.default_rng(6), 0
    for _ in range(2):
        q, v = case.state(rng)
        target, limits = 30.0 * rng.normal(size=case.mech.nu), hc.Limits(effort=case.effort)
        costs = []
        for solver in "daqp", "cvxpy":
            found = case.solved(q, v, target, limits, solver=solver)
            acted += bool(found.saturated)
            costs.append(float(((case.mech.B.T @ found.a - target) ** 2).sum()))
        assert abs(costs[0] - costs[1]) <= 1e-6 * (1.0 + costs[1])
    assert acted > 2


def test_where_some_forces_cause_the_motion_it_is_kept():
    case, rng, seen = standing("sole"), np.random.default_rng(12), 0
    for _ in range(20):
        q, v = case.state(rng, speed=0.02, away=0.02)
        target, press = 0.1 * rng.normal(size=4), 400.0 * rng.uniform()
        x, y = (0.25, 0.1) * rng.normal(size=2)
        down = {"ankle": (0.0, 0.0, -press, y * press, -x * press, 0.0)}
        found = case.solved(q, v, target, f_ext=down)
        held = hc.inverse_dynamics(
            case.held, q, v, target, f_ext=down, partition=case.held_part, inconsistent="project"
        )
        pulls = held.multipliers[::3].min() < -1e-3
        if found.saturated == () and pulls:
            seen += 1
            assert found.certificate.ok
            assert abs(found.a - held.a).max() < 1e-10
            assert abs(found.u - held.u).max() < 1e-10 * (1.0 + abs(held.u).max())
    assert seen


def test_what_an_infeasibility_does_not_name_does_not_matter():
    case, rng, seen = standing("biped"), np.random.default_rng(5), 0
    for _ in range(6):
        q, v = case.state(rng)
        pull = {"foot_right": (60.0, 0.0, 300.0 * rng.uniform(), 0.0, 0.0, 0.0)}

        def names(bounds, pull=pull, q=q, v=v):
            try:
                case.solved(q, v, np.zeros(case.mech.nu), hc.Limits(effort=bounds), f_ext=pull)
            except hc.LimitError as error:
                return error.names

        told = names(0.05 * case.effort)
        if told is None:
            continue
        seen += 1
        motors = {name: 0.05 * case.effort for name in told if "." not in name}
        assert 0 < len(motors) < case.mech.nu
        assert any("." in name for name in told)
        assert names(motors) is not None
    assert seen > 2


# --------------------------------------------------------------------------------- on a slope


def block(slope, friction, half_width=0.1, height=0.5):
    """A block with a motor inside that turns next to nothing, on a slope about the y axis."""
    m = pin.Model()
    inertia = pin.Inertia.FromBox(4.0, 0.2, 0.2, 1.0)
    add_body(m, 0, pin.JointModelFreeFlyer(), at(), "block", inertia)
    add_body(m, "block", pin.JointModelRX(), at(), "wheel", pin.Inertia.FromSphere(1e-3, 0.01))
    corners = [(x, y, -height) for x in (half_width, -half_width) for y in (0.1, -0.1)]
    normal = np.sin(slope), 0.0, np.cos(slope)
    turned = pin.Quaternion(pin.rpy.rpyToMatrix(0.0, slope, 0.0)).coeffs()
    q = np.array([0.0, 0.0, 1.0, *turned, 0.0])
    foot = hc.UnilateralContact("block", corners, normal, friction, name="base")
    return hc.Mechanism(m, [], ["wheel"], reference=q, name="block"), q, foot


def stands(slope, friction, **sizes):
    mech, q, foot = block(slope, friction, **sizes)
    try:
        return hc.contact_inverse_dynamics(mech, q, np.zeros(7), [0.0], foot)
    except hc.LimitError as error:
        return error


def test_a_block_slides_where_friction_ends():
    edge = np.arctan(0.6 * np.cos(np.pi / 4))  # the slope is across a face of the pyramid
    held = stands(edge * 0.999, 0.6, height=0.05)
    total = held.forces["base"].sum(axis=0)
    assert total == pytest.approx([0.0, 0.0, 4.001 * 9.81], abs=1e-9)
    error = stands(edge * 1.001, 0.6, height=0.05)
    assert isinstance(error, hc.LimitError)
    assert error.names == ("base.slides",)


def test_a_block_tips_where_its_weight_leaves_the_base():
    edge = np.arctan(0.1 / 0.5)
    assert stands(edge * 0.999, 2.0).certificate.ok
    error = stands(edge * 1.001, 2.0)
    assert isinstance(error, hc.LimitError)
    assert error.names == ("base.tips",)
    assert "pull" in str(error)


# ---------------------------------------------------------------------------- tasks and cases


def test_tasks_are_met_where_the_ground_allows():
    case = standing("biped")
    q, v = case.state(np.random.default_rng(2), speed=0.0, away=0.02)
    rises = [0.0, 0.0, 0.5]
    tasks = [(hc.CenterOfMassTask(), rises, 1.0), (hc.PostureTask(), np.zeros(12), 1e-6)]
    found = case.solved(q, v, tasks)
    P = hc.project(case.mech, q, v, partition=case.part)
    com = hc.CenterOfMassTask().bind(case.mech).at(P.kinematics)
    assert found.certificate.ok
    assert com.jacobian @ found.a + com.drift == pytest.approx(rises, abs=1e-3)
    mass = pin.computeTotalMass(case.mech.model)
    ground = sum(f.sum(axis=0) for f in found.forces.values())
    assert ground[2] == pytest.approx(mass * (9.81 + 0.5), rel=1e-3)
    jump = case.solved(q, v, [(hc.CenterOfMassTask(), [0.0, 0.0, -30.0])])
    assert jump.certificate.ok
    assert {"left.lifts", "right.lifts"} <= set(jump.saturated)


def test_in_flight_it_is_inverse_dynamics():
    case = standing("leg")
    q, v = case.state(np.random.default_rng(2))
    target = [1.0, -2.0, 0.5, 3.0]
    found = hc.contact_inverse_dynamics(case.mech, q, v, target, [])
    assert found.forces == {}
    assert found.saturated == ()
    free = hc.inverse_dynamics(case.mech, q, v, target)
    assert abs(free.u).max() > 0.01
    assert abs(found.u - free.u).max() < 1e-10
    assert abs(found.a - free.a).max() < 1e-9


def test_without_friction_points_slide_freely():
    mech = hc.load(hc.robot_file("five_bar"))
    q, v = hc.assemble(mech)
    table = hc.UnilateralContact("tip_right", friction=0.0, name="table")
    held = mech.with_constraints(*table.bilateral)
    assert [len(rows.labels) for rows in held.bound][-1] == 1
    found = hc.contact_inverse_dynamics(mech, q, v, [3.0, 3.0], table)
    assert found.certificate.ok
    assert found.forces["table"][0, :2] == pytest.approx([0.0, 0.0])


def test_bounds_of_normal_forces_act():
    case = standing("leg")
    q, v = case.state(np.random.default_rng(1), speed=0.0, away=0.02)
    foot = sole("sole", z=0.0, least=5.0, most=60.0)
    found = hc.contact_inverse_dynamics(case.mech, q, v, [0.0, 3.0, -3.0, 0.0], foot)
    assert found.certificate.ok
    pushed = found.forces["foot"][:, 2]
    assert pushed.min() >= 5.0 - 1e-6
    assert pushed.max() <= 60.0 + 1e-6


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"friction": -0.1}, "friction must not be negative"),
        ({"friction": float("nan")}, "friction"),
        ({"normal": (0, 0, 0)}, "normal must have a direction"),
        ({"points": []}, "points"),
        ({"points": [(1, 2)]}, "points"),
        ({"points": [(1, 2, float("inf"))]}, "points"),
        ({"facets": 2}, "facets must be a whole number, 3 or more"),
        ({"least": -1.0}, "least"),
        ({"name": 3}, "name"),
        ({"name": ""}, "name"),
        ({"least": 5.0, "most": 2.0}, "least"),
    ],
)
def test_bad_contacts_are_refused(given, told):
    with pytest.raises(hc.InputError, match=told):
        hc.UnilateralContact("sole", **given)


def test_bad_requests_are_refused():
    case = standing("leg")
    q, v = case.state(np.random.default_rng(1))

    def asked(contacts=case.contacts, target=(0.0, 0.0, 0.0, 0.0), **options):
        return hc.contact_inverse_dynamics(case.mech, q, v, target, contacts, **options)

    foot = case.contacts[0]
    for contacts, told in [
        (hc.UnilateralContact("sloe"), "did you mean 'sole'"),
        (hc.UnilateralContact("universe"), "fixed to the world"),
        ([foot, foot], "different names"),
        ("sole", "list of hc.UnilateralContact"),
        (hc.Contact("sole"), "list of hc.UnilateralContact"),
    ]:
        with pytest.raises(hc.InputError, match=told):
            asked(contacts)
    for target in [0.0], [(hc.PostureTask(),)], [(hc.PostureTask(), [0.0] * 4, 0.0)], [(1, [0.0])]:
        with pytest.raises(hc.InputError):
            asked(target=target)
    with pytest.raises(hc.InputError, match="dt"):
        asked(dt=0.0)
    with pytest.raises(hc.InputError, match="solver"):
        asked(solver="other")
    assert asked(limits="model").certificate.ok


def test_a_motion_without_inertia_is_refused():
    mech, q, foot = block(0.0, 0.6)
    model = mech.model.copy()
    model.inertias[2] = pin.Inertia.Zero()
    with pytest.raises(hc.SingularityError, match="no inertia"):
        hc.contact_inverse_dynamics(mech.with_model(model), q, np.zeros(7), [0.0], foot)


def test_a_state_that_leaves_the_ground_is_not_certified():
    case = standing("leg")
    q, v = case.state(np.random.default_rng(1))
    rising = v + np.eye(case.mech.nv)[2]
    found = hc.contact_inverse_dynamics(case.mech, q, rising, np.zeros(4), case.contacts)
    assert "contact_velocity" in found.certificate.failures
    with pytest.raises(hc.InconsistentError, match="contact_velocity"):
        found.raise_if_bad()
