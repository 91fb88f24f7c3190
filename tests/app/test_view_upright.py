"""The view stands a mechanism against its gravity, whichever axis that is."""

from __future__ import annotations

from unittest.mock import MagicMock

import numpy as np
import pinocchio as pin
import pytest
import zoo
from shared_robots import SHARED_ROBOT_NAMES, shared_robot

import holoctl as hc
from holoctl.app.view.geometry import shapes_of
from holoctl.app.view.scene import Scene, upright
from holoctl.app.view.shapes import Geometry, Shape, box
from holoctl.app.view.shown_motions import motions, played, sweep
from holoctl.app.view.shown_posture import opened


@pytest.mark.parametrize(
    ("gravity", "x"),
    [
        ((0.0, 0.0, -9.81), (1.0, 0.0, 0.0)),
        ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0)),
        ((0.0, -9.81, 0.0), (1.0, 0.0, 0.0)),  # a drawing in x and y: x stays to the right
        ((0.0, 0.0, 9.81), None),
        ((3.0, -1.0, -9.0), None),
    ],
)
def test_up_is_against_gravity(gravity, x):
    turn = upright(np.array(gravity))
    assert np.allclose(turn @ turn.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(turn) == pytest.approx(1.0)
    if np.any(gravity):
        assert np.allclose(turn[:, 2], -np.array(gravity) / np.linalg.norm(gravity), atol=1e-12)
    if x is not None:
        assert np.allclose(turn[:, 0], x, atol=1e-12)


def test_the_ground_lies_below_and_one_looks_from_the_front():
    mech = hc.load(hc.robot_file("five_bar"))  # drawn in x and z
    model = mech.model.copy()
    model.gravity.linear = np.array([-9.81, 0.0, 0.0])
    mech, page = mech.with_model(model), MagicMock()
    Scene(page, mech, Geometry(()), hc.assemble(mech)[0])
    (up,) = page.scene.set_up_direction.call_args.args
    assert np.allclose(up, [1.0, 0.0, 0.0], atol=1e-12)
    (ground,) = (x for x in page.scene.add_mesh_simple.call_args_list if x.args[0] == "/ground")
    w, x, y, z = ground.kwargs["wxyz"]
    corners = ground.args[1] @ pin.Quaternion(w, x, y, z).toRotationMatrix().T
    camera = page.initial_camera
    assert np.allclose(corners[:, 0], corners[0, 0], atol=1e-6)
    assert corners[0, 0] < camera.look_at[0] < camera.position[0]


def seen(mech, q, film=()):
    """A scene of capsules: the page, and where the camera is."""
    page = MagicMock()
    return Scene(page, mech, shapes_of(mech), q, film), page, page.initial_camera


def points_of(mech, q):
    data = mech.model.createData()
    pin.forwardKinematics(mech.model, data, q)
    found = [
        data.oMi[s.joint].act(s.placement.act(np.array([0.0, 0.0, k * s.size[-1] / 2.0])))
        for s in shapes_of(mech).shapes
        for k in (-1.0, 1.0)
        if s.joint
    ]
    return np.array(found)


def in_the_picture(camera, up, points):
    """(n, 2): where points are, from -1 to 1 in a picture as wide as it is high."""
    ahead = camera.look_at - camera.position
    ahead /= np.linalg.norm(ahead)
    right = np.cross(ahead, up)
    right /= np.linalg.norm(right)
    away = points - camera.position
    assert (away @ ahead > 0.0).all()
    scale = np.tan(camera.fov / 2.0) * (away @ ahead)
    return np.column_stack([away @ right, away @ np.cross(right, ahead)]) / scale[:, None]


def ground_of(page):
    (ground,) = (x for x in page.scene.add_mesh_simple.call_args_list if x.args[0] == "/ground")
    return float(ground.args[1][:, 2].max())


GRAVITY = {"z": (0, 0, -9.81), "y": (0, -9.81, 0), "x": (9.81, 0, 0), "aslant": (3, -1, -9)}


@pytest.mark.parametrize("gravity", GRAVITY)
@pytest.mark.parametrize("name", hc.robot_names())
def test_all_of_a_robot_is_in_the_picture_and_above_the_ground(name, gravity):
    mech = hc.load(hc.robot_file(name))
    model = mech.model.copy()
    model.gravity.linear = np.array(GRAVITY[gravity], dtype=float)
    mech = mech.with_model(model)
    q = hc.assemble(mech)[0]
    _, page, camera = seen(mech, q)
    turn = upright(model.gravity.linear)
    points = points_of(mech, q)
    assert np.abs(in_the_picture(camera, turn[:, 2], points)).max() < 0.9
    assert np.abs(in_the_picture(camera, turn[:, 2], points)).max() > 0.4
    assert (points @ turn[:, 2]).min() >= ground_of(page)


@pytest.mark.parametrize("name", SHARED_ROBOT_NAMES)
def test_all_of_a_real_robot_is_in_the_picture(name):
    mech = hc.load(shared_robot(name))
    q = hc.assemble(mech)[0]
    _, page, camera = seen(mech, q)
    turn = upright(mech.model.gravity.linear)
    points = points_of(mech, q)
    assert np.abs(in_the_picture(camera, turn[:, 2], points)).max() < 0.9
    assert (points @ turn[:, 2]).min() >= ground_of(page)


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
def test_tiny_and_huge_mechanisms_are_in_the_picture(size):
    mech = zoo.four_bar(lengths=tuple(size * x for x in (0.2, 0.5, 0.4, 0.5)))
    q = hc.assemble(mech)[0]
    _scene, page, camera = seen(mech, q)
    up = upright(mech.model.gravity.linear)[:, 2]
    bodies = [x for x in page.scene.add_mesh_simple.call_args_list if "shape" in x.args[0]]
    assert bodies
    assert all(len(body.args[2]) > 20 for body in bodies)  # triangles
    places = np.abs(in_the_picture(camera, up, points_of(mech, q)))
    assert 0.4 < places.max() < 0.9
    assert camera.near < np.linalg.norm(camera.position - camera.look_at) < camera.far
    assert (points_of(mech, q) @ up).min() >= ground_of(page) - 1e-6 * size


def falling():
    model = pin.Model()
    j = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base")
    model.appendBodyToJoint(j, pin.Inertia.FromBox(1.0, 0.2, 0.2, 0.2), pin.SE3.Identity())
    model.addFrame(pin.Frame("foot", j, pin.SE3(np.eye(3), np.array([0.1, 0.0, -0.3])),
                             pin.FrameType.OP_FRAME))  # fmt: skip
    mech = hc.Mechanism(model)
    drops = np.linspace(0.0, 1.0, 50)[:, None] * np.array([0.2, 0.0, -0.8])
    return mech, np.array([[*p, 0.0, 0.0, 0.0, 1.0] for p in drops])


def test_a_film_is_in_the_picture_and_above_the_ground_from_its_start():
    mech, film = falling()
    _, page, camera = seen(mech, film[0], film)
    up = np.array([0.0, 0.0, 1.0])
    for q in film:
        assert np.abs(in_the_picture(camera, up, points_of(mech, q))).max() < 0.9
    assert ground_of(page) <= points_of(mech, film[-1])[:, 2].min()


def test_what_goes_far_away_does_not_make_the_start_a_dot():
    mech, film = falling()
    film[25:, 2] -= 1000.0
    _, _page, camera = seen(mech, film[0], film)
    places = in_the_picture(camera, np.array([0.0, 0.0, 1.0]), points_of(mech, film[0]))
    assert np.ptp(places, axis=0).max() > 0.1


@pytest.mark.parametrize("name", hc.robot_names())
def test_all_motions_are_in_the_picture_and_above_the_ground(name):
    start = opened(hc.load(hc.robot_file(name)))
    film = sweep(start)
    assert len(film) > 8 * start.mech.nu
    _, page, camera = seen(start.mech, start.q, film)
    up = upright(start.mech.model.gravity.linear)[:, 2]
    for one in motions(start.mech, start.q):
        for q in played(start.mech, start.q, one, 40):
            points = points_of(start.mech, q)
            assert np.abs(in_the_picture(camera, up, points)).max() < 0.95
            assert (points @ up).min() >= ground_of(page) - 1e-9


def test_a_large_mechanism_is_swept_in_part_or_not_at_all():
    start = opened(zoo.in_series(15))
    assert start.mech.nv == 45
    film = sweep(start)
    assert 0 < len(film) < 9 * len(motions(start.mech, start.q))
    assert sweep(opened(zoo.in_series(25))).shape == (0, 75)
    assert len(sweep(opened(zoo.triangle()))) == 0  # nothing moves
    open_one = opened(zoo.four_bar(lengths=(0.2, 0.5, 0.4, 2.0)))
    assert len(sweep(open_one)) == 0


def test_the_ground_is_where_the_robot_stands():
    leg = zoo.standing_leg()  # on contacts
    contact = leg.bound[leg.constraint_names.index(leg.constraint_names[0])].anchors[0]
    up = upright(leg.model.gravity.linear)[:, 2]
    _, page, _ = seen(leg, hc.assemble(leg)[0])
    assert ground_of(page) == pytest.approx(contact.placement.translation @ up, abs=1e-6)
    stewart = hc.load(hc.robot_file("stewart"))  # on a plate at height zero
    _, page, _ = seen(stewart, hc.assemble(stewart)[0])
    (plate,) = (s for s in shapes_of(stewart).shapes if s.joint == 0)
    assert ground_of(page) == pytest.approx(plate.vertices[:, 2].min(), abs=1e-6)
    assert -0.04 < ground_of(page) < 0.0
    delta = hc.load(hc.robot_file("delta"))  # hangs from its plate
    q = hc.assemble(delta)[0]
    _, page, _ = seen(delta, q)
    assert ground_of(page) == pytest.approx(points_of(delta, q)[:, 2].min(), abs=0.02)


def test_the_ground_follows_what_sinks_below_it():
    mech, film = falling()
    scene, page, _ = seen(mech, film[0])
    node = page.scene.add_mesh_simple.return_value  # one for all: the ground moves alone
    scene.show(film[-1])
    low = points_of(mech, film[-1])[:, 2].min()
    assert ground_of(page) + node.position[2] <= low
    scene.show(film[0])
    assert ground_of(page) + node.position[2] <= low


def test_a_floor_of_a_file_is_not_what_is_looked_at():
    mech = hc.load(hc.robot_file("five_bar"))
    floor = Shape.of(box(100.0, 100.0, 0.1), 0, pin.SE3(np.eye(3), np.array([0, 0, -0.5])), "floor")
    q, page, alone = hc.assemble(mech)[0], MagicMock(), shapes_of(mech)
    Scene(page, mech, Geometry((*alone.shapes, floor)), q)
    camera = page.initial_camera
    up = upright(mech.model.gravity.linear)[:, 2]
    places = np.abs(in_the_picture(camera, up, points_of(mech, q)))
    assert 0.2 < places.max() < 0.9
