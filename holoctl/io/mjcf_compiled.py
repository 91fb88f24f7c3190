"""An MJCF resolved by MuJoCo's compiler: default classes, poses, copies, inertias."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from holoctl.base.errors import LoadError
from holoctl.io.mjcf_text import MjcfText, sections
from holoctl.io.reader_limits import LARGEST, MOST_MESH_BYTES, check_size, content
from holoctl.io.xml import Element

__all__ = ["CompiledMjcf", "MjcfObject", "compiled"]

_NOTHING = 1.1e-15
"""Mass (kg) and moments (kg m^2) of bodies that have none: MuJoCo requires at least these of moving
bodies."""

_ONE_AT_A_TIME = Lock()
_COORDINATES = {"HINGE": 1, "SLIDE": 1, "BALL": 3, "FREE": 6}


class MjcfObject(NamedTuple):
    """An object of the file: its name, its place, and MuJoCo's description of it."""

    name: str
    place: Element
    spec: Any


@dataclass(frozen=True)
class CompiledMjcf:
    """MuJoCo's model, and its parts in the order of the model."""

    text: MjcfText
    model: Any
    bodies: list[MjcfObject]
    joints: list[MjcfObject]
    sites: list[MjcfObject]
    equalities: list[MjcfObject]
    tendons: list[MjcfObject]
    actuators: list[MjcfObject]

    def off(self, *flags: str) -> bool:
        """Whether one of these flags of the file is "disable"."""
        import mujoco

        bits = [int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}")) for flag in flags]
        return any(int(self.model.opt.disableflags) & bit for bit in bits)

    def arms(self, tendon: int) -> dict[int, float] | None:
        """Length over position of a fixed tendon, by joint; None for a spatial one."""
        model, found = self.model, dict[int, float]()
        first = model.tendon_adr[tendon]
        for i in range(first, first + model.tendon_num[tendon]):
            if model.wrap_type[i] != 1:  # mjWRAP_JOINT
                return None
            j = int(model.wrap_objid[i])
            found[j] = found.get(j, 0.0) + float(model.wrap_prm[i])
        return {j: x for j, x in found.items() if x}


def compiled(
    text: MjcfText, free_flyer: bool = False, refused: list[str] | None = None
) -> CompiledMjcf:
    """Compile a text with MuJoCo's compiler.

    Parameters
    ----------
    text : MjcfText
    free_flyer : bool
        Whether the first body of the world gets a free joint, "root_joint".
    refused : list of str, optional
        With a list, all geoms are kept for their shapes, and those that cannot be compiled are
        appended to it. Default: without geoms that would open a file and give no mass to a moving
        body.

    Raises
    ------
    LoadError
        With the element, for everything that the compiler refuses or silently leaves out, for
        meshes that cannot be read, and without the package mujoco.
    """
    mujoco = _mujoco(text)
    with _quiet(mujoco):
        try:
            spec = _parsed(mujoco, text)
            _check_what_is_left_out(spec, text)
            if free_flyer:
                _float_first_body(spec, text)
            check_size(text.root, sum(_COORDINATES[joint.type.name[6:]] for joint in spec.joints))
            spec.compiler.fusestatic = spec.compiler.discardvisual = False
            spec.compiler.LRopt.mode = 0  # no simulation to find the range of a muscle
            _drop_geoms_of_files(mujoco, spec, refused is not None)
            model = _model(mujoco, spec, text, refused)
        except (ValueError, RuntimeError, TypeError, mujoco.FatalError) as error:
            raise text.error(error, mujoco.mj_printSchema(False, False)) from None
    kinds = ("bodies", "joints", "sites", "equalities", "tendons", "actuators")
    parts = {kind: _parts(getattr(spec, kind), text) for kind in kinds}
    found = CompiledMjcf(text, model, **parts)
    _check_sizes(found)
    return found


def _mujoco(text: MjcfText) -> Any:
    try:
        import mujoco
    except ImportError:
        raise text.root.error(
            'an MJCF is read by MuJoCo\'s compiler: pip install "holoctl[mjcf]"'
        ) from None
    if int(mujoco.__version__.split(".")[0]) < 4:
        raise text.root.error(
            f"an MJCF is read by MuJoCo 4 or newer; this is {mujoco.__version__}: "
            'pip install "holoctl[mjcf]"'
        )
    return mujoco


@contextmanager
def _quiet(mujoco: Any) -> Iterator[None]:
    """A context without MuJoCo's warnings, which it prints and writes to a file in the working
    directory."""
    with _ONE_AT_A_TIME:  # the handler of warnings is one per process
        handler = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(lambda _: None)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        finally:
            mujoco.set_mju_user_warning(handler)


def _parsed(mujoco: Any, text: MjcfText) -> Any:
    if not text.models:
        return mujoco.MjSpec.from_string(text.text)
    with TemporaryDirectory() as folder:  # attached models can only be read from files
        for name, model in text.models.items():
            (Path(folder) / name).write_text(model, "utf-8")
        (Path(folder) / "main.xml").write_text(text.text, "utf-8")
        return mujoco.MjSpec.from_file(str(Path(folder) / "main.xml"))


