"""Robots from files: URDF and SDF with an accompanying YAML file, and MJCF."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path

from holoctl.base.checks import file_path, flag, known_name, listing, one_of, suggestion
from holoctl.base.errors import InputError, LoadError
from holoctl.constraints.closure import Closure
from holoctl.constraints.constraint_protocol import Constraint
from holoctl.constraints.coupling import Coupling
from holoctl.io.file_limits import with_limits
from holoctl.io.friction_and_springs import with_forces, with_losses
from holoctl.io.mjcf import read_mjcf
from holoctl.io.reader_limits import MOST_BYTES, MOST_SHEET_BYTES, FilePlace, check_size, text_in
from holoctl.io.robot_yaml import (
    Sheet,
    check_constraints,
    motors_of,
    read_sheet,
    reference_of,
    warn_of_turns,
    with_moves,
)
from holoctl.io.sdf import read_sdf
from holoctl.io.sdf_limits import limits_of_cut
from holoctl.io.urdf import Urdf, losses_of, model_of, read_urdf
from holoctl.io.urdf_dialects import read_dialects
from holoctl.io.usd import read_usd
from holoctl.io.xml import blamed_on
from holoctl.io.yaml_entries import Entry, yaml_document
from holoctl.io.yaml_rotors import put_rotors
from holoctl.mechanism.coupled_motors import coupled_motors
from holoctl.mechanism.description import checked_tolerance
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.coordinates import coordinate_names, translational
from holoctl.tree.frozen_model import plain

__all__ = ["load", "main_file", "robot_file", "robot_names", "sheet_of", "text_of"]

log = logging.getLogger(__name__)

_ROBOTS = Path(__file__).parents[1] / "robots"
_SHEETS = (".yaml", ".yml")
_IN_A_FOLDER = "robot.urdf"
USD = ".usd", ".usda", ".usdc", ".usdz"
"""Suffixes that OpenUSD reads."""


def load(
    path: str | os.PathLike[str],
    *,
    closures: str | os.PathLike[str] | None = None,
    free_flyer: bool = False,
    tolerance: float | None = None,
    actuators: str = "all",
    include_root: str | os.PathLike[str] | None = None,
    losses: bool = False,
) -> Mechanism:
    """Read a robot from a URDF, an MJCF, an SDF or a USD.

    Parameters
    ----------
    path : str or path
        ``.urdf``: a tree, with closures and motors in an accompanying YAML file; loops of dialects
        are read too, such as ``<loop>`` and ``<gazebo><joint>``. ``.xml``, ``.mjcf``: MuJoCo's
        format, which is complete in itself. ``.sdf``: Gazebo's format, a graph with loops, with
        motors in an accompanying YAML file. ``.usd``, ``.usda``, ``.usdc``, ``.usdz``: bodies and
        joints of UsdPhysics. Any other suffix: a URDF. A directory: its ``robot.urdf``.
    closures : str or path, optional
        The YAML file of a URDF or SDF. Default: the file with the robot's name and the suffix
        ``.yaml`` (or ``.yml``), else ``robot.yaml`` (or ``.yml``) in the same directory; without
        any there are no motors, and only the closures of the robot's file, and for a URDF a warning
        is logged.
    free_flyer : bool, optional
        Whether the root link floats, on a joint called ``root_joint``. Default: it is fixed to the
        world. An MJCF defines free bodies itself; see Notes.
    tolerance : float, optional
        Tolerance of the geometry, as for `Mechanism`. Default: the key ``tolerance`` of the YAML
        file, else 1e-4: files of six digits have errors of 5e-7 to 1e-5.
    actuators : str, optional
        For an MJCF: "all", or "skip" to leave out those that are not motors on joints (muscles;
        actuators on spatial tendons, sites, bodies), with a warning that names them. Default:
        "all", which raises an error for them.
    include_root : str or path, optional
        For an MJCF: the folder that must contain all included files, also in subfolders; give it
        for a file that includes from ``../``. Default: the folder of the file.
    losses : bool, optional
        True: friction and springs of the file become forces of the mechanism; see Notes. A warning
        is logged if there are none. Default: they are left out, and one warning names them.

    Returns
    -------
    Mechanism
        Motors in the order of ``name_mot``, or of ``<actuator>``.

    Raises
    ------
    LoadError
        With file, key and line, for anything that cannot be read or is not a mechanism. Elements
        that are not understood, and might change the motion, are errors.
    InputError
        If `path`, `closures` or `include_root` is not a path, or `closures` is given for an MJCF or
        a USD; for a USD without usd-core;
        if `actuators` is another word; if it is "skip", or `include_root` is given, for a file that
        is not an MJCF.

    See Also
    --------
    robot_file : the robots shipped with the library.
    Linkage : a mechanism from bodies and joints, in code.
    Mechanism : a mechanism from a `pin.Model`.
    mobility : examines what was read.

    Notes
    -----
    No other file is opened, except files that an MJCF includes or attaches from its folder or
    below, and meshes that determine the mass of a body in it. Only regular files are opened, of
    bounded size and with bounded numbers of elements. docs/file-formats.md lists what is read,
    ignored and refused, element by element, and all limits.

    **Losses.** With ``losses=True`` damping and dry friction become one `JointFriction` called
    ``friction``, with its usual transition of 0.01 rad/s or m/s; a spring on a joint becomes a
    `JointSpring` called ``spring on`` and the joint; a tendon between two sites a `Spring` with the
    name of the tendon. A number is appended to names that are in use: ``friction-2``. Elements that
    no force represents are left out, with a warning that names them and the reason.

    **Limits** of the file are in ``mech.limits``, by name: `limits_of` returns them. They do not
    limit a motion by themselves.

    **MJCF.** MuJoCo's compiler reads it: ``pip install "holoctl[mjcf]"``. Positions of hinges and
    slides are relative to their ``ref``. Equalities become `Closure` and `Coupling`, inactive ones
    are in ``mech.parked``. Each joint with an actuator has a motor; with gears other than 1, or on
    tendons, the mechanism has a matrix B, and motors called ``u[i]``. The reference is the key
    ``home``, else the first key, else the initial configuration of the file. ``free_flyer=True`` is
    for files without a free joint: it lets the first body of the world float, which must have no
    joint.

    **SDF.** Joints that close loops are cut by the rule of `Linkage` and become closures; gearboxes
    and mimic joints become couplings. The reference is the initial configuration of the file. With
    ``free_flyer=True`` the canonical link floats; this is refused if a joint ties the model to the
    world.

    **USD**, experimental, by usd-core: ``pip install "holoctl[usd]"``. Rigid bodies with mass,
    centre and inertia given (shapes are not read), and revolute, prismatic, spherical and fixed
    joints; those with ``physics:excludeFromArticulation`` close loops and become closures. Joints
    with a drive have motors, limited by its ``maxForce``; its gains are not read. The reference is
    the pose of the stage. Other joints, and schemas that couple joints, are errors. Layers that the
    stage refers to are opened.

    **YAML**, for a URDF or SDF; the first five keys are those of Gepetto's example-parallel-robots:

    ``closed_loop``, ``type``
        A list of pairs of frames, and the joint that closes each pair: ``6d`` (a weld), ``3d`` (a
        spherical joint), a joint or a subset of axes of `Closure`, ``screw 0.002`` with its pitch
        in m/rad, ``rod 0.25`` with its length in m (a `Rod`). A ``revolute`` closure turns about z
        of its frames. Required for a URDF, may be empty.
    ``name_mot``
        Coordinates with a motor, in the order of u. Required for a URDF, may be empty.
    ``joint_name``, ``joint_type``
        Joints of a URDF, and the type that replaces each: ``SPHERICAL``, ``UJOINT_XY`` (any two
        different axes) or ``FIXED`` at zero. The URDF has any type there, such as continuous; one
        of type ``ball`` or ``spherical`` needs no entry. Axes are those of the joint frame. The
        universal joint u has the coordinates ``u[0]`` and ``u[1]``.
    ``cut``
        Joints of an SDF that close the loops, instead of the rule of `Linkage`.
    ``closure_names``
        A name for each closure.
    ``couplings``
        A list of mappings with ``coefficients``, ``offset`` and ``name``, as in `Coupling`.
    ``reference``
        A configuration near the assembled one: joint name to angle, length or list of numbers.
        Joints left out are neutral. An angle of more than a turn is accepted, with a warning.
    ``tolerance``
        Tolerance of the geometry; the argument `tolerance` takes precedence.
    ``moved``
        Displacements of joints, and of frames of closures as ``closure.a`` and ``closure.b``: name
        to six numbers, a translation (m) and a rotation vector (rad) in the frame's own axes.
        ``holoctl doctor --out FILE.yaml`` writes it: see `repaired_geometry`.
    ``forces``
        A list of mappings: ``type`` is ``joint_friction``, ``joint_spring`` or ``spring``, the
        other keys are the parameters of `JointFriction`, `JointSpring`, `Spring`. They act with
        ``losses=False`` too.
    ``limits``
        A mapping with ``effort``, ``velocity``, ``position``, ``acceleration``, ``speed_torque``,
        as in `Limits`: each a number or a pair [lower, upper] for every motor, or a mapping from
        names to these; ``.inf`` for none. They replace those of the robot's file, name by name.
    ``rotor_inertia``, ``gear_ratio``
        Coordinate to the inertia of its motor's rotor, kg m^2, and to the angle of the rotor, rad,
        for one rad or m of the joint (default 1): ``ratio^2 * inertia`` is added to the diagonal of
        M.
    ``name``, ``description``, ``source``
        A name for the robot, and free text.

    ``<mimic>`` in a URDF becomes a `Coupling` called ``joint-mimic``. A continuous joint in a
    coupling becomes a revolute one, because its full turns count.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> mech.actuated, mech.constraint_names
    (('motor_left', 'motor_right'), ('tip_hinge',))
    """
    free_flyer = flag("load: free_flyer", free_flyer)
    losses = flag("load: losses", losses)
    if tolerance is not None:
        tolerance = checked_tolerance(tolerance, "load")
    skip = one_of("load: actuators", actuators, ("all", "skip")) == "skip"
    main, beside = _files(path, closures)
    suffix = main.suffix.lower()
    if skip and suffix not in (".xml", ".mjcf"):
        raise InputError("load: actuators='skip' is for an MJCF; other files name their motors")
    if include_root is not None and suffix not in (".xml", ".mjcf"):
        raise InputError("load: include_root= is for an MJCF; other files include nothing")
    if suffix in USD:
        if closures is not None:
            raise InputError("load: closures= is for URDF and SDF; a USD has its joints")
        mech = read_usd(main, free_flyer, tolerance, losses)
    elif suffix in (".xml", ".mjcf"):
        if closures is not None:
            raise InputError("load: closures= is for URDF and SDF; an MJCF has an <equality>")
        if beside is not None:
            log.warning(
                "%s: an MJCF is complete without a YAML file, so %s is not read", main, beside.name
            )
        mech = read_mjcf(
            text_of(main),
            str(main),
            free_flyer,
            folder=main.parent,
            include_root=None
            if include_root is None
            else file_path("load: include_root", include_root),
            skip_actuators=skip,
            tolerance=tolerance,
            losses=losses,
        )
    else:
        text, document = text_of(main), None
        if beside is not None:
            document = yaml_document(text_of(beside, MOST_SHEET_BYTES), str(beside))
        if suffix == ".sdf":
            mech = read_sdf(text, str(main), document, free_flyer, tolerance, losses)
        else:
            mech = _from_urdf(read_urdf(text, str(main)), document, free_flyer, tolerance, losses)
            if beside is None:
                _warn_of_no_sheet(main, mech)
        _warn_of_coupled_motors(beside or main, mech)
    warn_of_turns(str(beside or main), _angles(mech))
    return mech


def main_file(path: str | os.PathLike[str]) -> Path:
    """The robot's file that `load` would read; it need not exist."""
    return _files(path, None)[0]


