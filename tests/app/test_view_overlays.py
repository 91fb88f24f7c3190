"""The arrows, the centre of mass and the traces of the view: what they show adds up to the equation
of motion, at every instant; what is not known is not shown."""

from __future__ import annotations

from unittest.mock import MagicMock

import numpy as np
import pinocchio as pin
import pytest
import zoo
from inside import Hand

import holoctl as hc
from holoctl.app.view.geometry import shapes_of
from holoctl.app.view.overlay_nodes import CENTRE, Overlays, add_overlay_boxes
from holoctl.app.view.overlays import (
    KINDS,
    Arrow,
    Instant,
    Scale,
    arrow_scale,
    centre_of_mass,
    shown_at,
    trace,
    traceable,
)
from holoctl.app.view.recorded_run import recorded
from holoctl.app.view.scene import Scene
from holoctl.app.view.shown_motions import motions, played
from holoctl.app.view.shown_posture import dragged, opened
from holoctl.tree.frames import resolve_frame

ROBOTS = ("five_bar", "delta", "stewart", "leg", "four_bar")


def robot(name):
    return hc.load(hc.robot_file(name))


def springy():
    """A five-bar with a spring between its elbows and a counterbalance."""
    mech = robot("five_bar")
    return mech.with_forces(
        [hc.Spring("elbow_left", "elbow_right", 300.0, 0.1, name="coil"),
         hc.Counterbalance("tip", 0.4, name="balance")]
    )  # fmt: skip


def efforts_of(mech, q, arrows):
    """(nv,): the efforts on the coordinates of arrows on bodies, each with its joint."""
    data = mech.model.createData()
    pin.computeJointJacobians(mech.model, data, q)
    total = np.zeros(mech.nv)
    for arrow, joint in arrows:
        wrench = np.zeros(6)
        if arrow.moment:
            wrench[3:] = arrow.vector
        else:
            wrench[:] = *arrow.vector, *np.cross(arrow.point, arrow.vector)
        if joint:
            total += pin.getJointJacobian(mech.model, data, joint, pin.WORLD).T @ wrench
    return total


def on_bodies(mech, q, shown):
    """Arrows with the joints of their bodies: of motors and constraints also the opposite ones."""
    pairs = []
    for arrow in shown.of("motors"):
        j = mech.model.getJointId(arrow.name)
        opposite = Arrow(arrow.kind, arrow.name, arrow.point, -arrow.vector, arrow.moment)
        pairs += [(arrow, j), (opposite, int(mech.model.parents[j]))]
    bound = dict(zip(mech.constraint_names, mech.bound, strict=True))
    for arrow in shown.of("constraints"):
        rows = bound[arrow.name]
        opposite = Arrow(arrow.kind, arrow.name, arrow.point, -arrow.vector, arrow.moment)
        pairs += [(arrow, rows.frames2[0].joint), (opposite, rows.frames1[0].joint)]
    return pairs


@pytest.mark.parametrize("name", ROBOTS)
def test_the_arrows_of_a_pose_carry_its_weight(name):
    mech = robot(name)
    q = opened(mech).q
    shown = shown_at(mech, Instant(q))
    assert all(word.startswith("Redundant rows") for word in shown.words)
    h = pin.rnea(mech.model, mech.model.createData(), q, np.zeros(mech.nv), np.zeros(mech.nv))
    found = efforts_of(mech, q, on_bodies(mech, q, shown))
    np.testing.assert_allclose(found, h, atol=1e-5 * np.abs(h).max())
    (weight,) = shown.of("weight")
    mass = sum(x.mass for x in list(mech.model.inertias)[1:])
    np.testing.assert_allclose(weight.vector, mass * mech.model.gravity.linear)
    np.testing.assert_allclose(weight.point, shown.centre)


