"""The view stands a mechanism against its gravity, whichever axis that is."""

from __future__ import annotations

from unittest.mock import MagicMock

import numpy as np
import pinocchio as pin
import pytest

import holoctl as hc
from holoctl.app.view.scene import Scene, upright
from holoctl.app.view.shapes import Geometry


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