def sheet_of(
    path: str | os.PathLike[str], closures: str | os.PathLike[str] | None = None
) -> tuple[Path, Path | None, str]:
    """The robot's file, the YAML file that `load` would read with it, and its document."""
    main, beside = _files(path, closures)
    return main, beside, "" if beside is None else text_of(beside, MOST_SHEET_BYTES)


def robot_names() -> tuple[str, ...]:
    """Names of the robots shipped with the library.

    See Also
    --------
    robot_file : the file of one of them.

    Examples
    --------
    >>> import holoctl as hc
    >>> hc.robot_names()
    ('ankle', 'delta', 'five_bar', 'four_bar', 'geared_arm', 'leg', 'stewart')
    """
    return tuple(sorted(file.stem for file in _ROBOTS.glob("*.urdf")))


def robot_file(name: str) -> Path:
    """The URDF of a robot shipped with the library, for `load`.

    Parameters
    ----------
    name : str
        One of `robot_names`.

    Returns
    -------
    Path

    Raises
    ------
    InputError
        If there is no robot of that name; the message lists them.

    See Also
    --------
    robot_names : the names of all of them.
    load : reads the file.

    Examples
    --------
    >>> import holoctl as hc
    >>> hc.load(hc.robot_file("five_bar"))
    <Mechanism 'five_bar': 4 coordinates, 1 constraint with 5 rows, 2 motors>
    """
    return _ROBOTS / f"{known_name(name, robot_names(), 'robot', 'robot_file')}.urdf"


