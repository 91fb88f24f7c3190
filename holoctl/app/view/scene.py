"""The scene: a mechanism as nodes of a page, placed by its joints.

Each joint is a node, and shapes fixed in its body are its children, so that a configuration is one
placement per joint, and nothing else is sent while the mechanism moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.app.palette import CLOSURE, FAINT, OPEN, ROD, rgb
from holoctl.app.palette import GROUND as GROUND_IN_THE_DARK
from holoctl.app.skeleton import is_rod, skeleton
from holoctl.app.view.joint_marks import joint_marks
from holoctl.app.view.labels import labels_of
from holoctl.app.view.overlay_nodes import Overlays
from holoctl.app.view.overlays import Instant
from holoctl.app.view.shapes import Bar, Geometry, Shape, color_of, cylinder
from holoctl.app.view.triangles import joined
from holoctl.base.checks import Array, Vector
from holoctl.constraints.contact import Contact
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frozen_model import plain

if TYPE_CHECKING:
    import viser

__all__ = ["LAYERS", "Scene", "upright"]


LAYERS = ("bodies", "closures", "joints", "frames", "names")
"""Layers that can be shown and hidden."""

SHOWN = ("bodies", "closures", "joints")
"""Layers that are shown at first."""

AMBIENT = 1.6
"""Intensity of light from all sides, without reflections."""

GROUND = 1.2
"""Half the side of the drawn ground, as a share of the size of the mechanism."""

FIELD, MARGIN = np.deg2rad(40.0), 1.2
"""Vertical field of view of the camera, rad, and the margin around the mechanism, as a factor."""

FROM = np.array([0.55, -1.25, 0.45])
"""Direction to the camera: in front, a little to the right and above, z up."""

LOOKED_AT = 240
"""Largest number of configurations of a film that determine the view."""

LEVEL = 0.5
"""A contact is one with the ground if the upward component of its normal is larger."""

LABELS = 0.85
"""Size of the letters of labels, as a factor."""

FAR = 4.0
"""Configurations that reach farther than this from the start, in sizes of the mechanism, do not
determine the view."""

SINKS = 0.025
"""Bodies may be below the ground by this share of the size of the mechanism, half the thickness of
what stands on it; if they are lower, the ground goes down with them."""

STANDS = 0.03
"""The ground is at height zero of the world if the lowest point is above it by at most this share
of the size of the mechanism."""

POINT, AXIS, THREAD, ROD_RADIUS, STRIPE = 0.02, 0.09, 0.004, 0.006, 0.0016
"""Radius of a point, length of an axis, thickness of a line, radius of a rod and width of a stripe,
as shares of the size of the mechanism."""


class _CameraView(NamedTuple):
    """The visible box, by its corners in upright axes, and the distance of the camera; the lowest
    heights of bodies that move and of those that are fixed to the world."""

    low: Vector
    high: Vector
    distance: float
    lowest: float
    below: float


class _ColoredMesh(NamedTuple):
    """The triangles of a body that have one color, in the axes of its joint."""

    joint: int
    color: tuple[float, ...]
    from_file: bool
    vertices: Array
    faces: NDArray[np.int64]


class Scene:
    """The nodes of one mechanism on one page.

    Parameters
    ----------
    server : viser.ViserServer
    mech : Mechanism
    geometry : Geometry
        The shapes of its bodies.
    q : (nq,) array
        The first configuration; the mechanism's size there scales points and axes.
    film : iterable of (nq,) arrays, optional
        Other configurations that will be shown, if they are known, such as those of all motions;
        they are in the view, and above the ground.
    """

    def __init__(
        self, server: viser.ViserServer, mech: Mechanism, geometry: Geometry, q: Vector,
        film: Iterable[Vector] = (),
    ) -> None:  # fmt: skip
        self._server, self._mech = server, mech
        self._model, self._data = plain(mech.model), plain(mech.model).createData()
        self._parts: dict[str, list[Any]] = {layer: [] for layer in LAYERS}
        self._shown = set(SHOWN)
        self._open, self._drawn_bars = list[Any](), list[Any]()
        self._last = np.full((mech.model.njoints, 7), np.nan)
        self._upright, self._meshes = upright(mech.model.gravity.linear), _by_color(geometry.shapes)
        film = list(film)
        meshes, seen = self._meshes, self._view(q, film)
        self._ground = self._ground_height(seen)
        self._bodies = [
            server.scene.add_frame(f"/joints/{j}", show_axes=False)
            for j in range(mech.model.njoints)
        ]
        self._add_meshes(meshes)
        self._add_closures()
        self._add_bars(geometry.bars)
        self._add_joints()
        self._add_labels()
        self._add_frames()
        self._look(seen)
        self.overlays = Overlays(server, mech, self.size)
        self.overlays.expect([Instant(at) for at in (q, *film)])
        self.show(q)

    def show(self, q: Vector, at: Instant | None = None) -> None:
        """Show the mechanism at q, with the overlays of an instant; by default, at rest."""
        pin.forwardKinematics(self._model, self._data, q)
        poses = np.array([pin.SE3ToXYZQUAT(X) for X in self._data.oMi])
        with self._server.atomic():
            for j in np.flatnonzero((poses != self._last).any(axis=1)):
                x, y, z, w = poses[j, 3:].tolist()
                self._bodies[j].position = tuple(poses[j, :3].tolist())
                self._bodies[j].wxyz = (w, x, y, z)
            for bar, node in zip(self._bars, self._drawn_bars, strict=True):
                node.position, node.wxyz, node.scale = self._stretched(bar)
            low = -float(self._reach(np.array([[0.0, 0.0, -1.0]]))[0])
            if low < self._ground - SINKS * self.size:  # the ground sinks with bodies, never rises
                self._sunk.position = tuple((self._upright[:, 2] * (low - self._at_first)).tolist())
                self._ground = low
        self._last = poses
        self.overlays.show(Instant(q) if at is None else at)

    def show_open(self, q: Vector, t: float = 0.0) -> None:
        """Show constraints that do not hold at q and t in red; nothing if all hold."""
        for node in self._open:
            node.remove()
        self._open.clear()
        found, scene = skeleton(self._mech, q, t), self._server.scene
        for i, p in enumerate(found.open_ends):
            self._open.append(self._ball(f"/open/end {i}", rgb(OPEN), p, 1.6))
        if len(found.gaps):
            lines = scene.add_line_segments(
                "/open/gaps",
                found.gaps.astype(np.float32),
                rgb(OPEN),
                thickness=2 * THREAD * self.size,
            )
            self._open.append(lines)

    def layer(self, name: str, shown: bool) -> None:
        """Show a layer of `LAYERS`, or hide it."""
        (self._shown.add if shown else self._shown.discard)(name)
        with self._server.atomic():
            for node in self._parts[name]:
                node.visible = shown

    def light(self, rich: bool) -> None:
        """Use shadows and reflections, which need a graphics card, or plain ambient light."""
        scene = self._server.scene
        with self._server.atomic():
            scene.configure_default_lights(True, cast_shadow=rich)
            scene.configure_environment_map("warehouse" if rich else None)
            self._ambient.visible = not rich
            for node in self._parts["bodies"]:
                node.material = "standard" if rich else "toon3"

    def dark(self, on: bool) -> None:
        """Draw the ground for a dark page, or for a light one."""
        self._sunk.color = rgb(GROUND_IN_THE_DARK if on else FAINT)

    # --------------------------------------------------------------------------------- the nodes

    def _ball(
        self, where: str, color: tuple[int, int, int], place: Vector, times: float = 1.0
    ) -> Any:
        return self._server.scene.add_icosphere(
            where, times * POINT * self.size, color, subdivisions=2,
            position=tuple(place.tolist()),
        )  # fmt: skip

    def _add(self, layer: str, node: Any) -> None:
        node.visible = layer in self._shown
        self._parts[layer].append(node)

    def _add_mesh(
        self, where: str, vertices: Array, faces: NDArray[np.int64], color: Sequence[float],
        layer: str = "bodies", **how: Any,
    ) -> Any:  # fmt: skip
        node = self._server.scene.add_mesh_simple(
            where, vertices.astype(np.float32), faces.astype(np.uint32),
            color=np.array([round(255 * c) for c in color[:3]]), **how,
        )  # fmt: skip
        self._add(layer, node)
        return node

    def _add_meshes(self, meshes: Sequence[_ColoredMesh]) -> None:
        for i, look in enumerate(meshes):
            there = (*look.color, 1.0)[3]
            self._add_mesh(
                f"/joints/{look.joint}/shape {i}", look.vertices, look.faces, look.color,
                opacity=there if there < 1.0 else None, material="toon3",
                side="double" if look.from_file else "front",  # meshes of files may be open
            )  # fmt: skip

    def _add_closures(self) -> None:
        for k, rows in enumerate(self._mech.bound):
            ends = rows.anchors
            if isinstance(rows, WrenchRows):  # both ends coincide, except those of a rod
                pairs = enumerate(rows.frames1)
                ends = (*rows.frames2, *(f for i, f in pairs if is_rod(rows, i)))
            for i, frame in enumerate(ends):
                where = f"/joints/{frame.joint}/closure {k} {i}"
                self._add("closures", self._ball(where, rgb(CLOSURE), frame.placement.translation))

    def _add_bars(self, slides: Sequence[Bar]) -> None:
        """Add bars between two points: prismatic joints, and rods, which are rows without a
        body."""
        rods = [
            Bar((a.joint, b.joint), (a.placement.translation, b.placement.translation),
                ROD_RADIUS * self.size, color_of(ROD))
            for rows in self._mech.bound if isinstance(rows, WrenchRows)
            for i, (a, b) in enumerate(zip(rows.frames1, rows.frames2, strict=True))
            if is_rod(rows, i)
        ]  # fmt: skip
        self._bars = (*rods, *slides)
        for i, bar in enumerate(self._bars):  # of length one, and scaled
            solid = Shape.of(cylinder(bar.radius, 1.0), 0, pin.SE3.Identity(), "bar", bar.color)
            node = self._add_mesh(f"/bars/{i}", *joined([solid]), bar.color)
            self._drawn_bars.append(node)

    def _stretched(self, bar: Bar) -> tuple[Any, Any, tuple[float, float, float]]:
        """Position, orientation and scale of a bar."""
        a, b = (self._data.oMi[j].act(p) for j, p in zip(bar.joints, bar.ends, strict=True))
        turn = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), b - a).matrix()
        pose, length = _pose(pin.SE3(turn, (a + b) / 2.0)), float(np.linalg.norm(b - a))
        return pose["position"], pose["wxyz"], (1.0, 1.0, max(length, 1e-6 * self.size))

    def _add_joints(self) -> None:
        for i, mark in enumerate(joint_marks(self._mech)):
            vertices, faces = joined([mark])
            self._add_mesh(
                f"/joints/{mark.joint}/mark {i}", vertices, faces, mark.color, layer="joints",
                material="toon3", side="front",
            )  # fmt: skip

    def _add_labels(self) -> None:
        for i, one in enumerate(labels_of(self._mech)):
            self._add_label(
                "names", f"/joints/{one.joint}/label {i}", one.text, one.place, one.corner
            )

    def _add_label(
        self, layer: str, where: str, text: str, place: Vector, corner: Any = "top-left"
    ) -> None:
        at = tuple(place.tolist())
        node = self._server.scene.add_label(
            where, text, position=at, font_screen_scale=LABELS, anchor=corner
        )
        self._add(layer, node)

    def _add_frames(self) -> None:
        named = [
            (f.parentJoint, f.placement, f.name)
            for f in self._model.frames
            if f.type in (pin.FrameType.JOINT, pin.FrameType.BODY, pin.FrameType.OP_FRAME)
        ]
        held = [(f.joint, f.placement, f.name) for b in self._mech.bound for f in b.anchors]
        once = dict[tuple[int, str], tuple[int, pin.SE3, str]]()
        for j, X, name in (*named, *held):
            once.setdefault((j, str(np.round(X.homogeneous, 9).tolist())), (j, X, name))
        labelled = {(one.joint, str(np.round(one.place, 9) + 0.0)) for one in labels_of(self._mech)}
        for i, (j, X, name) in enumerate(once.values()):
            axes = self._server.scene.add_frame(
                f"/joints/{j}/frame {i}",
                axes_length=AXIS * self.size,
                axes_radius=AXIS * self.size / 24.0,
                **_pose(X),
            )
            self._add("frames", axes)
            if (j, str(np.round(X.translation, 9) + 0.0)) not in labelled:
                self._add_label("frames", f"/joints/{j}/name {i}", name, X.translation)

    def _view(self, q: Vector, film: Sequence[Vector]) -> _CameraView:
        """The view of the mechanism at q and in a film, without configurations that are far
        away."""
        axes = np.vstack([np.eye(3), -np.eye(3)])
        points = skeleton(self._mech, q).points @ self._upright
        points = points if len(points) else np.zeros((1, 3))
        box = np.maximum((points @ axes.T).max(axis=0), self._reach(axes, q))
        self.size = size = float(np.linalg.norm(box[:3] + box[3:])) or 1.0
        near, kept = box + FAR * size, [q]
        for there in film[:: 1 + len(film) // LOOKED_AT]:
            reach = self._reach(axes, there)
            if (reach <= near).all():
                kept.append(there)
                box = np.maximum(box, reach)
        lowest = -float(box[5])
        fixed = [x.vertices @ self._upright for x in self._meshes if not x.joint]  # may be a floor
        below = min((float(x[:, 2].min()) for x in fixed), default=np.inf)
        points = np.vstack([points, *(np.clip(x, -size - box[3:], size + box[:3]) for x in fixed)])
        box = np.maximum(box, (points @ axes.T).max(axis=0))
        low, high, sides = -box[3:], box[:3], _sides()
        reach = np.max([(points @ sides.T).max(axis=0), *(self._reach(sides, x) for x in kept)], 0)
        return _CameraView(
            low, high, float((reach - sides @ (low + high) / 2.0).max()), lowest, below
        )

    def _ground_height(self, seen: _CameraView) -> float:
        """The height of the ground: that of the lowest contact with it; else zero, if the mechanism
        stands there, or the bottom of its base; else the lowest point of what is seen."""
        up = self._upright[:, 2]
        contacts = [
            float(up @ rows.anchors[0].placement.translation)
            for given, rows in zip(self._mech.constraints, self._mech.bound, strict=True)
            if isinstance(given, Contact) and float(up @ np.array(given.normal)) > LEVEL
        ]
        if contacts:
            return min(contacts)
        stands = -SINKS * self.size <= seen.lowest <= STANDS * self.size
        low = float(seen.low[2])
        return min(0.0, max(low, seen.below)) if stands else low

    def _reach(self, normals: Array, q: Vector | None = None) -> Array:
        """The largest coordinates of moving bodies along normals (k, 3) in upright axes, at q or at
        the shown configuration."""
        if q is not None:
            pin.forwardKinematics(self._model, self._data, q)
        along, found = self._upright @ normals.T, np.full(len(normals), -np.inf)
        for look in self._meshes:
            if look.joint and len(look.vertices):
                X = self._data.oMi[look.joint]
                far = (look.vertices @ (X.rotation.T @ along)).max(axis=0) + X.translation @ along
                found = np.maximum(found, far)
        return found

    def _look(self, seen: _CameraView) -> None:
        """Add light and ground, and place the camera."""
        scene, turn = self._server.scene, self._upright
        middle, up = turn @ (seen.low + seen.high) / 2.0, turn[:, 2]
        scene.set_up_direction((float(up[0]), float(up[1]), float(up[2])))
        self._ambient = scene.add_light_ambient("/light", intensity=AMBIENT)
        self.light(rich=False)
        wide = float(np.linalg.norm(seen.high - seen.low)) or 1.0
        vertices, faces = _ground((seen.low + seen.high) / 2.0, self._ground, wide)
        self._at_first = self._ground
        self._sunk = scene.add_mesh_simple(
            "/ground", vertices, faces, color=rgb(FAINT), side="double", material="toon3",
            cast_shadow=False, **_pose(pin.SE3(turn, np.zeros(3))),
        )  # fmt: skip
        camera = self._server.initial_camera
        camera.near, camera.far = 1e-3 * self.size, 1e3 * self.size
        camera.fov = FIELD
        camera.look_at = middle
        camera.position = middle + max(seen.distance, self.size) * turn @ _towards()


def upright(gravity: Vector) -> Array:
    """The smallest rotation that turns z against gravity, (3, 3); the identity without gravity."""
    z = np.array([0.0, 0.0, 1.0])
    if not np.any(gravity):
        return np.eye(3)
    return np.asarray(pin.Quaternion.FromTwoVectors(z, -gravity).toRotationMatrix())


def _ground(
    middle: Vector, height: float, size: float
) -> tuple[NDArray[np.float32], NDArray[np.uint32]]:
    """A net of stripes on the ground at round distances, which is faster to draw than a plane."""
    cell = 10.0 ** np.floor(np.log10(size)) / 2.0
    count = int(np.ceil(GROUND * size / cell))
    end, half = cell * count, STRIPE * size / 2.0
    at = cell * np.arange(-count, count + 1)
    corners = np.array([[-half, -end], [half, -end], [half, end], [-half, end]])
    stripes = np.concatenate(
        [corners + np.array([x, 0.0]) for x in at]
        + [corners[:, ::-1] + np.array([0.0, y]) for y in at]
    )
    stripes += np.round(middle[:2] / cell) * cell
    vertices = np.column_stack([stripes, np.full(len(stripes), height)])
    one = np.array([[0, 1, 2], [0, 2, 3]])
    faces = (4 * np.arange(2 * len(at))[:, None, None] + one).reshape(-1, 3)
    return vertices.astype(np.float32), faces.astype(np.uint32)


def _pose(X: pin.SE3) -> dict[str, Any]:
    x, y, z, w = pin.Quaternion(X.rotation).coeffs().tolist()
    return {"position": tuple(X.translation.tolist()), "wxyz": (w, x, y, z)}


def _by_color(shapes: Sequence[Shape]) -> list[_ColoredMesh]:
    """One mesh for all shapes of a body with the same color: fewer meshes are drawn faster."""
    alike: dict[tuple[int, tuple[float, ...], bool], list[Shape]] = {}
    for shape in shapes:
        alike.setdefault((shape.joint, shape.color, shape.kind == "mesh"), []).append(shape)
    return [
        _ColoredMesh(j, color, is_mesh, *joined(group))
        for (j, color, is_mesh), group in alike.items()
    ]


def _towards() -> Vector:
    """The unit vector from the middle of the view to the camera, in upright axes."""
    return FROM / float(np.linalg.norm(FROM))


def _sides() -> Array:
    """Outward normals (4, 3) of the sides of the view frustum, in upright axes.

    Their lengths are such that p is visible if ``distance >= n (p - middle)``, for a picture that
    is as wide as high, as there may be a panel next to it.
    """
    back = _towards()
    right = np.cross([0.0, 0.0, 1.0], back)
    right /= float(np.linalg.norm(right))
    up, slope = np.cross(back, right), MARGIN / np.tan(FIELD / 2.0)
    return np.array([back + slope * side for side in (right, -right, up, -up)])
