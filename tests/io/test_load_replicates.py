"""Copies of ``<replicate>``: where they stand, what they are called, what refers to them."""

from __future__ import annotations

import time

import numpy as np
import pinocchio as pin
import pytest

import holoctl as hc

BODY = (
    '<body name="a" pos="1 0 0"><joint name="j" axis="0 1 0"/><geom size="0.1"/><site name="s"/>'
    '<body name="b" pos="0 0 1"><joint name="k"/><geom size="0.1" pos="0.1 0 0"/></body></body>'
)
OUT = '<body name="out"><joint name="o"/><geom size="0.1"/></body>'


@pytest.fixture
def robot(tmp_path):
    """Write a file with what stands in the world and behind it; return a function that loads it."""

    def load(world, rest="", head="", **options):
        text = f"<mujoco>{head}<worldbody>{OUT}{world}</worldbody>{rest}</mujoco>"
        (tmp_path / "copies.xml").write_text(text, "utf-8")
        return hc.load(tmp_path / "copies.xml", **options)

    return load


def copies(inside=BODY, **attributes):
    words = " ".join(f'{name}="{value}"' for name, value in attributes.items())
    return f"<replicate {words}>{inside}</replicate>"


def places(mech, *names):
    data = mech.model.createData()
    pin.framesForwardKinematics(mech.model, data, pin.neutral(mech.model))
    return np.array([data.oMf[mech.model.getFrameId(n, pin.FrameType.BODY)].translation
                     for n in names])  # fmt: skip


def test_copies_are_numbered_and_moved(robot):
    mech = robot(copies(count=3, offset="0 2 0"))
    assert mech.coordinate_names == ("o", "j0", "k0", "j1", "k1", "j2", "k2")
    assert places(mech, "a0", "a1", "b2") == pytest.approx(
        np.array([[1, 0, 0], [1, 2, 0], [1, 4, 1]])
    )


def test_numbers_have_as_many_digits_as_the_count(robot):
    assert robot(copies(count=10, sep="-")).coordinate_names[1::2] == tuple(
        f"j-{i:02d}" for i in range(10)
    )


def test_angles_are_multiples_and_offsets_turn_with_the_copies(robot):
    mech = robot(copies(count=4, offset="2 0 0", euler="0 0 90"))
    expected = [[1, 0, 0], [2, 1, 0], [1, 2, 0], [0, 1, 0]]
    assert places(mech, "a0", "a1", "a2", "a3") == pytest.approx(np.array(expected), abs=1e-12)
    radian = '<compiler angle="radian" eulerseq="zyx"/>'
    mech = robot(copies(count=2, euler=f"{np.pi / 2} 0 0"), head=radian)
    assert places(mech, "a1") == pytest.approx(np.array([[0, 1, 0]]), abs=1e-12)


def test_inner_copies_are_numbered_first(robot):
    inner = copies('<body name="c"><joint name="c"/><geom size="1"/></body>', count=2, sep="-")
    names = robot(copies(inner, count=2)).coordinate_names
    assert names == ("o", "c-00", "c-10", "c-01", "c-11")


def test_copies_without_names_in_a_body(robot):
    """Geoms of a body, one on the other: three times the mass."""
    one = '<body name="{0}"><joint name="{0}"/>{1}</body>'
    geom = '<geom size="0.1" pos="0.3 0 0"/>'
    mech = robot(one.format("x", geom) + one.format("y", copies(geom, count=3)))
    assert mech.model.inertias[3].mass == pytest.approx(3 * mech.model.inertias[2].mass)


def test_classes_of_the_body_around_hold_in_copies(robot):
    head = '<default><default class="d"><joint damping="2"/></default></default>'
    mech = robot(f'<body childclass="d"><geom size="1"/>{copies(count=2)}</body>', head=head)
    assert mech.model.damping.tolist() == [0.0, 2.0, 2.0, 2.0, 2.0]
    mech = robot(copies(count=2, childclass="d"), head=head)
    assert mech.model.damping.tolist() == [0.0, 2.0, 2.0, 2.0, 2.0]


