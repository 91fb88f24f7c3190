"""Robots to files: what `load` reads again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holoctl.base.checks import file_path, one_of, quiet, quoted
from holoctl.base.errors import InputError
from holoctl.io.written_mjcf import written_mjcf
from holoctl.io.written_robot import written_robot
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["save"]

SUFFIXES = (".xml", ".mjcf", ".urdf")


@quiet
def save(mech: Mechanism, path: Any, *, loops: str = "yaml") -> Path:
    """Write a mechanism as MJCF, or as URDF with a YAML file beside it.

    Parameters
    ----------
    mech : Mechanism
    path : str or path
        ``.xml`` or ``.mjcf``: an MJCF for MuJoCo. ``.urdf``: a URDF, and a YAML file of the same
        name with its loops. Files of these names are replaced.
    loops : str, optional
        Of a URDF, experimental: ``"constraint"`` writes revolute, prismatic, universal and
        spherical closures and welds as the element ``<constraint>`` that is proposed for URDF, into
        the URDF itself; the others stay in the YAML file. Default: ``"yaml"``, all there.

    Returns
    -------
    Path
        The file for `load`.

    Raises
    ------
    InputError
        For another suffix or word, a folder that does not exist, and for what the files cannot
        describe, by name. Nothing is written then.

    See Also
    --------
    load : reads it.
    Mechanism : ``to_pinocchio()``: the constraints as Pinocchio's.

    Notes
    -----
    An MJCF has no meshes. MuJoCo keeps equalities by stiff springs, and holds joints by dry
    friction where `JointFriction` lets them creep. docs/interoperability.md lists what becomes of
    each part.

    Examples
    --------
    >>> import pathlib, tempfile, holoctl as hc
    >>> mech = hc.load(hc.robot_file("ankle"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hc.save(mech, pathlib.Path(folder, "ankle.xml")).read_text().count("<connect")
    2
    """
    check_mechanism(mech)
    to = file_path("save: path", path)
    if to.suffix not in SUFFIXES:
        raise InputError(f"save: path must end with {' or '.join(SUFFIXES)}; got {quoted(str(to))}")
    if not to.parent.is_dir():
        raise InputError(f"save: there is no folder {quoted(str(to.parent))}")
    if one_of("save: loops", loops, ("yaml", "constraint")) != "yaml" and to.suffix != ".urdf":
        raise InputError("save: loops is for a URDF; an MJCF has its equalities")
    if to.suffix == ".urdf":
        text, sheet = written_robot(mech, loops)
        files = {to: text, to.with_suffix(".yaml"): sheet}
    else:
        files = {to: written_mjcf(mech)}
    try:
        for file, text in files.items():
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"save: {quoted(str(to))} cannot be written: {error}") from None
    return to
