"""Against numbers that RBDL computed: where it is right ours are the same, where not ours hold.

What the files hold and in which conventions: golden/rbdl/README.md. What differs and why:
docs/from-rbdl.md.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
import rbdl
from rbdl import BIPEDS, CASES, LOOPS, TOLERANCE, array, golden, off, states
from support import (
    ROOT,
    TOL,
    assert_rows_close,
    drift_by_differences,
    jacobian_by_differences,
    rate_by_differences,
)

import holoctl as hc

PAGE = ROOT / "docs" / "from-rbdl.md"

METHODS = ["projection", "direct", "range_space", "null_space", "kokkevis"]
SOLVED = [(name, m) for name in CASES for m in METHODS if m != "kokkevis" or name in BIPEDS]
T_STAB = 0.1
ALL, ON = 10, 5
"""States in a file, and those on the manifold."""


def agree(ours, theirs, least=1e-3):
    """Equal within the tolerance, and no comparison of zeros."""
    assert np.abs(array(theirs)).max() > least
    assert off(ours, theirs) < TOLERANCE


def count(name):
    """How many states `comparable` has."""
    return ALL if name in BIPEDS else ON


def conversion(name, s):
    """T with ``G_rbdl = T G``; other than one only for the angular rows of spatial6."""
    return rbdl.to_rbdl(name, s["q"]) if name in LOOPS else np.eye(len(s["gamma"]))


def actuated(name):
    return array(golden(name)["actuated"]).astype(bool)


def rows_named(name, word):
    return [i for i, label in enumerate(rbdl.mechanism(name).row_names) if word in label]


# ------------------------------------------------------------------------------- the files


def test_what_is_compared():
    """60 states; the model is not renumbered, so coordinates and rows have RBDL's order."""
    sizes = {name: (rbdl.mechanism(name).nv, len(rbdl.mechanism(name).row_names))
             for name in CASES}  # fmt: skip
    assert sizes == {
        "fourbar": (3, 2), "spatial3": (6, 3), "spatial6": (12, 6), "slider_gear": (4, 3),
        "biped_double": (18, 10), "biped_single": (18, 6),
    }  # fmt: skip
    for name in CASES:
        mech = rbdl.mechanism(name)
        assert golden(name)["baumgarte_time_constant"] == T_STAB
        assert len(states(name)) == ALL
        assert len(states(name, True)) == ON
        assert len(rbdl.comparable(name)) == count(name)
        assert rbdl.partition(name).rank == sizes[name][1]  # nothing redundant: lambda is unique
        assert list(mech.coordinate_names) == [b["name"] for b in golden(name)["model"]["bodies"]]
        assert np.array_equal(mech.B.any(axis=1), actuated(name))
    weightless = [b["name"] for b in golden("biped_double")["model"]["bodies"] if not b["mass"]]
    assert len(weightless) == 5
    assert rbdl.mechanism("spatial6").constraints[0].axes == "rx ry rz x y z"


# --------------------------------------------------------------------------------- the terms


@pytest.mark.parametrize("name", CASES)
def test_inertia_and_nonlinear_efforts(name):
    mech = rbdl.mechanism(name)
    for s in states(name):
        T = hc.terms(mech, s["q"], s["qd"])
        agree(T.M, s["H"])
        agree(T.h, s["C"])


@pytest.mark.parametrize("name", CASES)
def test_rows(name):
    """G and gamma. The angular rows of spatial6 have linear ones added, in the way told."""
    mech = rbdl.mechanism(name)
    for s in rbdl.comparable(name):
        T, to_rbdl = hc.terms(mech, s["q"], s["qd"]), conversion(name, s)
        agree(to_rbdl @ T.jacobian, s["G"])
        agree(-to_rbdl @ T.drift, s["gamma"])
        assert off(to_rbdl @ T.rate, s["velocity_error"]) < TOLERANCE
        # the span is the same, whatever the convention
        both = np.vstack([T.jacobian, array(s["G"])])
        assert np.linalg.matrix_rank(both, 1e-9) == len(T.error)
        if name == "spatial6":
            assert off(T.jacobian, s["G"]) > 0.05
            assert off(T.jacobian[3:], s["G"][3:]) < TOLERANCE
        if s["on_manifold"]:
            assert np.abs(array(s["velocity_error"])).max() < 1e-12
        else:
            agree(T.rate, s["velocity_error"])