# ------------------------------------------------------------------------------------- files


def _files(
    path: str | os.PathLike[str], closures: str | os.PathLike[str] | None
) -> tuple[Path, Path | None]:
    """The robot's file and, if there is one, the YAML file that belongs to it."""
    urdf = file_path("load: path", path)
    if os.path.isdir(urdf):
        urdf = urdf / _IN_A_FOLDER
    if urdf.suffix in _SHEETS:
        raise LoadError(
            "this is a YAML file; give the URDF or SDF: its YAML file is found automatically",
            file=str(urdf),
        )
    if closures is not None:
        return urdf, file_path("load: closures", closures)
    beside = [urdf.with_suffix(suffix) for suffix in _SHEETS]
    beside += [urdf.with_name(f"robot{suffix}") for suffix in _SHEETS]
    found = [file for file in dict.fromkeys(beside) if os.path.lexists(file)]
    if len(found) > 1 and found[1].stem == found[0].stem:
        log.warning("%s: %s is read, and %s is not", urdf, found[0].name, found[1].name)
    return urdf, found[0] if found else None


def _warn_of_no_sheet(urdf: Path, mech: Mechanism) -> None:
    names = dict.fromkeys([f"{urdf.stem}.yaml", "robot.yaml"])
    closed = any(isinstance(constraint, Closure) for constraint in mech.constraints)
    log.warning(
        "%s: there is no YAML file beside it (%s), so %sthere are no motors; "
        "one with closed_loop: [], type: [], name_mot: [] confirms that this is intended",
        urdf, " or ".join(names), "" if closed else "nothing is closed and ",
    )  # fmt: skip


