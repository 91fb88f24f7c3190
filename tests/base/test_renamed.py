"""Former names of keywords and attributes: they work, warn, and `replace` takes them."""

from __future__ import annotations

import dataclasses
import inspect

import pytest
from support import mechanism

import holoctl as hc


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