def test_the_arrows_of_a_run_are_those_of_its_instants():
    mech = robot("five_bar")
    q, v = hc.assemble(mech)
    home = mech.motor_positions(q)

    def reference(t):
        return home + 0.3 * np.sin(4.0 * t), 1.2 * np.cos(4.0 * t) * np.ones(2), np.zeros(2)

    law = hc.ComputedTorque(mech, kp=400.0, kd=40.0)
    run = hc.simulate(mech, law.track(reference), q, v, 0.4)
    film = recorded(mech, run)
    for t in (0.1, 0.25):
        at = film.instant(t)
        i = film.index(t)
        assert at.t == run.t[i]
        shown = shown_at(mech, at)
        a = hc.forward_dynamics(mech, at.q, at.v, u=at.u).a
        needed = pin.rnea(mech.model, mech.model.createData(), at.q, at.v, a)
        found = efforts_of(mech, at.q, on_bodies(mech, at.q, shown))
        np.testing.assert_allclose(found, needed, atol=1e-5 * np.abs(needed).max())
        still = shown_at(mech, Instant(at.q))  # the same pose at rest is another matter
        assert not np.allclose(shown.of("constraints")[0].vector,
                               still.of("constraints")[0].vector, rtol=1e-2)  # fmt: skip


def test_springs_pull_on_both_bodies():
    mech = springy()
    q = opened(mech).q
    a, b, up = shown_at(mech, Instant(q), ["forces"]).arrows
    assert (a.name, b.name, up.name) == ("coil", "coil", "balance")
    np.testing.assert_allclose(a.vector, -b.vector)
    assert (b.point - a.point) @ a.vector > 0.0  # it is stretched
    np.testing.assert_allclose(np.linalg.norm(a.vector),
                               300.0 * (np.linalg.norm(b.point - a.point) - 0.1))  # fmt: skip
    np.testing.assert_allclose(up.vector, -0.4 * mech.model.gravity.linear)
    left, right, tip = (
        resolve_frame(mech.model, f, "") for f in ("elbow_left", "elbow_right", "tip")
    )
    found = efforts_of(mech, q, [(a, left.joint), (b, right.joint), (up, tip.joint)])
    data = mech.model.createData()
    rest = np.zeros(mech.nv)
    h = pin.rnea(mech.model, data, q, rest, rest)
    shown = shown_at(mech, Instant(q))
    total = found + efforts_of(mech, q, on_bodies(mech, q, shown))
    np.testing.assert_allclose(total, h, atol=1e-5 * np.abs(h).max())


def test_a_rope_that_is_slack_has_no_arrow():
    mech = robot("five_bar")
    rope = hc.Spring("elbow_left", "elbow_right", 300.0, 5.0, unilateral=True)
    mech = mech.with_forces([rope])
    assert shown_at(mech, Instant(opened(mech).q), ["forces"]).arrows == ()


def test_what_is_not_known_is_not_shown():
    mech = robot("five_bar")
    q = opened(mech).q
    for missing in (np.array([np.nan, 1.0]), np.full(2, np.inf)):
        shown = shown_at(mech, Instant(q, v=np.zeros(mech.nv), u=missing))
        assert {arrow.kind for arrow in shown.arrows} == {"weight"}
        assert "not recorded" in shown.words[0]
    broken = zoo.four_bar(lengths=(0.2, 0.5, 0.4, 2.0))  # the bars do not meet
    shown = shown_at(broken, Instant(opened(broken).q))
    assert {arrow.kind for arrow in shown.arrows} <= {"weight"}
    assert "unknown" in shown.words[0]
    dead = zoo.slider_crank(reference=zoo.DEAD_CENTRE)
    shown = shown_at(dead, Instant(opened(dead).q))
    assert not shown.of("motors")
    assert not shown.of("constraints")
    assert shown.words
    lost = shown_at(mech, Instant(np.full(mech.nq, np.nan)))
    assert lost.arrows == ()
    assert lost.centre is None
    assert "finite" in lost.words[0]


def test_forces_along_redundant_rows_are_left_out():
    mech = zoo.six_row_four_bar()
    q, rest = opened(mech).q, np.zeros(mech.nv)
    shown = shown_at(mech, Instant(q), ["constraints"])
    result = hc.inverse_dynamics(mech, q, rest, rest, coordinates="all")
    assert not result.unique.all()
    assert "no unique force" in shown.words[-1]
    closure = mech.constraint_names[0]
    for label, known in zip(mech.bound[0].labels, result.unique.tolist(), strict=False):
        assert (f"'{label}'" in shown.words[-1]) is not known
    part = np.where(result.unique, result.multipliers, 0.0)
    wrench = hc.constraint_wrenches(mech, q, part)[closure][1]
    force = next(arrow for arrow in shown.arrows if not arrow.moment)
    np.testing.assert_allclose(force.vector, wrench.force)
    mech = zoo.third_bar()  # a bar more than is needed: no force of either is known
    shown = shown_at(mech, Instant(opened(mech).q), ["constraints"])
    assert shown.arrows == ()
    assert "no unique force" in shown.words[0]