@pytest.mark.parametrize("name", LOOPS)
def test_position_errors_of_loops_and_gears(name):
    """Linear rows and gears: the same on and off the manifold. Angular rows: another sine."""
    mech, angular = rbdl.mechanism(name), rows_named(name, ".r")
    assert len(angular) == (3 if name == "spatial6" else 0)
    for s in states(name):
        ours, theirs = hc.terms(mech, s["q"], s["qd"]).error, array(s["position_error"])
        if s["on_manifold"]:
            assert max(np.abs(ours).max(), np.abs(theirs).max()) < 1e-12
            continue
        if angular:
            # of a turn by the angle about an axis: 2 sin(angle / 2) here, sin(angle) in RBDL
            half = np.arcsin(np.linalg.norm(ours[angular]) / 2.0)
            assert off(ours, theirs) > 1e-5
            ours = ours.copy()
            ours[angular] *= np.cos(half)
        agree(ours, theirs)


@pytest.mark.parametrize("name", BIPEDS)
def test_position_errors_of_contacts(name):
    """RBDL has none; ours is the distance to the point of the ground, along each direction."""
    mech = rbdl.mechanism(name)
    data = mech.model.createData()
    for s in states(name):
        error = hc.terms(mech, s["q"], s["qd"]).error
        expected = []
        for c in golden(name)["constraints"]:
            points = []
            for q in (s["q"], mech.reference):
                pin.forwardKinematics(mech.model, data, array(q))
                points.append(data.oMi[c["body"] + 1].act(array(c["point"])))
            expected.append(array(c["normal"]) @ (points[0] - points[1]))
        assert off(error, expected) < TOLERANCE
        assert not any(s["position_error"])
        at_state = replace(mech, reference=s["q"])  # contacts made here: no error, as in RBDL
        assert np.abs(hc.terms(at_state, s["q"], s["qd"]).error).max() < 1e-14
    assert np.abs(error).max() > 0.01


def test_the_gear_row():
    """A row with another unit, alike on and off the manifold, RBDL's sign and offset."""
    mech = rbdl.mechanism("slider_gear")
    for s in states("slider_gear"):
        gear = hc.terms(mech, s["q"], s["qd"]).of("gear")
        agree(gear.jacobian[0], s["G"][2])
        assert off(gear.error, s["position_error"][2:]) < TOLERANCE
        assert off(gear.rate, s["velocity_error"][2:]) < TOLERANCE
        assert not gear.drift.any()
        assert s["gamma"][2] == 0.0
        assert s["on_manifold"] or abs(s["position_error"][2]) > 1e-3
        assert s["on_manifold"] or abs(s["velocity_error"][2]) > 1e-3


@pytest.mark.parametrize("name", LOOPS)
def test_loop_rows_off_the_manifold(name):
    """Ours are the derivatives of the error, RBDL's are not: they leave out that P turns."""
    mech = rbdl.mechanism(name)
    linear = [i for axis in "xyz" for i in rows_named(name, f".{axis}")]
    angular = rows_named(name, ".r")
    for s in states(name, False):
        q, v = array(s["q"]), array(s["qd"])
        T = hc.terms(mech, q, v)
        G, theirs = jacobian_by_differences(mech, q, v), array(s["G"])
        rate, drift = rate_by_differences(mech, q, v), drift_by_differences(mech, q, v)
        for what, x, y in (
            ("G", T.jacobian, G), ("rate", T.rate, rate), ("drift", T.drift, drift)
        ):  # fmt: skip
            tol = TOL["difference"] * (1.0 + np.abs(y).max(initial=0.0))
            assert_rows_close(mech, x, y, tol, (q, v), what=what)
        assert off(theirs, G) > 1e-3
        assert off(-array(s["gamma"]), T.drift) > 1e-3
        # what is missing, of d/dt (R_P' d): - R_P' (omega_P x d), and nothing else
        data = mech.model.createData()
        pin.computeJointJacobians(mech.model, data, q)
        loop = golden(name)["constraints"][0]
        P, S = (data.oMi[loop[end] + 1] * rbdl.end_of(loop, end)
                for end in ("predecessor", "successor"))  # fmt: skip
        body = loop["predecessor"] + 1
        omega = pin.getJointJacobian(mech.model, data, body, pin.LOCAL_WORLD_ALIGNED)[3:]
        missing = -P.rotation.T @ np.cross(omega.T, S.translation - P.translation).T
        for i in linear:
            axis = "xyz".index(mech.row_names[i][-1])
            agree(theirs[i] + missing[axis], T.jacobian[i])
        if angular:  # on the manifold too: their own position error has another derivative
            assert off(theirs[angular], T.jacobian[angular]) > 0.05
        # so that accelerations are not ours either
        broken = T.jacobian @ array(s["forward"]["direct"]["qdd"]) + T.drift
        assert np.abs(broken).max() > 1e-3


