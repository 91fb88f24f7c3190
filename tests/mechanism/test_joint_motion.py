"""Position and rate of any joint, cut ones too, whatever is cut."""

from __future__ import annotations

import itertools

import numpy as np
import pinocchio as pin
import pytest
from cut_loops import DOF, body_motions, close, closed_by, generic, motions, same_state
from linkages import add_lump, four_bar
from zoo import at

import holoctl as hc
from holoctl.rows.evaluate import constraint_rows


def value_difference(kind, one, two):
    if kind != "spherical":
        return two - one
    R1, R2 = (pin.Quaternion(x).matrix() for x in (one, two))
    return pin.log3(R1.T @ R2)


@pytest.mark.parametrize("outwards", [True, False], ids=["from ground", "to ground"])
@pytest.mark.parametrize("kind", DOF)
def test_a_cut_joint_shows_the_coordinates_it_was_built_with(kind, outwards):
    link, reference, shown = closed_by(kind, outwards)
    mech = link.mechanism(cut=["end"], reference=reference)
    error = constraint_rows(mech, mech.reference, np.zeros(mech.nv))[1].error
    assert np.abs(error).max() < 1e-12
    assert close(hc.joint_motion(mech, "end", mech.reference).value, shown, 1e-12)


@pytest.mark.parametrize("outwards", [True, False], ids=["from ground", "to ground"])
@pytest.mark.parametrize("kind", DOF)
def test_rates_are_derivatives_of_values(kind, outwards):
    link, reference, _ = closed_by(kind, outwards)
    for cut in ("end", "j1", "j2"):
        mech = link.mechanism(cut=[cut], reference={k: x for k, x in reference.items() if k != cut})
        q, v = hc.assemble(mech, v_guess=np.ones(mech.nv))
        v *= 1.0 / np.linalg.norm(v)
        h = 1e-5
        before, after = (pin.integrate(mech.model, q, s * h * v) for s in (-1.0, 1.0))
        for name in link.joints:
            now = hc.joint_motion(mech, name, q, v)
            one, two = (hc.joint_motion(mech, name, x).value for x in (before, after))
            assert close(now.rate, now.jacobian @ v, 1e-14)
            slope = value_difference(kind if name == "end" else "", one, two) / (2 * h)
            assert close(now.rate, slope, 1e-8), (name, cut)


@pytest.mark.parametrize("outwards", [True, False], ids=["from ground", "to ground"])
@pytest.mark.parametrize("kind", DOF)
def test_every_joint_shows_the_same_with_every_cut(kind, outwards):
    link, reference, _ = closed_by(kind, outwards)
    mech = link.mechanism(cut=["end"], reference=reference)
    q, v = hc.assemble(mech, v_guess=np.ones(mech.nv))
    shown = motions(mech, link.joints, q, v)
    assert max(np.abs(m.rate).max(initial=0.0) for m in shown.values()) > 0.1
    tau = {n: np.linspace(1.0, 2.0, m.rate.size) for n, m in shown.items()}
    a = hc.forward_dynamics(mech, q, v, sum(shown[n].jacobian.T @ tau[n] for n in shown)).a
    bodies = body_motions(mech, link, q, v, a)
    for cut in link.joints:
        other, x, w = same_state(mech, link, q, v, cut=[cut])
        there = motions(other, link.joints, x, w)
        for name in link.joints:
            one, two = shown[name].value, there[name].value
            if kind == "spherical" and name == "end" and one @ two < 0.0:
                two = -two  # the same rotation
            assert close(two, one, 1e-11), (name, cut)
            assert close(there[name].rate, shown[name].rate, 1e-9), (name, cut)
        b = hc.forward_dynamics(other, x, w, sum(there[n].jacobian.T @ tau[n] for n in there)).a
        assert close(body_motions(other, link, x, w, b), bodies, 1e-7), cut


@pytest.mark.parametrize(
    ("kind", "outwards"),
    [
        *itertools.product(["cylindrical", "universal", "planar"], [True, False]),
        ("spherical", True),
    ],
)
def test_motors_on_cut_joints_of_several_coordinates(kind, outwards):
    link, reference, _ = closed_by(kind, outwards)
    start = link.mechanism(cut=["end"], reference=reference)
    q0, v0 = hc.assemble(start, v_guess=np.ones(start.nv))
    mech, q, v = same_state(start, link, q0, v0, cut=["j1"], actuated=["end[0]", "end[1]"])
    u = hc.inverse_dynamics(mech, q, v, [0.3, -0.4]).u
    other, x, w = same_state(start, link, q0, v0, cut=["end"], actuated=["end[0]", "end[1]"])
    assert other.constraint_names == ("end.weld",)
    assert close(hc.inverse_dynamics(other, x, w, [0.3, -0.4]).u, u, 1e-8)


