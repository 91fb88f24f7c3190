"""The meshes of a description: their files, and the triangles in them.

Only regular files are opened, with a bound on their total size; nothing is downloaded. They are
read by trimesh, a package of the extra ``view``, and COLLADA (dae) by coal, a dependency of
Pinocchio.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from holoctl.app.view.shapes import Solid, mesh
from holoctl.base.checks import Array
from holoctl.base.errors import InputError, LoadError
from holoctl.io.reader_limits import LARGEST, MOST_MESH_BYTES, content
from holoctl.io.xml import decimals

__all__ = ["Meshes", "hull"]


_KINDS = ("stl", "obj", "dae", "ply")
_IN_A_PACKAGE = ("package://", "model://")
_PACKAGE_PATHS = {"ROS_PACKAGE_PATH": "", "AMENT_PREFIX_PATH": "share", "GZ_SIM_RESOURCE_PATH": ""}
"""Environment variables that list folders, and the subfolder of these that contains packages."""


@dataclass
class Meshes:
    """The meshes of one description; relative names start in `folder`.

    `known` are the meshes that were read, `left` is the number of bytes that may still be read.
    """

    folder: Path
    known: dict[tuple[Path, tuple[float, ...]], Solid] = field(default_factory=dict)
    left: int = MOST_MESH_BYTES

    def solid(self, name: str, scale: tuple[float, ...] = (1.0, 1.0, 1.0)) -> Solid:
        """The mesh of a file, its vertices times `scale`.

        Parameters
        ----------
        name : str
            A path, relative to `folder` or absolute, also with ``file://``, ``package://`` or
            ``model://`` before it. Packages are searched in the folders above `folder`, and in
            those of the environment variables.
        scale : tuple of 3 float
            Negative factors mirror the mesh.

        Raises
        ------
        InputError
            If there is no such file, or it contains no mesh.
        """
        file = self._file(name)
        if (file, scale) not in self.known:
            try:
                data = content(file, self.left)
            except (OSError, ValueError, LoadError) as error:
                raise InputError(f"the mesh {name[:200]!r} cannot be read: {error}") from None
            self.left -= len(data)
            vertices, faces = _triangles(file, data, name)
            turned = faces[:, ::-1] if np.prod(scale) < 0.0 else faces
            self.known[file, scale] = mesh(vertices * np.array(scale), turned)
        return self.known[file, scale]

    def _file(self, name: str) -> Path:
        if "\0" in name or not name:
            raise InputError(f"the name of a mesh must be a path; got {name[:200]!r}")
        start = next((s for s in _IN_A_PACKAGE if name.startswith(s)), None)
        if start is not None:
            places = list(self._in_package(name.removeprefix(start).lstrip("/")))
        elif name.startswith("file://"):
            places = [self.folder / unquote(name.removeprefix("file://"))]
        elif "://" in name:
            raise InputError(f"the mesh {name[:200]!r} is not downloaded: only files are read")
        else:
            places = [self.folder / name]
        found = next((place for place in places if os.path.lexists(place)), None)
        if found is None:
            raise InputError(f"there is no mesh {name[:200]!r}, seen from {str(self.folder)!r}")
        return found

    def _in_package(self, name: str) -> Iterator[Path]:
        """Possible paths of a file ``package/path/in/it`` of a package."""
        package, _, inside = name.partition("/")
        above = [self.folder, *self.folder.parents]
        yield from (folder / name for folder in above)
        for variable, share in _PACKAGE_PATHS.items():
            for folder in filter(None, os.environ.get(variable, "").split(os.pathsep)):
                yield Path(folder) / share / name
                if Path(folder).name == package and inside:
                    yield Path(folder) / inside
        if inside:
            yield from (folder / inside for folder in above)  # the folder may have another name


def hull(vertices: Array) -> Solid:
    """The convex hull of points (n, 3)."""
    try:
        found = _trimesh().Trimesh(vertices).convex_hull
    except InputError:
        raise
    except Exception as error:  # for example for points in a plane
        text = " ".join(str(error).split())[:200]
        raise InputError(f"these points have no convex hull: {text}") from None
    return mesh(*_checked(found.vertices, found.faces, "these points"))


def _triangles(file: Path, data: bytes, name: str) -> tuple[Array, NDArray[np.int64]]:
    """Vertices and faces of a file with these bytes in it."""
    what, kind = f"the mesh {name[:200]!r}", file.suffix.lower().lstrip(".")
    if kind not in _KINDS:
        raise InputError(f"{what} is not read: only {', '.join(_KINDS)} are")
    read = _of_coal if kind == "dae" else _of_trimesh
    try:
        vertices, faces = read(file, data)
    except InputError:
        raise
    except Exception as error:  # both libraries raise errors of any class
        text = " ".join(str(error).split())[-200:]
        raise InputError(f"{what} cannot be read: {type(error).__name__}: {text}") from None
    return _checked(vertices, faces, what)


def _of_trimesh(file: Path, data: bytes) -> tuple[Array, NDArray[np.int64]]:
    trimesh, kind = _trimesh(), file.suffix.lower().lstrip(".")
    more = {"skip_materials": True} if kind == "obj" else {}
    found = trimesh.load(io.BytesIO(data), file_type=kind, force="mesh", process=False, **more)
    if np.isfinite(found.vertices).all():  # trimesh would drop vertices that are not finite
        found.merge_vertices(merge_tex=True, merge_norm=True)
    return found.vertices, found.faces


_UNIT = re.compile(rb"(<unit\b[^<>]*\bmeter\s*=\s*[\"'])([^\"'<>]*)")


def _of_coal(file: Path, data: bytes) -> tuple[Array, NDArray[np.int64]]:
    """A COLLADA mesh in its own unit and axes, as viewers of URDF read it."""
    try:
        import coal
    except ImportError:
        raise InputError("COLLADA is read by coal, which comes with pin: pip install pin") from None
    match = _UNIT.search(data)
    found = None if match is None else decimals(match[2].decode("ascii", "replace"), [1])
    unit = found[0] if found is not None and found[0] > 0.0 else 1.0
    with TemporaryDirectory() as folder:  # versions of coal disagree on units: it gets a unit of 1
        copy = Path(folder) / "mesh.dae"
        copy.write_bytes(_UNIT.sub(rb"\g<1>1", data, count=1))
        read = coal.MeshLoader().load(str(copy), np.ones(3))
    faces = [read.tri_indices(i) for i in range(read.num_tris)]
    return unit * read.vertices(), np.array([(f[0], f[1], f[2]) for f in faces], dtype=np.int64)


def _trimesh() -> Any:
    try:
        import trimesh
    except ImportError:
        raise InputError("meshes are read by trimesh: pip install 'holoctl[view]'") from None
    return trimesh


def _checked(vertices: Any, faces: Any, what: str) -> tuple[Array, NDArray[np.int64]]:
    """Vertices (n, 3) and faces (m, 3) of a mesh, checked to be finite and consistent."""
    vertices = np.array(vertices, dtype=float).reshape(-1, 3)
    faces = np.array(faces, dtype=np.int64).reshape(-1, 3)
    if not faces.size:
        raise InputError(f"{what}: there are no triangles")
    if not (np.abs(vertices) <= LARGEST).all():
        raise InputError(f"{what}: vertices must be finite, and of at most {LARGEST:g} in size")
    if faces.min() < 0 or faces.max() >= len(vertices):
        raise InputError(f"{what}: triangles refer to vertices that do not exist")
    return vertices, faces