# -------------------------------------------------------------------------- forward dynamics


@pytest.mark.parametrize(("name", "method"), SOLVED)
def test_forward_dynamics(name, method):
    mech, part = rbdl.mechanism(name), rbdl.partition(name)
    for s in rbdl.comparable(name):
        res = hc.forward_dynamics(mech, s["q"], s["qd"], s["tau"], method=method, partition=part)
        direct = s["forward"]["direct"]
        agree(res.a, direct["qdd"])
        assert res.unique.all()
        agree(res.multipliers, conversion(name, s).T @ array(direct["lambda"]))
        agree(
            hc.terms(mech, s["q"], s["qd"]).jacobian.T @ res.multipliers,
            array(s["G"]).T @ array(direct["lambda"]),
        )
        same = s["forward"].get(method, direct)
        agree(res.a, same["qdd"])
        if name in LOOPS:
            assert res.certificate.ok


@pytest.mark.parametrize("name", CASES)
def test_the_multipliers_of_the_null_space_method(name):
    """RBDL's do not satisfy the equation of motion; ours do, by the same method."""
    mech, part = rbdl.mechanism(name), rbdl.partition(name)
    for s in rbdl.comparable(name):
        M, h, G = array(s["H"]), array(s["C"]), array(s["G"])
        null = s["forward"]["null_space"]
        efforts = M @ array(null["qdd"]) + h - array(s["tau"])
        agree(G.T @ array(s["forward"]["range_space"]["lambda"]), efforts)
        assert off(G.T @ array(null["lambda_as_returned"]), efforts) > 0.1
        res = hc.forward_dynamics(
            mech, s["q"], s["qd"], s["tau"], method="null_space", partition=part
        )
        agree(hc.terms(mech, s["q"], s["qd"]).jacobian.T @ res.multipliers, efforts)


@pytest.mark.parametrize("name", CASES)
def test_external_forces(name):
    """The same wrenches in both forms that we take: of frames, and of joints in joint axes."""
    mech, part = rbdl.mechanism(name), rbdl.partition(name)
    data = mech.model.createData()
    for s in rbdl.comparable(name):
        theirs = s["forward"]["external"]
        pin.forwardKinematics(mech.model, data, array(s["q"]))
        of_joints = pin.StdVec_Force([pin.Force.Zero()] * mech.model.njoints)
        for body, w in zip(theirs["bodies"], array(theirs["wrench_world"]), strict=True):
            of_joints[body + 1] = data.oMi[body + 1].actInv(pin.Force(w[3:], w[:3]))
        of_frames = rbdl.wrenches(mech.model, s["q"], theirs)
        assert len(of_frames) == 2
        cases = [(of_joints, "direct"), *((of_frames, m) for n, m in SOLVED if n == name)]
        for f_ext, method in cases:
            res = hc.forward_dynamics(
                mech, s["q"], s["qd"], s["tau"], f_ext=f_ext, method=method, partition=part
            )
            agree(res.a, theirs["qdd"])
            agree(res.multipliers, conversion(name, s).T @ array(theirs["lambda"]))
        free = array(s["C"]) - array(theirs["C"])  # J' f
        agree(hc.terms(mech, s["q"], s["qd"]).h - free, theirs["C"])
        assert off(theirs["qdd"], s["forward"]["direct"]["qdd"]) > 1e-3


# ------------------------------------------------------------------------------ stabilisation