def test_a_motor_that_turns_and_slides_is_left_out():
    mech = zoo.ZOO["screw_chain"]()
    shown = shown_at(mech, Instant(opened(mech).q), ["motors"])
    names = {arrow.name for arrow in shown.arrows}
    assert all(mech.model.existJointName(name) for name in names)


def test_the_centre_of_mass():
    model = zoo.vertical(pin.Model())
    zoo.add_body(model, 0, pin.JointModelRZ(), zoo.at(), "one", zoo.bar(0.4, mass=2.0))
    mech = hc.Mechanism(model, [], ["one"])
    np.testing.assert_allclose(centre_of_mass(mech, np.array([np.pi / 2])), [0, 0.2, 0], atol=1e-12)
    shown = shown_at(mech, Instant(np.zeros(1)))
    (motor,) = shown.of("motors")
    assert motor.moment
    np.testing.assert_allclose(motor.vector, [0.0, 0.0, 2.0 * 9.81 * 0.2], atol=1e-9)
    np.testing.assert_allclose(motor.point, 0.0, atol=1e-12)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_the_scale_is_round_and_fits(size):
    mech = robot("stewart")
    at = Instant(opened(mech).q)
    scale = arrow_scale(mech, size, [at])
    assert {f"{scale.force:.0e}"[0], f"{scale.moment:.0e}"[0]} <= {"1", "2", "5"}
    longest = max(np.linalg.norm(scale.length(arrow)) for arrow in shown_at(mech, at).arrows)
    assert 0.1 * size < longest <= 0.36 * size
    assert str(Scale(200.0, 50.0)) == "An arrow of 0.1 m is 20 N or 5 N m."


def test_a_trace_is_the_path_of_its_frame():
    mech = robot("five_bar")
    q = opened(mech).q
    film = played(mech, q, motions(mech, q)[0], 40)
    frames = {frame.name: frame for frame in traceable(mech)}
    assert "tip" in frames
    path = trace(mech, frames["tip"], film)
    assert path.shape == (len(film), 3)
    data = mech.model.createData()
    for q, p in zip(film, path, strict=True):
        pin.framesForwardKinematics(mech.model, data, q)
        np.testing.assert_allclose(
            p, data.oMf[mech.model.getFrameId("tip")].translation, atol=1e-12
        )
    long = trace(mech, frames["tip"], np.repeat(film, 100, axis=0))
    assert len(long) <= 2000
    np.testing.assert_allclose(long[[0, -1]], path[[0, -1]], atol=1e-12)
    assert trace(mech, frames["tip"], []).shape == (0, 3)


# -------------------------------------------------------------------------------- in a scene


class Nodes:
    """The nodes of a page that are there, by name, as viser has them."""

    def __init__(self):
        self.there = {}
        self.scene = self
        self.added = 0

    def atomic(self):
        return MagicMock()

    def _add(self, name, points=None, **options):
        node = MagicMock()
        node.points, node.position = points, options.get("position")
        node.remove.side_effect = lambda: self.there.pop(name, None)
        self.there[name] = node
        self.added += 1
        return node

    def add_arrows(self, name, points, color, **options):
        return self._add(name, points, **options)

    def add_line_segments(self, name, points, color, **options):
        return self._add(name, points, **options)

    def add_icosphere(self, name, radius, color, **options):
        return self._add(name, **options)