def _model(mujoco: Any, spec: Any, text: MjcfText, refused: list[str] | None) -> Any:
    compiler = spec.compiler
    while True:
        try:
            _check_files(spec)
            return spec.compile()
        except ValueError as error:
            bare = any(
                part.tag == "inertial" and not {"diaginertia", "fullinertia"} & set(part.attributes)
                for part in text.at(str(error)).children
            )
            if "mjMINVAL" in str(error) and compiler.boundinertia < _NOTHING and not bare:
                compiler.boundmass = max(compiler.boundmass, _NOTHING)
                compiler.boundinertia = _NOTHING
            elif refused is not None and _drop_shapes(spec, str(error)):
                refused.append(str(text.error(error, "")))
            else:
                raise


def _parts(specs: Any, text: MjcfText) -> list[MjcfObject]:
    return [MjcfObject(s.name, text.at(s.info), s) for s in sorted(specs, key=lambda s: s.id)]


# ------------------------------------------------------------------------------------ checks


def _check_what_is_left_out(spec: Any, text: MjcfText) -> None:
    """Raise an error for elements that name both a copy and another object: MuJoCo drops them
    silently."""
    kept = [*spec.equalities, *spec.tendons, *spec.actuators]
    found = {id(text.at(part.info)) for part in kept}
    for tag in ("equality", "tendon", "actuator"):
        for element in sections(text.root, tag):
            if id(element) not in found:
                raise element.error(
                    f"{element} names objects both inside and outside a <replicate>; write "
                    "the copies out, with an element for each"
                )


def _drop_geoms_of_files(mujoco: Any, spec: Any, looks: bool) -> None:
    """Remove geoms that need a file and give no mass to a moving body, so that no file is opened
    for them. If shapes are shown (`looks`), remove only height fields."""
    kinds, counted = mujoco.mjtGeom, mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    of_files = (kinds.mjGEOM_MESH, kinds.mjGEOM_HFIELD, kinds.mjGEOM_SDF)
    for geom in list(spec.geoms):
        if not (geom.meshname or geom.hfieldname or geom.type in of_files):
            continue
        body = geom.parent
        first, last = body.compiler.inertiagrouprange
        mass = geom.density if math.isnan(geom.mass) else geom.mass
        given = body.explicitinertial and body.compiler.inertiafromgeom != counted
        still = spec.compiler.settotalmass <= 0.0 and not _moves(body)
        idle = still or given or mass == 0.0 or not first <= geom.group <= last
        if geom.type == kinds.mjGEOM_HFIELD if looks else idle:
            spec.delete(geom)
    used = {name for geom in spec.geoms for name in (geom.meshname, geom.hfieldname)}
    for file in [*spec.meshes, *spec.hfields]:
        if file.name not in used:
            spec.delete(file)


def _drop_shapes(spec: Any, message: str) -> bool:
    """Remove the geom, or all geoms of the mesh, on the line that the compiler names."""
    line = re.search(r"line \d+", message)
    meshes = [mesh for mesh in spec.meshes if line and mesh.info == line[0]]
    names = {mesh.name for mesh in meshes}
    geoms = [g for g in spec.geoms if g.meshname in names or (line and g.info == line[0])]
    for one in [*geoms, *meshes]:
        spec.delete(one)
    return bool(geoms)


def _moves(body: Any) -> bool:
    while body is not None and not body.joints:
        body = body.parent
    return body is not None


def _check_files(spec: Any) -> None:
    """Check that meshes are regular files with a bounded total size."""
    left = MOST_MESH_BYTES
    for mesh in [*spec.meshes, *spec.hfields]:
        if mesh.file:
            try:
                left -= len(content(Path(mesh.file), max(left, 0)))
            except FileNotFoundError:
                why = f"there is no mesh {os.path.basename(mesh.file)!r} at {mesh.file!r}"
                raise ValueError(f"{why} {mesh.info}") from None
            except (OSError, LoadError) as error:
                raise ValueError(f"{error} {mesh.info}") from None


def _float_first_body(spec: Any, text: MjcfText) -> None:
    """Let the first body of the world float on a joint "root_joint"."""
    first = spec.worldbody.first_body()
    if any(joint.type.name == "mjJNT_FREE" for joint in spec.joints):
        raise text.root.error(
            "free_flyer: this body is free in the file already; leave the argument out"
        )
    if first is None:
        raise text.root.error("free_flyer: there is no body that could float")
    if first.joints:
        raise text.at(first.joints[0].info).error(
            "free_flyer: the first body has a joint to the world, so it cannot float"
        )
    if first.mocap:
        raise text.at(first.info).error(
            "free_flyer: the first body is a mocap body, which cannot float"
        )
    first.add_freejoint(name="root_joint", align=0)


def _check_sizes(found: CompiledMjcf) -> None:
    """Check that no length, mass or moment is nan, or larger than that of any robot."""
    model = found.model
    for parts, arrays in (
        (found.bodies, ("body_pos", "body_ipos", "body_mass", "body_inertia")),
        (found.joints, ("jnt_pos", "jnt_axis")),
        (found.sites, ("site_pos",)),
    ):
        for array in arrays if parts else ():
            values = getattr(model, array).reshape(len(parts), -1)
            large = np.flatnonzero(~(np.abs(values) <= LARGEST).all(axis=1))
            if large.size:
                place = parts[large[0]].place
                raise place.error(
                    f"{place}: MuJoCo's {array} of it is {values[large[0]]}: numbers of more than "
                    f"{LARGEST:g} in size are not read"
                )
