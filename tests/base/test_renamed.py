"""Former names of keywords and attributes: they work, warn, and `replace` takes them."""

from __future__ import annotations

import dataclasses
import inspect
import pickle

import pytest
from support import mechanism

import holoctl as hc
from holoctl.protocols import TaskExpression, kinds


def test_a_former_keyword_of_a_function_is_the_present_one():
    mech = mechanism("five_bar")
    with pytest.warns(DeprecationWarning, match=r"equilibrium\(\.\.\., fixed=\) is called locked="):
        former = hc.equilibrium(mech, fixed=[mech.actuated[0]])
    assert (former.q == hc.equilibrium(mech, locked=[mech.actuated[0]]).q).all()
    assert "fixed" not in inspect.signature(hc.equilibrium).parameters


def test_a_former_field_of_a_class_is_the_present_one():
    mech = mechanism("five_bar")
    one, other = (hc.ClosedStateEstimator(mech) for _ in range(2))
    with pytest.warns(DeprecationWarning, match=r"ComputedTorque\(\.\.\., assembly=\) is called"):
        ctl = hc.ComputedTorque(mech, 1.0, 1.0, assembly=one)
    assert ctl.estimator is one
    with pytest.warns(DeprecationWarning, match=r"ComputedTorque\.assembly is called estimator"):
        assert ctl.assembly is one
    with pytest.warns(DeprecationWarning, match="estimator="):
        assert dataclasses.replace(ctl, assembly=other).estimator is other
    with pytest.warns(DeprecationWarning, match="Loop"):
        assert ctl.loop().assembly is not one
    with pytest.raises(TypeError, match="assembley"):
        hc.ComputedTorque(mech, 1.0, 1.0, assembley=one)


def test_former_names_of_frames_and_of_the_velocity_residual():
    mech = mechanism("four_bar")
    with pytest.warns(DeprecationWarning, match=r"Spring\(\.\.\., frame_[ab]=\) is called [ab]="):
        spring = hc.Spring(frame_a="universe", frame_b="rocker", stiffness=1.0, length=0.1)
    assert (spring.a, spring.b) == ("universe", "rocker")
    with pytest.warns(DeprecationWarning, match=r"Spring\.frame_b is called b"):
        assert spring.frame_b == "rocker"
    with pytest.warns(DeprecationWarning, match=r"Contact\(\.\.\., point=\) is called frame="):
        contact = hc.Contact(point="rocker")
    with pytest.warns(DeprecationWarning, match=r"Contact\.point is called frame"):
        assert contact.point == contact.frame == "rocker"
    q, v = hc.assemble(mech)
    errors = hc.constraint_errors(mech, q, v)
    with pytest.warns(DeprecationWarning, match=r"ConstraintErrors\.slip is called velocity_resid"):
        assert errors.slip == errors.velocity_residual
    certificate = hc.inverse_dynamics(mech, q, v, [1.0]).certificate
    with pytest.warns(DeprecationWarning, match=r"Certificate\.velocity is called velocity_resid"):
        assert certificate.velocity == certificate.velocity_residual
    off = dataclasses.replace(certificate, velocity_residual=1.0)
    assert off.failures == ("velocity_residual",)


def test_the_former_name_of_guards_works():
    parts = (kinds.linear("x", (1.0, 0.0, 0.0)),)
    functions = {"value": float, "gradient": float, "curvature": float}
    with pytest.warns(DeprecationWarning, match=r"Composed\(\.\.\., doubt=\) is called guard="):
        row = kinds.Composed(parts, **functions, doubt=abs)
    with pytest.warns(DeprecationWarning, match=r"Composed\.doubt is called guard"):
        assert row.doubt is row.guard is abs
    with pytest.warns(
        DeprecationWarning, match=r"TaskExpression\(\.\.\., doubt=\) is called guard="
    ):
        found = TaskExpression([], [], [], [], doubt=[0.5])
    with pytest.warns(DeprecationWarning, match=r"TaskExpression\.doubt is called guard"):
        assert found.doubt == found.guard == [0.5]
    assert found == TaskExpression([], [], [], [], [0.5])
    assert pickle.loads(pickle.dumps(found)) == found


def test_the_former_order_of_pictures_works(tmp_path):
    pytest.importorskip("matplotlib")
    mech = mechanism("four_bar")
    run = hc.simulate(mech, None, *hc.assemble(mech), 0.002)
    with pytest.warns(
        DeprecationWarning, match=r"plot_run\(run, mech\) is called plot_run\(mech, r"
    ):
        assert hc.plot_run(run, mech).axes[0].get_ylabel() == "position (rad)"
    with pytest.warns(DeprecationWarning, match="plot_run"):
        assert hc.plot_run(run).axes[0].get_ylabel() == "q (rad or m)"
    path = tmp_path / "run.gif"
    with pytest.warns(
        DeprecationWarning, match=r"animate\(run, path\) is called animate\(mech, pa"
    ):
        assert hc.animate(run, path, mech=mech) == path
    for function in (hc.draw, hc.plot_run, hc.animate, hc.view, hc.save_view):
        names = [
            x for x in inspect.signature(function).parameters if x in ("mech", "path", "run", "q")
        ]
        assert names == sorted(names, key=["mech", "path", "run", "q"].index)
