"""Mechanisms that are written are read again: by MuJoCo to the same numbers, by us to the same."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from support import relative
from zoo import at, lump

import holoctl as hc

mujoco = pytest.importorskip(
    "mujoco", minversion="4.0", reason="MuJoCo 4 is missing: pip install 'holoctl[mjcf]'"
)

from compare_mujoco import (  # noqa: E402
    compared,
    equality_jacobian,
    full_inertia,
    model_of,
    ours,
    velocity_map,
)


def with_all_parts():
    """Trees with each joint, closure, force and motor that an MJCF has."""
    rng, model = np.random.default_rng(5), pin.Model()
    model.name, model.gravity.linear = "parts", np.array([0.3, -0.4, -9.0])
    R = pin.exp3(np.array([0.3, -0.5, 0.4]))

    def add(parent, joint, name):
        place = at(*rng.uniform(-0.3, 0.3, 3), R=R) if name != "free" else pin.SE3.Identity()
        j = model.addJoint(parent, joint, place, name)
        if name != "light":
            model.appendBodyToJoint(j, lump(rng), pin.SE3.Identity())
        return j

    arm = add(0, pin.JointModelRX(), "arm")
    light = add(arm, pin.JointModelRevoluteUnaligned(0.6, 0.0, 0.8), "light")
    ball = add(light, pin.JointModelSpherical(), "ball")
    add(ball, pin.JointModelPZ(), "slide")
    first = add(0, pin.JointModelRY(), "first")
    second = add(first, pin.JointModelRZ(), "second")
    free = add(0, pin.JointModelFreeFlyer(), "free")
    model.inertias[second] = pin.Inertia(0.7, np.array([0.0, 0.0, 0.2]), np.diag([0.02, 0.02, 0.0]))
    armature = np.zeros(model.nv)
    armature[[0, 5]] = 0.01, 0.2
    armature[2:5] = 0.003
    model.armature = armature
    model.addFrame(pin.Frame("tip", second, 0, at(0.1, 0.2, 0.3, R=R), pin.FrameType.OP_FRAME))
    model.upperPositionLimit[0], model.lowerPositionLimit[0] = 2.5, -1.5
    reference = pin.neutral(model)
    reference[model.idx_qs[ball] : model.idx_qs[ball] + 4] = [0.1, 0.7, 0.1, 0.7]
    reference[model.idx_qs[free] :] = [1.0, 2.0, 3.0, 0.6, 0.0, 0.8, 0.0]
    constraints = [
        hc.Rod(("slide", at(0.2, 0.1, 0.0)), "tip", length=0.7, name="rod"),
        hc.Closure(
            ("free", at(0.1, 0.0, 0.0, R=R)), ("first", at(0.0, 0.3, 0.0)), "weld", name="w"
        ),
        hc.Coupling({"arm": 1.0, "first": -0.5}, offset=0.2, name="gear"),
        hc.Coupling({"arm": 2.0, "slide": 3.0, "second": -1.5}, offset=-0.1, name="sum"),
        hc.Coupling({"light": 1.0}, offset=0.4, name="held"),
        hc.Closure("tip", ("slide", at(0.1, 0.1, 0.1)), "spherical", name="off"),
    ]
    B = np.zeros((model.nv, 3))
    B[0, 0], B[2:5, 1], B[[5, 6], 2] = 3.0, [0.1, 0.2, -0.3], [1.0, -2.0]
    forces = [
        hc.JointFriction(viscous=0.2, coulomb={"arm": 0.3}),
        hc.JointSpring("first", 4.0, rest=0.3, damping=0.1, name="one"),
        hc.JointSpring("first", 2.0, rest=-0.6, name="two"),
        hc.JointSpring("ball", 1.5),
        hc.Spring("tip", ("universe", at(0.5, 0.0, 0.0)), 30.0, 0.2, damping=0.4, name="s"),
        hc.Spring(("slide", at(0.3, 0.0, 0.0)), "tip", 40.0, 0.1, unilateral=True, name="rope"),
    ]
    mech = hc.Mechanism(
        model, constraints, actuation=B, reference=reference, forces=forces,
        limits=hc.Limits(effort=[2.0, (-1.0, 5.0), np.inf], position={"arm": (-1.0, 2.0)}),
    )  # fmt: skip
    return mech.with_enabled(off=False)


@cache
def shipped(name):
    return hc.load(hc.robot_file(name))


def closed_state(mech, seed):
    rng = np.random.default_rng(seed)
    q = mech.reference + 0.1 * rng.normal(size=mech.nq)
    return hc.assemble(mech, q, rng.normal(size=mech.nv))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder, found = tmp_path_factory.mktemp("mjcf"), {}

    def get(name):
        if name not in found:
            mech = shipped(name) if name != "parts" else with_all_parts()
            path = hc.save(mech, folder / f"{name}.xml")
            found[name] = mech, path, hc.load(path, losses=True)
        return found[name]

    return get


NAMES = [*hc.robot_names(), "parts"]


@pytest.mark.parametrize("name", NAMES)
def test_the_numbers_of_mujoco_are_ours(name, saved):
    """Also off the manifold; hinges and rods, whose rows differ there, are compared below."""
    mech, path, _ = saved(name)
    mujoco.MjModel.from_xml_path(str(path))  # as it is
    others = [
        c.default_name
        for c in mech.constraints
        if isinstance(c, hc.Rod) or getattr(c, "joint", None) == "revolute"
    ]
    model = model_of(mujoco, path)
    for i in range(model.neq):
        if model.equality(i).name.removesuffix(", axis") in others:
            model.eq_active0[i] = False
    found = compared(mujoco, model, mech.without(*others))
    assert max(found.values()) < 1e-12, found


def test_a_tendon_of_constant_length_is_a_rod(saved):
    mech, path, _ = saved("parts")
    model = model_of(mujoco, path)
    kinds, data = model.jnt_type.tolist(), mujoco.MjData(model)
    mujoco.mj_integratePos(model, data.qpos, np.linspace(-0.5, 0.4, model.nv), 1.0)
    mujoco.mj_fwdPosition(model, data)
    q = ours(mech.model, kinds, model.qpos0, data.qpos)
    rows = hc.terms(mech, q, np.zeros(mech.nv)).of("rod")
    which = data.efc_id == model.equality("rod").id
    which &= data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    length = 0.7
    far = length + float(data.efc_pos[which][0])
    assert abs(far - length) > 0.01
    assert (far**2 - length**2) / (2 * length) == pytest.approx(rows.error[0], rel=1e-12)
    theirs = equality_jacobian(mujoco, model, data)[which] @ velocity_map(mech.model, kinds, q)
    np.testing.assert_allclose(theirs * far / length, rows.jacobian, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["five_bar", "four_bar", "leg"])
def test_two_points_on_its_axis_are_a_hinge(name, saved):
    mech, path, _ = saved(name)
    model = model_of(mujoco, path)
    kinds, data = model.jnt_type.tolist(), mujoco.MjData(model)
    for q, v in (closed_state(mech, seed) for seed in range(3)):
        data.qpos[:] = q
        data.qvel[:] = v
        mujoco.mj_fwdPosition(model, data)
        np.testing.assert_array_equal(ours(mech.model, kinds, model.qpos0, data.qpos), q)
        T = velocity_map(mech.model, kinds, q)
        rows = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        theirs = equality_jacobian(mujoco, model, data)[rows] @ T
        G = hc.terms(mech, q, v).jacobian
        rank = np.linalg.matrix_rank(G, 1e-9)
        assert np.linalg.matrix_rank(theirs, 1e-9) == rank > 1
        assert np.linalg.matrix_rank(np.vstack([G, theirs]), 1e-9) == rank
        assert np.abs(data.efc_pos[rows]).max() < 1e-9
        assert relative(full_inertia(mujoco, model, data), hc.terms(mech, q, v).M) < 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_read_to_the_same_mechanism(name, saved):
    mech, _, back = saved(name)
    assert back.name == mech.name
    assert back.constraint_names == mech.constraint_names
    assert back.row_names == mech.row_names
    assert back.coordinate_names == mech.coordinate_names
    assert [c.default_name for _, c in back.parked] == [c.default_name for _, c in mech.parked]
    np.testing.assert_allclose(back.reference, mech.reference, rtol=0, atol=1e-15)
    np.testing.assert_allclose(back.B, mech.B, rtol=1e-15, atol=0)
    here, there = hc.limits_of(mech), hc.limits_of(back)
    assert there.position == here.position
    if mech.actuation is None:
        assert (back.actuated, there.effort) == (mech.actuated, here.effort)
    for frame in mech.model.frames:
        other = back.model.frames[back.model.getFrameId(frame.name)]
        if frame.type == pin.FrameType.OP_FRAME:
            assert other.placement.isApprox(frame.placement, 1e-12)
    rng = np.random.default_rng(0)
    v = rng.normal(size=mech.nv)
    one, two = hc.terms(mech, mech.reference, v), hc.terms(back, mech.reference, v)
    for what in ("M", "h", "jacobian", "drift", "error"):
        assert relative(getattr(two, what), getattr(one, what)) < 1e-12, what


def test_forces_act_alike(saved):
    mech, path, back = saved("parts")
    rng, model = np.random.default_rng(2), model_of(mujoco, path)
    kinds, data = model.jnt_type.tolist(), mujoco.MjData(model)
    dry = mech.forces[0]
    smooth = dataclasses.replace(
        mech, forces=(dataclasses.replace(dry, coulomb=0.0), *mech.forces[1:])
    )
    for _ in range(3):
        mujoco.mj_integratePos(model, data.qpos, rng.uniform(-0.5, 0.5, model.nv), 1.0)
        data.qvel[:] = rng.uniform(-1.0, 1.0, model.nv)
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        q = ours(mech.model, kinds, model.qpos0, data.qpos)
        T = velocity_map(mech.model, kinds, q)
        v = np.linalg.solve(T, data.qvel)
        F = hc.terms(smooth, q, v).F
        assert np.abs(F).max() > 1.0
        np.testing.assert_allclose(T.T @ data.qfrc_passive, F, rtol=1e-9, atol=1e-9)
    assert model.dof_frictionloss[0] == 0.3
    assert {f.coulomb["arm"] for f in back.forces if isinstance(f, hc.JointFriction)} == {0.3}


def test_what_mjcf_does_not_have_is_refused_by_name(tmp_path):
    mech = hc.load(hc.robot_file("five_bar"))
    path = tmp_path / "robot.xml"
    wave = hc.Custom(lambda q: q[:1] + q[2:3] - 3.0, name="wave")
    for part, words in (
        (mech.with_constraints(hc.Closure("tip_left", "tip_right", axes="x", name="line")),
         r"'line' .Closure, x.: in a planar loop joint='revolute' .*; else cut this loop at"),
        (mech.with_constraints(hc.Closure("tip_left", "tip_right", "planar", name="flat")),
         r"constraint 'flat' .Closure, planar"),
        (mech.with_constraints(hc.Contact("tip_right", tangents=False)), "'tip_right' .Contact"),
        (mech.with_constraints(wave), "'wave' .Custom"),
        (mech.with_forces([hc.JointFriction(coulomb=0.1, stribeck=(0.2, 0.1))]), "Stribeck"),
        (mech.with_forces([hc.Counterbalance("tip_right", 0.1, name="carry")]), "force 'carry'"),
        (mech.with_forces([hc.JointFriction(viscous={"tip_hinge": 0.1})]), "not a joint of the"),
    ):  # fmt: skip
        with pytest.raises(hc.InputError, match=words):
            hc.save(part, path)
    with pytest.raises(hc.InputError, match=r"end with .xml or .mjcf or .urdf"):
        hc.save(mech, tmp_path / "robot.sdf")
    with pytest.raises(hc.InputError, match="no folder"):
        hc.save(mech, tmp_path / "none" / "robot.xml")
    model = pin.Model()
    model.addJoint(0, pin.JointModelRX(), pin.SE3.Identity(), "arm")
    model.addJoint(1, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "loose")
    with pytest.raises(hc.InputError, match="'loose' is free and hangs on 'arm'"):
        hc.save(hc.Mechanism(model), path)
    assert not path.exists()


def test_urdf_and_its_sheet_are_read_to_the_same_mechanism(tmp_path):
    mech = shipped("stewart")
    back = hc.load(hc.save(mech, tmp_path / "robot.urdf"))
    assert (back.row_names, back.actuated) == (mech.row_names, mech.actuated)
    q, v = hc.assemble(mech, None, np.ones(mech.nv))
    assert relative(hc.terms(back, q, v).h, hc.terms(mech, q, v).h) < 1e-12


def test_loops_are_written_as_the_element_that_is_proposed_for_urdf(tmp_path):
    rng, model = np.random.default_rng(2), pin.Model()
    kinds = ["revolute", "prismatic", "universal", "spherical", "weld", "planar", "cylindrical"]
    for i in range(8):
        joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), f"j{i}")
        model.appendBodyToJoint(joint, lump(rng), pin.SE3.Identity())
        model.addFrame(pin.Frame(f"f{i}", joint, 0, at(*rng.normal(size=3), R=pin.exp3(
            rng.normal(size=3))), pin.FrameType.OP_FRAME))  # fmt: skip
    closures = [
        hc.Closure(
            f"f{i}",
            (f"j{i + 1}", at(*rng.normal(size=3), R=pin.exp3(rng.normal(size=3)))),
            kind,
            name=f"{kind} loop",
        )
        for i, kind in enumerate(kinds)
    ]
    mech = hc.Mechanism(model, closures, [])
    path = hc.save(mech, tmp_path / "loops.urdf", loops="constraint")
    text = path.read_text()
    assert text.count("<constraint ") == 5
    assert '<constraint name="weld loop" type="link">' in text
    assert path.with_suffix(".yaml").read_text().count("loop_b") == 2
    for suffix in ("", "_joint"):  # both are words of the proposed parser
        path.write_text(text.replace('type="universal"', f'type="universal{suffix}"'))
        back = hc.load(path)
        assert sorted(back.constraint_names) == sorted(mech.constraint_names)
        q = pin.randomConfiguration(model, -np.ones(model.nq), np.ones(model.nq))
        order = [back.model.getJointId(f"j{i}") for i in range(8)]
        theirs = np.concatenate([q[7 * (i - 1) : 7 * i] for i in range(1, 9)])
        assert order == list(range(1, 9))
        for x in mech.constraint_names:
            one, other = (hc.joint_motion(m, x, theirs) for m in (mech, back))
            assert np.abs(one.jacobian - other.jacobian).max(initial=0.0) < 1e-12
            assert np.abs(one.value - other.value).max(initial=0.0) < 1e-12
        rows = [
            dict(zip(m.row_names, hc.terms(m, theirs, np.zeros(48)).jacobian, strict=True))
            for m in (mech, back)
        ]
        assert rows[0].keys() == rows[1].keys()
        for x, row in rows[0].items():
            assert np.abs(row - rows[1][x]).max() < 1e-12
            assert np.abs(row).max() > 1e-3
    with pytest.raises(hc.InputError, match="loops must be one of 'yaml', 'constraint'"):
        hc.save(mech, path, loops="loop")
    with pytest.raises(hc.InputError, match="an MJCF has its equalities"):
        hc.save(mech, tmp_path / "loops.xml", loops="constraint")


def test_a_free_joint_is_written_where_it_is_in_the_world(tmp_path):
    rng, model = np.random.default_rng(0), pin.Model()
    placed = at(1.0, 2.0, 3.0, R=pin.exp3(np.ones(3)))
    free = model.addJoint(0, pin.JointModelFreeFlyer(), placed, "f")
    model.appendBodyToJoint(free, lump(rng), pin.SE3.Identity())
    wheel = model.addJoint(free, pin.JointModelRUBZ(), at(0.1), "wheel")
    model.appendBodyToJoint(wheel, lump(rng), pin.SE3.Identity())
    q = pin.integrate(model, pin.neutral(model), rng.normal(size=model.nv))
    mech = hc.Mechanism(model, actuated=["wheel"], reference=q)
    back = hc.load(hc.save(mech, tmp_path / "free.xml"))
    assert (back.nq, back.nv) == (mech.nq - 1, mech.nv)  # a hinge counts its turns
    v = rng.normal(size=mech.nv)
    here, there = (hc.terms(m, m.reference, v) for m in (mech, back))
    assert there.kinematics.placements[wheel].isApprox(here.kinematics.placements[wheel], 1e-12)
    for what in ("M", "h"):
        assert relative(getattr(there, what), getattr(here, what)) < 1e-12, what