def test_overlays_follow_and_vanish():
    mech, page = robot("five_bar"), Nodes()
    start = opened(mech)
    overlays = Overlays(page, mech, 1.0)
    overlays.text = MagicMock(content="")
    overlays.show(Instant(start.q))
    assert not page.there  # hidden at first
    for name in (*KINDS, CENTRE):
        overlays.want(name, True)
    assert set(page.there) == {
        f"/overlays/{x}" for x in ("weight", "motors", "constraints", CENTRE)
    }
    assert str(overlays.scale) in overlays.text.content
    here = start
    for target in (0.1, 0.2, 0.3):
        here = dragged(here, 0, start.motors[0] + target)
        overlays.show(Instant(here.q))
        expected = shown_at(mech, Instant(here.q))
        ends = [
            arrow.point + share * overlays.scale.length(arrow)
            for arrow in expected.of("motors")
            for share in (1.0, 0.8)
        ]
        found = page.there["/overlays/motors"].points
        np.testing.assert_allclose(found[:, 1], ends, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(page.there["/overlays/centre"].position, expected.centre)
    scale = overlays.scale
    overlays.stretch(2.0)
    assert overlays.scale == Scale(scale.force / 2.0, scale.moment / 2.0)
    assert str(overlays.scale) in overlays.text.content
    none = np.full(mech.nu, np.nan)
    overlays.show(Instant(here.q, v=np.zeros(mech.nv), u=none))
    assert set(page.there) == {"/overlays/weight", "/overlays/centre"}
    assert "not recorded" in overlays.text.content
    overlays.show(Instant(start.q))
    assert "/overlays/motors" in page.there
    for name in (*KINDS, CENTRE):
        overlays.want(name, False)
    assert not page.there


def test_traces_follow_a_film_and_vanish_with_it():
    mech, page = robot("five_bar"), Nodes()
    start = opened(mech)
    overlays = Overlays(page, mech, 1.0)
    tip, elbow = (resolve_frame(mech.model, f, "") for f in ("tip", "elbow_left"))
    overlays.trace(tip, True)
    assert not page.there  # nothing is shown that has a path
    film = played(mech, start.q, motions(mech, start.q)[1], 40)
    overlays.follow(film)
    (node,) = page.there.values()
    np.testing.assert_allclose(node.points[:, 0], trace(mech, tip, film)[:-1], atol=1e-6)
    added = page.added
    overlays.follow(film)  # the same: not sent again
    assert page.added == added
    overlays.trace(elbow, True)
    assert len(page.there) == 2
    assert overlays.traced() == ("tip", "elbow_left")
    overlays.trace(tip, False)
    assert len(page.there) == 1
    overlays.follow(None)
    assert not page.there


def test_the_panel_has_a_box_for_each_that_there_is():
    gui = MagicMock()
    overlays = Overlays(Nodes(), robot("five_bar"), 1.0)
    add_overlay_boxes(gui, overlays)
    boxes = [call.args[0] for call in gui.add_checkbox.call_args_list]
    assert boxes == ["Weight", "Motor efforts", "Constraint forces", "Centre of mass", "Trace it"]
    gui = MagicMock()
    add_overlay_boxes(gui, Overlays(Nodes(), springy(), 1.0))
    assert "Spring forces" in [call.args[0] for call in gui.add_checkbox.call_args_list]


def test_a_scene_shows_overlays_with_every_configuration():
    mech, page = robot("five_bar"), MagicMock()
    start = opened(mech)
    scene = Scene(page, mech, shapes_of(mech), start.q)
    scene.overlays.want("weight", True)
    scene.show(dragged(start, 0, start.motors[0] + 0.2).q)
    points = page.scene.add_arrows.return_value.points
    there = shown_at(mech, scene.overlays.at, ["weight"]).arrows[0].point
    np.testing.assert_allclose(points[0, 0], there, rtol=1e-5)
    assert not np.allclose(there, shown_at(mech, Instant(start.q), ["weight"]).arrows[0].point)


def test_on_a_page_a_run_has_its_own_forces():
    pytest.importorskip("viser")
    mech = robot("five_bar")
    q, v = hc.assemble(mech)
    law = hc.ComputedTorque(mech, kp=400.0, kd=40.0)
    home = mech.motor_positions(q)
    run = hc.simulate(mech, law.track(lambda t: (home + 2.0 * t**2, 4.0 * t * np.ones(2),
                                                 4.0 * np.ones(2))), q, v, 0.3)  # fmt: skip
    with hc.view(mech, run, port=0) as view:
        hand = Hand(view)
        overlays = hand.overlays
        overlays.want("motors", True)
        tip = next(frame for frame in traceable(mech) if frame.name == "tip")
        overlays.trace(tip, True)
        hand.wind(0.2)
        at = recorded(mech, run).instant(0.2)
        np.testing.assert_array_equal(overlays.at.u, at.u)
        assert overlays.drawn == {"motors", "tip"}
        hand.slide(0, hand.values[0] + 0.05)  # another pose, at rest
        assert overlays.at.u is None
        assert overlays.drawn == {"motors"}