def test_what_refers_to_copies_is_copied(robot):
    mech = robot(
        copies(count=2),
        '<equality><connect name="pin" body1="b" body2="world" anchor="0 0 0"/>'
        '<joint joint1="o"/><joint joint1="j" joint2="k"/><tendon name="t" tendon1="sum"/>'
        "</equality><tendon><fixed name='sum'><joint joint='j' coef='2'/></fixed></tendon>"
        '<actuator><motor joint="k"/><motor joint="o"/></actuator>',
    )
    assert mech.constraint_names == ("o", "pin0", "j0-k0", "t0", "pin1", "j1-k1", "t1")
    assert mech.actuated == ("o", "k0", "k1")
    assert [dict(c.coefficients) for c in mech.constraints if c.name in ("t0", "t1")] == [
        {"j0": 2.0}, {"j1": 2.0},
    ]  # fmt: skip


def test_what_names_a_copy_is_found(robot):
    rest = '<equality><connect name="tie" site1="s-0" site2="s-1"/></equality>'
    assert robot(copies(count=2, sep="-"), rest).constraint_names == ("tie",)


def test_a_tendon_over_copies_and_others_is_copied(robot):
    tendon = '<joint joint="j" coef="2"/><joint joint="o" coef="3"/>'
    mech = robot(
        copies(count=2),
        f'<tendon><fixed name="t">{tendon}</fixed></tendon>'
        '<actuator><motor tendon="t" gear="5"/></actuator>',
    )
    assert mech.coordinate_names == ("o", "j0", "k0", "j1", "k1")
    assert mech.B.T.tolist() == [[15.0, 10.0, 0.0, 0.0, 0.0], [15.0, 0.0, 0.0, 10.0, 0.0]]


@pytest.mark.parametrize("rest", [
    '<equality><connect body1="a" body2="out" anchor="0 0 0"/></equality>',
    '<equality><joint joint1="o" joint2="j"/></equality>',
    '<actuator><motor cranksite="s" slidersite="x" cranklength="1"/></actuator>',
])  # fmt: skip
def test_what_names_copies_and_others_is_refused(robot, rest):
    """MuJoCo leaves it out without a word."""
    with pytest.raises(hc.LoadError, match="names objects both inside and outside a <replicate>"):
        robot('<site name="x"/>' + copies(count=2), rest, actuators="skip")


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({}, "required attribute missing: 'count'"),
        ({"count": "0"}, "count must be a whole number above zero; got '0'"),
        ({"count": "-2"}, "count must be a whole number above zero"),
        ({"count": "2.5"}, "count must be a whole number above zero"),
        ({"count": "x"}, "count must be a whole number"),
        ({"count": "2", "offset": "1"}, "attribute 'offset' does not have enough data"),
        ({"count": "2", "euler": "1 2"}, "attribute 'euler' does not have enough data"),
        ({"count": "2", "at": "1 2 3"}, "<replicate> has no attribute 'at'"),
        ({"count": "2", "childclass": "x"}, "unknown default childclass"),
        (
            {"count": "1000000000"},
            "more than 100000 elements, all copies written out, are not read",
        ),
        ({"count": "60000"}, "more than 100000 elements"),
    ],
)
def test_mistakes(robot, attributes, message):
    with pytest.raises(hc.LoadError, match=message):
        robot(copies(**attributes))


def test_copies_of_copies_are_limited(robot):
    world = BODY
    for _ in range(90):
        world = copies(world, count=2)
    start = time.perf_counter()
    with pytest.raises(hc.LoadError, match="more than 100000 elements"):
        robot(world)
    assert time.perf_counter() - start < 5.0
    with pytest.raises(hc.LoadError, match="more than 100 <replicate> are not read"):
        robot(copies(count=1) * 101)


def test_deep_copies(robot):
    deep = "<body>" * 380 + BODY + "</body>" * 380
    mech = robot(copies(deep, count=2))
    assert mech.coordinate_names == ("o", "j0", "k0", "j1", "k1")
