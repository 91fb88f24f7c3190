"""Columns of parameters: over the zoo with every force, against the laws of the library."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pinocchio as pin
import pytest
from all_forces import AT_T, every_force
from support import closed_states, few, mechanism
from zoo import ZOO

import holoctl as hc
from holoctl.identification.columns import body_names, friction_labels
from holoctl.identification.parameters import parameter_rows

NAMES = list(ZOO)


def loaded(name):
    return hc.load(hc.robot_file(name))


def one_friction(mech):
    """Every force, with one law of friction: two of them with different widths are refused."""
    return [f for f in every_force(mech) if f.default_name != "cut"]


def equation(model, q, v, t, ydd):
    """Both sides of ``gamma' (M a + h - F)``: by the columns, and by the tree."""
    mech = model.mech
    P = hc.project(mech, q, v, partition=hc.partition(mech, q), t=t)
    a = P.gamma @ ydd[: P.k] + P.bias
    W, known = parameter_rows(model, P, a)
    w = pin.rnea(mech.model, mech.model.createData(), P.q, P.v, a)
    return W @ model.values + known, P.gamma.T @ (w - P.terms.F)


@pytest.mark.parametrize("unknown", [
    {"friction": "joints", "rotors": True, "springs": True, "offsets": True},
    {"friction": "model", "springs": True},
    {},
], ids=["all", "model", "bodies"])  # fmt: skip
@pytest.mark.parametrize("name", few(NAMES))
def test_columns_times_the_parameters_are_the_equation_of_motion(name, unknown):
    mech = mechanism(name)
    mech = mech.with_forces(one_friction(mech))
    if unknown.get("friction") == "joints" and not friction_labels(mech):  # a free body
        unknown = unknown | {"friction": None}
    if "rotors" in unknown and not set(mech.actuated) & set(mech.coordinate_names):
        unknown = unknown | {"rotors": False}
    model = hc.Parameters(mech, **unknown)
    rng = np.random.default_rng(5)
    for q, v in closed_states(name)[:3]:
        found, expected = equation(model, q, v, AT_T, rng.normal(size=mech.nv))
        assert np.abs(expected).max() > 1e-3
        assert np.abs(found - expected).max() < 1e-12 * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize("robot", ["five_bar", "delta", "stewart", "leg", "geared_arm"])
def test_columns_times_the_parameters_are_the_torque_of_inverse_dynamics(robot):
    mech = loaded(robot)
    some = dict.fromkeys(mech.actuated, 0.2)
    mech = mech.with_forces([hc.JointFriction(0.3, some, dict.fromkeys(some, (0.5, 0.3)))])
    q, v = hc.assemble(mech)
    part, rng = hc.partition(mech, q), np.random.default_rng(2)
    v = hc.project(mech, q, v, partition=part).gamma @ rng.normal(size=mech.nv - part.rank)
    P = hc.project(mech, q, v, partition=part)
    a = P.gamma @ rng.normal(size=P.k) + P.bias
    model = hc.Parameters(mech, friction="joints", rotors=True)
    W, known = parameter_rows(model, P, a)
    u = np.linalg.solve(P.gamma.T @ mech.B, W @ model.values + known)
    expected = hc.inverse_dynamics(mech, q, v, a, coordinates="all", partition=part).u
    assert np.abs(u - expected).max() < 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("robot", ["leg", "stewart"])
def test_the_mechanism_with_other_parameters_has_them(robot):
    mech = loaded(robot)
    model = hc.Parameters(
        mech, friction="motors", rotors=True, known=["platform" if robot == "stewart" else "hip"]
    )
    p = model.values * 1.1 + np.where(model.lower == 0.0, 0.3, 0.0)
    other = model.mechanism(p)
    again = hc.Parameters(other, friction="motors", rotors=True, known=model.known)
    assert again.names == model.names
    assert np.abs(again.values - p).max() < 1e-12 * np.abs(p).max()
    j = 1 + body_names(mech).index(model.known[0])
    assert other.model.inertias[j].mass == mech.model.inertias[j].mass