@pytest.mark.parametrize("name", CASES)
def test_baumgarte(name):
    """Contacts made at the state, since RBDL's have no error of position."""
    part = rbdl.partition(name)
    for s in rbdl.comparable(name):
        mech, theirs = rbdl.build(name, s["q"]), s["forward"]["baumgarte"]
        T = hc.terms(mech, s["q"], s["qd"], t_stab=T_STAB)
        to_rbdl = conversion(name, s)
        agree(-to_rbdl @ (T.drift + T.stabilisation), theirs["gamma"])
        for method in [m for n, m in SOLVED if n == name]:
            res = hc.forward_dynamics(
                mech, s["q"], s["qd"], s["tau"], method=method, t_stab=T_STAB, partition=part
            )
            agree(res.a, theirs["qdd"])
            agree(res.multipliers, to_rbdl.T @ array(theirs["lambda"]))
        if not s["on_manifold"]:
            assert off(theirs["qdd"], s["forward"]["direct"]["qdd"]) > 0.01


@pytest.mark.parametrize("name", LOOPS)
def test_the_terms_of_baumgarte_off_the_manifold(name):
    """(2 / T) rate + error / T^2: with RBDL's rate in place of ours it is RBDL's number."""
    mech, angular = rbdl.mechanism(name), rows_named(name, ".r")
    for s in states(name, False):
        T = hc.terms(mech, s["q"], s["qd"], t_stab=T_STAB)
        theirs = array(s["gamma"]) - array(s["forward"]["baumgarte"]["gamma"])
        ours = T.stabilisation + (2.0 / T_STAB) * (array(s["velocity_error"]) - T.rate)
        straight = np.setdiff1d(np.arange(len(ours)), angular)
        agree(ours[straight], theirs[straight], least=1.0)


# ----------------------------------------------------------------------------------- assembly


def weighted_slope(mech, q, guess, weights):
    """What of the gradient of the weighted distance is left along the manifold."""
    slope = weights * (array(q) - guess)
    G = hc.terms(mech, q, np.zeros(mech.nv)).jacobian
    return np.abs(slope - G.T @ np.linalg.lstsq(G.T, slope, rcond=None)[0]).max()


@pytest.mark.parametrize("name", LOOPS)
def test_assembly_of_the_configuration(name):
    """Ours is the nearest point with these weights, RBDL's is only near it."""
    mech, gains = rbdl.mechanism(name), []
    for s in states(name):
        given = s["assembly"]
        guess, weights = array(given["guess"]), array(given["weights"])
        assert given["success"]
        q, _ = hc.assemble(mech, guess, weights=weights)
        T = hc.terms(mech, q, np.zeros(mech.nv))
        assert np.abs(T.error).max() < 1e-12
        assert weighted_slope(mech, q, guess, weights) < TOLERANCE
        assert weighted_slope(mech, given["q"], guess, weights) > 1e-6
        ours, theirs = (float(weights @ (array(x) - guess) ** 2) for x in (q, given["q"]))
        assert ours <= theirs + TOLERANCE
        assert np.abs(q - array(given["q"])).max() < 0.2  # the same posture
        gains.append((theirs - ours) / theirs)
    assert len(gains) == ALL
    assert max(gains) > 1e-5


@pytest.mark.parametrize("name", BIPEDS)
def test_assembly_with_contacts(name):
    """Contacts made at the guess are closed there, so the guess is the answer, as in RBDL."""
    for s in states(name):
        given = s["assembly"]
        mech = rbdl.build(name, given["guess"])
        q, _ = hc.assemble(mech, given["guess"], weights=given["weights"])
        assert given["q"] == given["guess"]
        assert off(q, given["q"]) < 1e-12


@pytest.mark.parametrize("name", CASES)
def test_assembly_of_the_velocity(name):
    """At RBDL's q, which is closed and therefore kept."""
    for s in states(name):
        given = s["assembly"]
        mech = rbdl.build(name, given["q"]) if name in BIPEDS else rbdl.mechanism(name)
        q, v = hc.assemble(mech, given["q"], given["qd_guess"], weights=given["weights"])
        assert off(q, given["q"]) < 1e-12
        agree(v, given["qd"])
        assert np.abs(v - array(given["qd_guess"])).max() > 0.1


# --------------------------------------------------------------------------- inverse dynamics


# ------------------------------------------------------------------- impacts and wrenches


