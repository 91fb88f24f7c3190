"""Friction and springs of a joint do the same whether it stands in the tree or closes a loop."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from cut_loops import DOF, body_motions, closed_by, generic, same_state
from linkages import add_lump, four_bar

import holoctl as hc


def forces_on(link, mech, kind):
    """Friction in every joint by its name, and springs on all that take one."""
    joints = [n for n in link.joints if hc.joint_motion(mech, n, mech.reference).rate.size]
    every = dict.fromkeys(joints, 0.4)
    forces = [hc.JointFriction(every, every, dict.fromkeys(joints, (0.6, 0.5)), 0.3)]
    for n in joints:
        if n != "end" or DOF[kind] == 1:
            forces.append(hc.JointSpring(n, 3.0, 0.2, 0.1))
        elif kind == "spherical":
            forces.append(hc.JointSpring(n, 3.0, (0.2, -0.1, 0.3), 0.1))
        else:
            forces += [hc.JointSpring(f"{n}[{i}]", 3.0, 0.2, 0.1) for i in range(DOF[kind])]
    return forces


@pytest.mark.parametrize("outwards", [True, False], ids=["from ground", "to ground"])
@pytest.mark.parametrize("kind", [k for k in DOF if DOF[k]])
def test_whatever_is_cut(kind, outwards):
    link, reference, _ = closed_by(kind, outwards)
    whole = link.mechanism(cut=["end"], reference=reference)
    q, v = hc.assemble(whole, v_guess=np.ones(whole.nv))
    v *= 1.0 / np.linalg.norm(v)
    forces = forces_on(link, whole, kind)
    found, power, stored = [], [], []
    for cut in ("end", "j1", "j2"):
        mech, q_here, v_here = same_state(whole, link, q, v, cut=[cut])
        mech = mech.with_forces(forces)
        T = hc.terms(mech, q_here, v_here)
        a = hc.forward_dynamics(mech, q_here, v_here, np.zeros(mech.nv)).a
        found.append(body_motions(mech, link, q_here, v_here, a))
        power.append(T.F @ v_here)
        stored.append(hc.energy(mech, q_here, v_here).springs)
    assert min(stored) > 1e-2
    assert max(power) < -1e-3 or min(np.abs(power)) > 1e-3
    size = 1.0 + np.abs(found[0]).max()
    for other in found[1:]:
        assert np.abs(other - found[0]).max() < 1e-10 * size
    assert np.ptp(power) < 1e-11
    assert np.ptp(stored) < 1e-11


def test_a_four_bar_with_friction_in_its_cut_hinge():
    """The same acceleration, motor torque and power to 1e-12, whichever joint is cut."""
    case = four_bar()
    whole = case.mechanism()
    q, v = generic(whole)
    friction = hc.JointFriction({"pin": 0.7}, {"pin": 0.9}, {"pin": (1.1, 0.4)}, 0.2)
    found = []
    for cut in ("pin", "elbow", "pivot"):
        mech, q_here, v_here = same_state(whole, case.linkage, q, v, cut=[cut], actuated=["motor"])
        mech = mech.with_forces([friction])
        forward = hc.forward_dynamics(mech, q_here, v_here, np.zeros(mech.nv))
        inverse = hc.inverse_dynamics(mech, q_here, v_here, [1.5])
        motor = mech.coordinate_names.index("motor")
        power = hc.power(mech, q_here, v_here, [0.0])
        found.append([forward.a[motor], inverse.u[0], power.losses])
        assert forward.certificate.ok
        assert inverse.certificate.ok
    free = hc.inverse_dynamics(whole, q, v, [1.5]).u[0]
    assert abs(found[0][1] - free) > 0.1  # the motor pays for it
    assert np.ptp(found, axis=0).max() < 1e-12 * (1.0 + np.abs(found).max())


@pytest.mark.parametrize("kind", ["revolute", "universal", "spherical", "screw"])
def test_the_reference_of_a_motion_without_motor(kind):
    """One motor for two motions or more: the same torque, whatever is cut."""
    link, reference, _ = closed_by(kind)
    whole = link.mechanism(cut=["end"], reference=reference)
    q, v = hc.assemble(whole, v_guess=np.ones(whole.nv))
    v *= 1.0 / np.linalg.norm(v)
    joints = [n for n in link.joints if hc.joint_motion(whole, n, q).rate.size]
    every, found = dict.fromkeys(joints, 0.4), []
    friction = hc.JointFriction(every, every, transition=0.3)
    for cut in ("end", "j1", "j2"):
        mech, q_here, v_here = same_state(whole, link, q, v, cut=[cut], actuated=["j0"])
        ctl = hc.ComputedTorque(mech.with_forces([friction]), 100.0, 20.0)
        at_ = mech.motor_positions(q_here)
        found.append(ctl.torque(q_here, v_here, at_, [0.7], [1.0])[0])
    assert ctl.partition.independent.size > 1
    assert np.ptp(found) < 1e-10 * (1.0 + np.abs(found).max())


def test_friction_of_a_cut_hinge_rests_with_its_closure():
    case = four_bar()
    mech = case.mechanism().with_forces([hc.JointFriction({"pin": 0.7, "motor": 0.2})])
    q, v = generic(mech)
    opened = mech.with_enabled(pin=False)
    assert opened.force_names == ("friction",)
    F = hc.terms(opened, q, v).F
    assert F[mech.coordinate_names.index("motor")] == pytest.approx(-0.2 * v[0])
    assert np.count_nonzero(F) == 1
    again = opened.with_enabled(pin=True)
    assert np.array_equal(hc.terms(again, q, v).F, hc.terms(mech, q, v).F)
    assert np.abs(hc.terms(mech, q, v).F).min() > 0.0


@pytest.mark.parametrize("on", [True, False])
def test_what_rests_must_fit_too(on):
    mech = four_bar().mechanism().with_enabled(pin=on)
    with pytest.raises(hc.InputError, match=r"'pin\[3\]': a revolute joint has 1 coordinate, numb"):
        mech.with_forces([hc.JointFriction(viscous={"pin[3]": 1.0})])
    with pytest.raises(hc.InputError, match="rest of 'pin' must be a number"):
        mech.with_forces([hc.JointSpring("pin", 1.0, rest=(0.1, 0.2, 0.3))])


def test_a_closure_that_a_force_acts_on_stays():
    case = four_bar()
    mech = case.mechanism().with_forces([hc.JointSpring("pin", 2.0)])
    with pytest.raises(hc.InputError, match=r"'spring on pin' acts on closure 'pin'.*without"):
        mech.without("pin")
    assert mech.without("pin", "spring on pin").constraints == ()
    assert mech.without("spring on pin").forces == ()
    with pytest.raises(hc.InputError, match="did you mean 'pin'"):
        mech.without("pinn")


PARTS = [
    {"viscous": {"ball[0]": 1.0}},
    {"coulomb": {"slab[1]": 0.3, "ball[2]": 0.4}},
    {
        "viscous": {"ball": 0.1},
        "coulomb": {"ball": 0.5, "slab": 0.5},
        "stribeck": {"ball[1]": (0.8, 0.6), "slab[2]": (0.7, 0.4)},
        "transition": {"ball[2]": 0.9, "slab[0]": 0.7},
    },
]


def ring_with_a_ball():
    """Hinge, slab, ball and hinge around a loop; in some of its trees the ball is upside down."""
    rng = np.random.default_rng(5)

    def somewhere():
        return pin.SE3(pin.exp3(rng.normal(size=3)), rng.normal(size=3))

    link = hc.Linkage("ring")
    joints, ends = [somewhere() for _ in range(4)], {"universe": pin.SE3.Identity()}
    for name in ("a", "b", "c"):
        add_lump(link, name, 1.0)
        ends[name] = somewhere()
    for place, (name, kind, parent, child) in zip(
        joints,
        [
            ("first", "revolute", "universe", "a"),
            ("slab", "planar", "a", "b"),
            ("ball", "spherical", "c", "b"),
            ("last", "revolute", "c", "universe"),
        ],
        strict=True,
    ):
        link.add_joint(
            name, kind, parent, child, ends[parent].actInv(place), ends[child].actInv(place)
        )
    return link


@pytest.mark.parametrize("spec", PARTS, ids=["ball", "both", "mixed"])
def test_parts_of_a_joint_are_the_same_however_it_is_cut(spec):
    """Coefficients of a joint and of single coordinates of it meet at the same rates."""
    link = ring_with_a_ball()
    whole = link.mechanism(cut=["last"], actuated=["first"])
    q, v = generic(whole, spread=0.4)
    found, upside_down = [], 0
    for cut in ("last", "first", "slab", "ball"):
        mech, q_here, v_here = same_state(whole, link, q, v, cut=[cut], actuated=["first"])
        upside_down += mech.model.existFrame("ball.child")
        mech = mech.with_forces([hc.JointFriction(**spec)])
        u = hc.inverse_dynamics(mech, q_here, v_here, [1.5]).raise_if_bad().u[0]
        found.append([u, hc.power(mech, q_here, v_here, [0.0]).losses])
    assert 0 < upside_down < 3
    assert min(x[1] for x in found) > 1e-4
    assert np.ptp(found, axis=0).max() < 1e-10 * (1.0 + np.abs(found).max())


@pytest.mark.parametrize("cut", ["last", "first", "slab", "ball"])
def test_a_coordinate_is_named_once_however_it_is_cut(cut):
    mech = ring_with_a_ball().mechanism(cut=[cut])
    for name in ("ball", "slab"):
        if name == "slab" and cut != "slab":
            continue
        with pytest.raises(hc.InputError, match=rf"'{name}' and '{name}\[1\]' name the same"):
            mech.with_forces([hc.JointFriction({name: 1.0, f"{name}[1]": 0.5})])