def test_a_rotor_without_mass_has_its_inertia():
    mech = loaded("five_bar")
    tree = mech.model.copy()
    tree.inertias[2] = pin.Inertia(0.0, np.zeros(3), np.diag([0.1, 0.1, 0.15]))
    model = hc.Parameters(dataclasses.replace(mech, model=tree), friction="motors")
    q, v = hc.assemble(model.mech, v_guess=[1.0, 0.0, 0.5, 0.0])
    found, expected = equation(model, q, v, 0.0, np.array([30.0, -20.0]))
    assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()
    assert "distal_left.m" in model.every
    assert "distal_left.m" not in model.names


def test_tied_bodies_share_their_parameters():
    mech = loaded("delta")
    rods = [n for n in body_names(mech) if n.startswith("rod")]
    assert len(rods) == 6
    model = hc.Parameters(mech, tied=[rods])
    assert len(model.names) == len(hc.Parameters(mech).names) - 50
    p = model.values.copy()
    p[model.names.index(f"{rods[0]}.m")] = 0.9
    theta = dict(zip(model.every, model.theta(p), strict=True))
    assert all(theta[f"{n}.m"] == 0.9 for n in rods)
    base = hc.base_parameters(model)
    assert base.decided
    assert base.rank < hc.base_parameters(hc.Parameters(mech)).rank


def test_own_columns_and_offsets_are_among_them():
    mech = loaded("five_bar")
    model = hc.Parameters(
        mech, bodies=(), offsets=True, columns={"drag": lambda P, a: P.v * np.abs(P.v)}
    )
    assert model.names == ("motor_left.offset", "motor_right.offset", "drag")
    q, v = hc.assemble(mech, v_guess=[1.0, 0.0, 0.5, 0.0])
    P = hc.project(mech, q, v)
    W, known = parameter_rows(model, P, P.bias)
    np.testing.assert_allclose(W[:, 2], P.gamma.T @ (v * np.abs(v)), rtol=1e-13)
    np.testing.assert_allclose(W[:, :2], P.gamma.T @ mech.B, rtol=1e-13)
    expected = hc.inverse_dynamics(mech, q, v, P.bias, coordinates="all").u
    np.testing.assert_allclose(np.linalg.solve(P.gamma.T @ mech.B, known), expected, rtol=1e-11)


def test_friction_in_cut_joints_has_columns():
    mech = loaded("four_bar")
    cut = friction_labels(mech)[-1]
    assert cut == "pin"
    oiled = mech.with_forces([hc.JointFriction({cut: 0.4}, {cut: 0.2}, transition=0.1)])
    model = hc.Parameters(oiled, bodies=(), friction="model")
    assert model.names == (f"{cut}.viscous", f"{cut}.coulomb")
    assert model.values.tolist() == [0.4, 0.2]


def test_pickles():
    model = hc.Parameters(loaded("five_bar"), friction="motors", known=["distal_left"])
    again = pickle.loads(pickle.dumps(model))
    assert again.names == model.names
    assert (again.values == model.values).all()


@pytest.mark.parametrize(("wrong", "said"), [
    ({"bodies": ["thigh"]}, "no body called 'thigh'"),
    ({"friction": "all"}, "must be one of"),
    ({"friction": ["motor"]}, "did you mean 'motor_left'"),
    ({"friction": "model"}, "there is no such joint"),
    ({"known": ["proximal_left.mass"]}, "did you mean 'proximal_left.m"),
    ({"tied": [["proximal_left"]]}, "two or more"),
    ({"tied": [["proximal_left", "distal_left"]], "known": ["distal_left.m"]}, "is tied to"),
    ({"bodies": ()}, "no parameter is unknown"),
    ({"rotors": 1}, "rotors must be"),
    ({"transition": 0.0}, "transition"),
    ({"columns": {"drag": 3}}, "must map names to functions"),
    ({"columns": [1]}, "must be a mapping"),
])  # fmt: skip
def test_bad_descriptions_are_refused(wrong, said):
    with pytest.raises(hc.InputError, match=said):
        hc.Parameters(loaded("five_bar"), **wrong)
    with pytest.raises(hc.InputError, match="must be a Mechanism"):
        hc.Parameters(3)


def test_two_laws_of_friction_with_different_widths_are_refused():
    mech = loaded("five_bar")
    two = [hc.JointFriction(coulomb=0.1, transition=w, name=f"f{w}") for w in (0.1, 0.2)]
    with pytest.raises(hc.InputError, match="different widths"):
        hc.Parameters(mech.with_forces(two), friction="joints")