def _warn_of_coupled_motors(file: Path, mech: Mechanism) -> None:
    tied = coupled_motors(mech)
    if tied:
        log.warning(
            "%s: name_mot: the motors %s add no motion: couplings tie their joints to those of "
            "other motors; a joint that mimics another one needs no motor. They are "
            "kept; if other motions have no motor, laws then take the slower general path and "
            "are not compiled. Leave them out of name_mot, unless they are intended",
            file, listing(tied),
        )  # fmt: skip


def _angles(mech: Mechanism) -> dict[str, float]:
    """Angles of the reference that do not wrap, without those whose turns a coupling counts."""
    counted = {n for c in mech.constraints if isinstance(c, Coupling) for n in c.coefficients}
    straight, found = translational(mech.model), {}
    for joint, name in zip(plain(mech.model).joints[1:], plain(mech.model).names[1:], strict=True):
        if (joint.nq, joint.nv) == (1, 1) and not straight[joint.idx_v] and name not in counted:
            found[name] = float(mech.reference[joint.idx_q])
    return found


def text_of(file: Path, most: int = MOST_BYTES) -> str:
    """The text of a regular file in UTF-8, or a `LoadError`."""
    try:
        return text_in(file, most)
    except FileNotFoundError:
        hint = ""
        robot = file.parent.name if file.name == _IN_A_FOLDER else file.stem
        if robot in robot_names() and file.suffix in ("", ".urdf"):
            hint = f"; the one shipped is at hc.robot_file({robot!r})"
        elif not file.suffix and file.name == str(file):
            meant = suggestion(file.name, robot_names())
            hint = f"{meant}; hc.robot_file(name) finds a robot that is shipped" if meant else ""
        raise LoadError(f"there is no such file{hint}", file=str(file)) from None