def test_a_free_joint_upside_down():
    """The tree reaches the child first: reference and joint_motion speak of the child still."""
    link = hc.Linkage("upside_down")
    add_lump(link, "a", 1.0)
    link.add_joint("base", "free", "a", "universe", at(0.1, 0.2, 0.3), at(0.3))
    X = pin.SE3(pin.exp3(np.array([0.3, -0.5, 0.9])), np.array([0.4, 0.5, -0.6]))
    mech = link.mechanism(reference={"base": pin.SE3ToXYZQUAT(X)})
    q, v = mech.reference, np.linspace(-1.0, 1.0, 6)
    shown = hc.joint_motion(mech, "base", q, v)
    assert close(shown.value, pin.SE3ToXYZQUAT(X), 1e-14)
    data = mech.model.createData()
    pin.framesForwardKinematics(mech.model, data, q)
    body = data.oMf[mech.model.getFrameId("a")]
    assert close((body * at(0.1, 0.2, 0.3) * X).homogeneous, at(0.3).homogeneous, 1e-14)
    h = 1e-5
    one, two = (
        pin.XYZQUATToSE3(hc.joint_motion(mech, "base", pin.integrate(mech.model, q, s * v)).value)
        for s in (-h, h)
    )
    assert close(pin.log6(one.actInv(two)).vector / (2 * h), shown.rate, 1e-8)


def test_joint_motion_of_other_models():
    mech = hc.load(hc.robot_file("stewart"))
    q, _ = hc.assemble(mech)
    v = np.arange(mech.nv) / 10.0
    i = mech.coordinate_names.index(mech.actuated[0])
    shown = hc.joint_motion(mech, mech.actuated[0], q, v)
    assert shown.rate == [v[i]]
    wheel = pin.Model()
    wheel.addJoint(0, pin.JointModelRUBZ(), pin.SE3.Identity(), "wheel")
    wheel.inertias[1] = pin.Inertia.FromSphere(1.0, 0.1)
    mech = hc.Mechanism(wheel)
    assert hc.joint_motion(mech, "wheel", [np.cos(2.0), np.sin(2.0)]).value == pytest.approx([2.0])


def test_the_quaternion_of_a_cut_joint_has_w_not_negative():
    link, _, _ = closed_by("spherical")
    mech = link.mechanism(cut=["end"])
    rng = np.random.default_rng(2)
    every = [hc.joint_motion(mech, "end", 3.0 * rng.normal(size=mech.nq)).value for _ in range(50)]
    assert min(xyzw[3] for xyzw in every) >= 0.0


def test_a_frame_that_happens_to_be_called_child():
    model = pin.Model()
    for kind, name in ((pin.JointModelSpherical(), "ball"), (pin.JointModelRZ(), "hinge")):
        above = model.njoints - 1
        model.addJoint(above, kind, pin.SE3.Identity(), name)
        model.inertias[above + 1] = pin.Inertia.FromSphere(1.0, 0.1)
        frame = pin.Frame(f"{name}.child", above + 1, 0, at(0.1), pin.FrameType.OP_FRAME)
        model.addFrame(frame)
    mech = hc.Mechanism(model)
    q, v = generic(mech)
    assert hc.joint_motion(mech, "ball", q, v).value.tolist() == q[:4].tolist()
    assert hc.joint_motion(mech, "ball", q, v).rate.tolist() == v[:3].tolist()
    assert hc.joint_motion(mech, "hinge", q, v).value.tolist() == q[4:].tolist()


def test_joint_motion_refuses():
    case = four_bar()
    mech = case.mechanism()
    q = mech.reference
    with pytest.raises(hc.InputError, match=r"no joint called 'pim' \(did you mean 'pin'\?\)"):
        hc.joint_motion(mech, "pim", q)
    with pytest.raises(hc.InputError, match="'motor'"):
        hc.joint_motion(mech, None, q)
    with pytest.raises(hc.InputError, match="no joint called 'universe'"):
        hc.joint_motion(mech, "universe", q)
    with pytest.raises(hc.InputError, match="shape"):
        hc.joint_motion(mech, "pin", q[:2])
    with pytest.raises(hc.InputError, match="finite"):
        hc.joint_motion(mech, "pin", q, [np.nan, 0, 0])
    with pytest.raises(hc.InputError, match="Mechanism"):
        hc.joint_motion(mech.model, "pin", q)
