"""The SDF files of Cassie: loops, ball joints and gearboxes counted by a second reading."""

from __future__ import annotations

import logging
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest
from documents_sdf import place
from shared_robots import CASSIE_SDF_NAMES, cassie_sdf

import holoctl as hc


class Drawing:
    """An SDF 1.6 by plain ElementTree: an independent reading of what the tests need."""

    def __init__(self, path):
        self.model = ElementTree.parse(path).getroot().find("model")
        self.links = {link.get("name"): link for link in self.model.findall("link")}
        self.joints = {j.get("name"): j for j in self.model.findall("joint")}
        self.gears = [n for n, j in self.joints.items() if j.get("type") == "gearbox"]

    def of_type(self, kind):
        return [n for n, j in self.joints.items() if j.get("type") == kind]

    @staticmethod
    def pose(element):
        numbers = [float(x) for x in (element.findtext("pose") or "0 0 0 0 0 0").split()]
        return pin.SE3(pin.rpy.rpyToMatrix(*numbers[3:]), np.array(numbers[:3]))

    def joint_frame(self, joint):
        """In the model, as drawn."""
        return self.pose(self.links[joint.findtext("child").strip()]) * self.pose(joint)

    def axis(self, joint):
        xyz = np.array([float(x) for x in joint.findtext("axis/xyz").split()])
        in_model = joint.findtext("axis/use_parent_model_frame") in ("1", "true")
        R = np.eye(3) if in_model else self.joint_frame(joint).rotation
        return R @ xyz / np.linalg.norm(xyz)

    @property
    def on_world(self):
        return [n for n, j in self.joints.items() if j.findtext("parent").strip() == "world"]


@pytest.mark.parametrize("free_flyer", [False, True])
@pytest.mark.parametrize("name", CASSIE_SDF_NAMES)
def test_cassie(name, free_flyer):
    drawing = Drawing(cassie_sdf(name))
    if free_flyer and drawing.on_world:
        with pytest.raises(hc.LoadError, match="ties the model to the world"):
            hc.load(cassie_sdf(name), free_flyer=True)
        return
    mech = hc.load(cassie_sdf(name), free_flyer=free_flyer)
    # Loops: joints that are no gears, less those of a spanning tree from the world.
    plain = set(drawing.joints) - set(drawing.gears)
    loops = len(plain) - (len(drawing.links) if drawing.on_world else len(drawing.links) - 1)
    closures = [c for c in mech.constraints if isinstance(c, hc.Closure)]
    couplings = [c for c in mech.constraints if isinstance(c, hc.Coupling)]
    assert len(closures) == loops > 0
    assert [c.name for c in couplings] == drawing.gears
    balls = set(drawing.of_type("ball"))
    assert len(balls) == 4
    in_tree = {mech.model.names[j] for j in range(1, mech.model.njoints) if mech.model.nqs[j] == 4}
    assert {c.name for c in closures if c.joint == "spherical"} | in_tree == balls
    fixed = {f.name for f in mech.model.frames if f.type == pin.FrameType.FIXED_JOINT}
    assert fixed - {"universe", "root_joint"} == set(drawing.of_type("fixed"))
    sizes = {"revolute": 1, "prismatic": 1, "ball": 3, "fixed": 0}
    cut = {c.name for c in closures}
    dof = sum(sizes[drawing.joints[n].get("type")] for n in plain - cut)
    assert mech.nv == dof + 6 * free_flyer
    # It stands as it is drawn, weighs what it weighs, and can be assembled.
    for link, element in drawing.links.items():
        found = place(mech.model, mech.reference, link)
        assert found.isApprox(drawing.pose(element), 1e-9), link
    masses = sum(float(link.findtext("inertial/mass")) for link in drawing.links.values())
    held = 0.0 if free_flyer else _mass_held_by_world(drawing)
    assert pin.computeTotalMass(mech.model) == pytest.approx(masses - held)
    q, v = hc.assemble(mech)
    M = hc.terms(mech, q, v).M
    assert pytest.approx(M.T, abs=1e-14) == M
    assert np.linalg.eigvalsh(M)[0] > 1e-6