# -------------------------------------------------------------------------------------- URDF


def _from_urdf(
    urdf: Urdf,
    document: Entry | None,
    free_flyer: bool,
    tolerance: float | None,
    losses: bool,
) -> Mechanism:
    """The mechanism of a URDF and of its YAML file."""
    sheet = Sheet() if document is None else read_sheet(document, list(urdf.joints))
    balls = dict.fromkeys(urdf.balls, "spherical")
    sheet = replace(sheet, replaced=balls | sheet.replaced)
    dialects = read_dialects(urdf, sheet.replaced, free_flyer)
    couplings = [*_mimics(urdf, sheet), *dialects.couplings, *sheet.couplings]
    counted = {n for c, _ in couplings if isinstance(c, Coupling) for n in c.coefficients}
    model = model_of(urdf, sheet.replaced, counted, free_flyer)
    check_size(urdf.robot, model.nv)
    constraints = [*sheet.closures, *dialects.beside(sheet.closures, model), *couplings]
    check_constraints(constraints, model)
    motors = motors_of(sheet, coordinate_names(model), model)
    reference = reference_of(sheet, model)
    put_rotors(model, sheet.rotors, sheet.ratios)
    with blamed_on(urdf.robot):
        mech = Mechanism(
            model, [c for c, _ in constraints], motors, reference=reference, name=sheet.name,
            tolerance=sheet.tolerance if tolerance is None else tolerance,
        )  # fmt: skip
    mech = with_forces(mech, sheet.forces)
    found = losses_of(urdf, sheet.replaced)
    dialects.add_to(found)
    mech = with_losses(mech, found, losses)
    dialects.warn()
    return with_moves(with_limits(mech, limits_of_cut(mech, dialects.drawing), sheet.limits), sheet)


def _mimics(urdf: Urdf, sheet: Sheet) -> list[tuple[Constraint, FilePlace]]:
    """q[joint] = multiplier q[master] + offset, for every mimic joint of the URDF."""
    found: list[tuple[Constraint, FilePlace]] = []
    for name, joint in urdf.joints.items():
        if "mimic" not in joint.parts or joint.values["type"] == "fixed":
            continue
        mimic = joint.parts["mimic"]
        master = mimic.values["joint"]
        if name in sheet.replaced or master in sheet.replaced:
            raise mimic.error(
                f"joint {name!r} mimics {master!r}, so joint_type must replace neither of them"
            )
        coefficients = {name: 1.0, master: -mimic.values.get("multiplier", 1.0)}
        if coefficients[master] == 0.0 or urdf.joints[master].values["type"] == "fixed":
            del coefficients[master]
        offset = mimic.values.get("offset", 0.0)
        found.append((Coupling(coefficients, offset=offset, name=f"{name}-mimic"), mimic))
    return found