@pytest.mark.parametrize("method", ["direct", "range_space", "null_space"])
@pytest.mark.parametrize("name", CASES)
def test_impulses(name, method):
    """Velocities of all three; RBDL's direct impulses have the opposite sign, and those of its
    null-space method do not balance the momentum."""
    mech, part = rbdl.mechanism(name), rbdl.partition(name)
    for s in rbdl.comparable(name):
        T = conversion(name, s)
        for entry in s["impulse"]:
            v_plus = np.linalg.solve(T, array(entry["v_plus"]))
            hit = hc.impulse(
                mech, s["q"], entry["qd_minus"], v_plus, method=method, partition=part
            )  # fmt: skip
            agree(hit.v, entry[method]["qd_plus"])
            assert hit.balance < 1e-10
            p = np.linalg.solve(T.T, hit.impulses)
            agree(p, entry["range_space"]["impulse"])
            agree(-p, entry["direct"]["impulse"])
            if not v_plus.any():
                assert hit.energy < 0.0
            theirs = array(entry["null_space"]["impulse_as_returned"])
            change = array(s["H"]) @ (array(entry["null_space"]["qd_plus"]) - entry["qd_minus"])
            assert min(off(array(s["G"]).T @ x, change) for x in (theirs, -theirs)) > 1e-3


@pytest.mark.parametrize("name", CASES)
def test_wrenches_of_constraints(name):
    """World axes at the point told. Ground: the force only, RBDL gives it at the world origin."""
    mech, compared = rbdl.mechanism(name), 0
    for s in rbdl.comparable(name):
        lam = conversion(name, s).T @ array(s["forward"]["direct"]["lambda"])
        found = hc.constraint_wrenches(mech, s["q"], lam)
        for group in s["forward"]["groups"]:
            if not group.get("root"):
                assert group["name"] not in found  # a gear acts on coordinates
                continue
            contact = name in BIPEDS
            pair = found[group["name"]][::-1] if contact else found[group["name"]]
            for i, (ours, theirs) in enumerate(zip(pair, group["root"], strict=True)):
                wrench, at = array(theirs["wrench"]), array(theirs["at"])
                agree(ours.force, wrench[3:])
                if not (contact and i == 1):
                    moment = ours.moment + np.cross(ours.point - at, ours.force)
                    assert off(np.concatenate([moment, ours.force]), wrench) < TOLERANCE
                compared += 1
    assert compared >= 2 * count(name)


@pytest.mark.parametrize("name", CASES)
def test_relaxed_inverse_dynamics(name):
    """Also where the target contradicts the constraints: the relaxed form has an answer."""
    mech, part, motors = rbdl.mechanism(name), rbdl.partition(name), actuated(name)
    for s in rbdl.comparable(name):
        for entry in s["inverse"]:
            target, theirs = array(entry["qdd_target"])[motors], entry["relaxed"]
            res = hc.methods.inverse_dynamics_relaxed(mech, s["q"], s["qd"], target, partition=part)
            agree(res.a, theirs["qdd"])
            agree(mech.B @ res.u, theirs["tau"])
            agree(np.linalg.solve(conversion(name, s).T, res.multipliers), theirs["lambda"])
            assert res.certificate.dynamics < 1e-8
            full = hc.methods.is_fully_actuated(mech, s["q"], partition=part)
            assert full is entry["fully_actuated"]


@pytest.mark.parametrize("name", [n for n in CASES if n != "biped_double"])
def test_inverse_dynamics(name):
    """As many motors as motions: torques, passive accelerations and multipliers are RBDL's."""
    mech, part, A = rbdl.mechanism(name), rbdl.partition(name), actuated(name)
    compared = 0
    for s in rbdl.comparable(name):
        for given in s["inverse"]:
            exact = given["exact"]
            target = array(given["qdd_target"])[A]
            res = hc.inverse_dynamics(mech, s["q"], s["qd"], target, partition=part)
            agree(res.u, array(exact["tau"])[A])
            agree(res.a, exact["qdd"])
            assert off(res.a[A], target) < TOLERANCE
            assert res.unique.all()
            agree(res.multipliers, conversion(name, s).T @ array(exact["lambda"]))
            assert given["fully_actuated"]
            compared += 1
    assert compared == 2 * count(name)


