"""The model of a mechanism as it is: it cannot be changed, or says that it was."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pinocchio as pin
import pytest
from inside import shown
from support import closed_states, mechanism, relative, shared_partition

import holoctl as hc


def test_a_mechanism_that_somebody_changes_says_so():
    part, (q, v) = shared_partition("five_bar"), closed_states("five_bar")[0]
    for change in (
        lambda m: setattr(m.inertias[2], "mass", 50.0),
        lambda m: setattr(m.jointPlacements[1], "translation", np.ones(3)),
        lambda m: setattr(m.gravity, "linear", np.zeros(3)),
        lambda m: setattr(m.frames[3], "placement", pin.SE3.Random()),
        lambda m: m.frames.__setitem__(3, pin.Frame()),
        lambda m: m.parents.__setitem__(2, 0),
        lambda m: m.idx_vs.__setitem__(2, 0),
        lambda m: m.names.__setitem__(1, "other"),
        lambda m: m.joints.__setitem__(2, pin.JointModelPX()),
        lambda m: m.joints[2].setIndexes(2, 0, 0),
        lambda m: m.children[1].__setitem__(0, 4),
        lambda m: m.sparsity_pattern_vector[1].__setitem__(0, False),
        lambda m: m.referenceConfigurations.__setitem__("new", np.zeros(4)),
    ):
        mech = dataclasses.replace(mechanism("five_bar"))
        before = hc.inverse_dynamics(mech, q, v, np.ones(2), partition=part).u
        prepared = hc.PreparedInverseDynamics(mech, part)
        prepared.torque(q, v, np.ones(2))
        change(mech.model)
        assert relative(prepared.torque(q, v, np.ones(2)), before) < 1e-12  # what it was made for
        for call in (
            lambda mech=mech: hc.inverse_dynamics(mech, q, v, np.ones(2)),
            lambda mech=mech: hc.assemble(mech),
            lambda mech=mech: hc.compile(mech, ["inverse_dynamics"]),
            lambda mech=mech: hc.PreparedInverseDynamics(mech),
            lambda mech=mech: dataclasses.replace(mech),
        ):
            with pytest.raises(
                hc.InputError, match=r"of its model (was changed|were added).*with_model"
            ):
                call()


def test_what_pinocchio_itself_writes_into_a_model_is_noticed(tmp_path):
    """In C++ nothing is read-only."""
    mech = dataclasses.replace(mechanism("five_bar"))
    motor = mech.actuated[0]
    (tmp_path / "x.srdf").write_text(
        f'<robot name="x"><rotor_params><joint name="{motor}" mass="0.1" gear_ratio="10"/>'
        "</rotor_params></robot>"
    )
    q, v = closed_states("five_bar")[0]
    hc.inverse_dynamics(mech, q, v, np.ones(2))
    pin.loadRotorParameters(mech.model, str(tmp_path / "x.srdf"), False)
    assert np.abs(mech.model.armature).max() > 1.0
    for call in (lambda: hc.inverse_dynamics(mech, q, v, np.ones(2)),
                 lambda: hc.PreparedInverseDynamics(mech)):  # fmt: skip
        with pytest.raises(hc.InputError, match="written over"):
            call()


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m, "gravity", pin.Motion.Zero()),
        lambda m: setattr(m, "armature", np.ones(m.nv)),
        lambda m: m.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), "more"),
        lambda m: m.appendBodyToJoint(1, pin.Inertia.FromSphere(1.0, 0.1), pin.SE3.Identity()),
    ],
)
def test_the_model_of_a_mechanism_cannot_be_changed(change):
    with pytest.raises(hc.InputError, match=r"does not change.*with_model"):
        change(mechanism("five_bar").model)


def test_a_model_that_has_grown_says_so():
    """Functions of the class reach the model itself; its size tells."""
    more, frame = pin.SE3.Identity(), pin.Frame("more", 1, pin.SE3.Identity(), pin.OP_FRAME)
    for change in (
        lambda m: pin.Model.addJoint(m, 0, pin.JointModelRZ(), more, "more"),
        lambda m: pin.Model.addFrame(m, frame),
    ):
        mech = dataclasses.replace(mechanism("five_bar"))
        change(mech.model)
        with pytest.raises(hc.InputError, match=r"of its model were added.*with_model"):
            hc.assemble(mech)


def test_to_look_at_a_model_changes_nothing():
    """Every property may be read; what is read is what the model is, and no complaint follows."""
    mech = dataclasses.replace(mechanism("five_bar"))
    own = mech.model.copy()
    for name, attribute in vars(pin.Model).items():
        if isinstance(attribute, property):
            getattr(mech.model, name)
    assert mech.model.names.tolist() == own.names.tolist()
    assert mech.model.frames.tolist() == own.frames.tolist()
    assert mech.model.joints.tolist() == own.joints.tolist()
    assert mech.model.names is mech.model.names
    hc.assemble(mech)
    again = hc.assemble(dataclasses.replace(mech))[0]
    np.testing.assert_array_equal(again, hc.assemble(mech)[0])


def test_the_library_looks_at_no_copies():
    """What nobody has looked at need not be compared at every door."""
    mech = hc.load(hc.robot_file("stewart"))
    q, v = hc.assemble(mech)
    hc.inverse_dynamics(mech, q, v, np.zeros(mech.nu))
    assert shown(mech.model) <= {"gravity"}


def test_arrays_of_the_model_are_read_only_and_a_copy_is_not():
    mech = mechanism("five_bar")
    with pytest.raises(ValueError, match="read-only"):
        mech.model.armature[0] = 1.0
    model = mech.model.copy()
    model.armature[0], model.inertias[1].mass = 1.0, 50.0
    heavy = mech.with_model(model)
    q, v = closed_states("five_bar")[0]
    u, more = (hc.inverse_dynamics(m, q, v, np.ones(2)).u for m in (mech, heavy))
    assert relative(u, more) > 0.1
    again = pickle.loads(pickle.dumps(mech.model))
    assert (again.armature == mech.model.armature).all()