def _mass_held_by_world(drawing):
    """The mass of the link that is fixed: none where a joint lets it move."""
    if drawing.on_world:
        assert not set(drawing.on_world) & set(drawing.of_type("fixed"))
        return 0.0
    return float(next(iter(drawing.links.values())).findtext("inertial/mass"))


@pytest.mark.parametrize("name", CASSIE_SDF_NAMES)
def test_joints_of_cassie_hold_where_it_has_moved(name):
    """Somewhere else, each joint of the file holds: its point, and its axis, in both links."""
    drawing = Drawing(cassie_sdf(name))
    mech = hc.load(cassie_sdf(name), tolerance=0.0)  # rounded: all rows, however weak
    rng = np.random.default_rng(3)
    guess = pin.integrate(mech.model, mech.reference, 0.01 * rng.uniform(-1, 1, mech.nv))
    q, _ = hc.assemble(mech, guess)
    assert np.abs(q - mech.reference).max() > 1e-3
    for label, joint in drawing.joints.items():
        parent, child = (joint.findtext(end).strip() for end in ("parent", "child"))
        if parent == "world" or label in drawing.gears:
            continue
        frame = drawing.joint_frame(joint)
        now = [
            place(mech.model, q, link) * drawing.pose(drawing.links[link]).inverse()
            for link in (parent, child)
        ]
        a, b = (moved.act(frame.translation) for moved in now)
        axis = drawing.axis(joint) if joint.find("axis") is not None else np.zeros(3)
        along, other = (moved.rotation @ axis for moved in now)
        off = a - b if joint.get("type") != "prismatic" else np.cross(along, a - b)
        assert np.abs(off).max() < 1e-8, label
        if joint.get("type") != "ball":
            assert along == pytest.approx(other, abs=1e-8), label
    for label in drawing.gears:
        _check_gear(drawing, label, mech, q)


def _check_gear(drawing, label, mech, q):
    """theta of the child = -ratio theta of the parent, both about the axis, from the reference."""
    gear = drawing.joints[label]
    body, parent, child = (
        gear.findtext(tag).strip() for tag in ("gearbox_reference_body", "parent", "child")
    )
    ratio, axis = float(gear.findtext("gearbox_ratio")), drawing.axis(gear)

    def angle(link):
        now, drawn = (
            [place(mech.model, q, body), place(mech.model, q, link)],
            [drawing.pose(drawing.links[n]) for n in (body, link)],
        )
        moved = [(a * b.inverse()).rotation for a, b in zip(now, drawn, strict=True)]
        return pin.log3(moved[0].T @ moved[1]) @ axis

    assert abs(angle(parent)) > 1e-5
    assert angle(child) == pytest.approx(-ratio * angle(parent), abs=1e-9)


def test_cassie_tells_of_springs_and_of_inertias_that_cannot_be(caplog):
    with caplog.at_level(logging.WARNING, "holoctl"):
        hc.load(cassie_sdf("cassie"))
    inertias, losses = (record.getMessage() for record in caplog.records)
    assert "'left-foot-reference', 'right-foot-reference'" in inertias
    assert "losses=True" in losses
    assert "springs of 'left-knee-shin-joint', 'left-tarsus-spring-joint'" in losses


def test_motors_of_cassie(tmp_path):
    """Ten motors, from a YAML file, hold it against gravity."""
    motors = ["roll", "yaw", "pitch", "knee", "foot"]
    names = [f"{side}-{motor}-op" for side in ("left", "right") for motor in motors]
    sheet = tmp_path / "motors.yaml"
    sheet.write_text(f"name_mot: {names}\n".replace("'", ""), "utf-8")
    mech = hc.load(cassie_sdf("cassie"), closures=sheet)
    assert mech.actuated == tuple(names)