def test_more_motors_than_motions():
    """Both feet on the ground, 12 motors and 8 motions: one motion, many torques for it."""
    name = "biped_double"
    mech, part, A = rbdl.mechanism(name), rbdl.partition(name), actuated(name)
    assert (mech.nu, mech.nv - part.rank) == (12, 8)
    for s in states(name):
        given = s["inverse"][1]
        exact, target = given["exact"], array(given["qdd_target"])[A]
        P = hc.project(mech, s["q"], s["qd"], partition=part)
        res = hc.inverse_dynamics(mech, s["q"], s["qd"], target, projection=P)
        agree(res.a, exact["qdd"])
        theirs = array(exact["tau"])[A]
        agree(P.gamma.T @ mech.B @ res.u, P.gamma.T @ mech.B @ theirs)
        assert off(res.u, theirs) > 0.01
        plain = np.ones(mech.nu)
        least = hc.inverse_dynamics(mech, s["q"], s["qd"], target, projection=P, weights=plain)
        assert np.linalg.norm(least.u) < np.linalg.norm(theirs)
        for u in (res.u, least.u, theirs):
            back = hc.forward_dynamics(mech, s["q"], s["qd"], mech.B @ u, projection=P)
            agree(back.a, exact["qdd"])


def test_targets_that_the_constraints_do_not_allow():
    """RBDL returns torques that do not give the acceleration it returns; ours says so, or does."""
    name = "biped_double"
    mech, part, A = rbdl.mechanism(name), rbdl.partition(name), actuated(name)
    for s in states(name):
        given = s["inverse"][0]
        exact, target = given["exact"], array(given["qdd_target"])[A]
        state = (mech, s["q"], s["qd"])
        assert given["fully_actuated"]  # no warning
        assert exact["constraint_residual"] > 0.1
        assert off(array(s["G"]) @ array(exact["qdd"]), s["gamma"]) > 0.01
        caused = hc.forward_dynamics(*state, exact["tau"], partition=part)
        assert off(caused.a, exact["qdd"]) > 0.05
        assert off(caused.a[A], target) > 0.05
        with pytest.raises(hc.InconsistentError, match="12 motors contradict the constraints"):
            hc.inverse_dynamics(*state, target, partition=part)
        res = hc.inverse_dynamics(*state, target, partition=part, inconsistent="project")
        T = hc.terms(*state)
        agree(T.jacobian @ res.a, s["gamma"])
        agree(T.M @ res.a + T.h, mech.B @ res.u + T.jacobian.T @ res.multipliers)
        agree(hc.forward_dynamics(*state, mech.B @ res.u, partition=part).a, res.a)
        nearest = np.linalg.norm(res.a[A] - target)
        assert nearest <= np.linalg.norm(caused.a[A] - target)


def test_a_motor_on_every_coordinate():
    """Three motors and one motion: any acceleration that the loop allows is followed."""
    plain = rbdl.mechanism("fourbar")
    mech = hc.Mechanism(plain.model, plain.constraints, plain.coordinate_names)
    s = states("fourbar", True)[0]
    target = array(s["forward"]["direct"]["qdd"])
    res = hc.inverse_dynamics(mech, s["q"], s["qd"], target).raise_if_bad()
    assert off(res.a, target) < TOLERANCE
    assert np.abs(res.u).min() > 1e-3


# ---------------------------------------------------------------------------------- the page


def test_the_program_of_the_page(capsys):
    """It runs, prints what the page says, and its mechanism is the one that RBDL computed."""
    page = PAGE.read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    (printed,) = re.findall(r"```text\n(.*?)```", page, flags=re.DOTALL)
    made = {"__name__": "page"}
    exec(compile(program, str(PAGE), "exec"), made)
    assert capsys.readouterr().out.split() == printed.split()
    mech = made["mech"]
    for s in states("fourbar", True):
        res = hc.forward_dynamics(mech, s["q"], s["qd"], s["tau"], method="direct")
        agree(res.a, s["forward"]["direct"]["qdd"])
        agree(hc.terms(mech, s["q"], s["qd"]).jacobian, s["G"])
        agree(res.multipliers, s["forward"]["direct"]["lambda"])
        exact = s["inverse"][0]["exact"]
        u = hc.inverse_dynamics(mech, s["q"], s["qd"], exact["qdd"][:1]).u
        agree(u, exact["tau"][:1])


def test_every_name_on_the_page_exists():
    """What is called `hc.something` outside comments is there."""
    text = re.sub(r"<!--.*?-->", "", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    names = set(re.findall(r"\bhc\.([A-Za-z_]+)", text))
    assert len(names) > 10
    assert names <= set(hc.__all__)
