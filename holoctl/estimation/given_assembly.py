"""The way to find the state that a controller or an observer is given."""

from __future__ import annotations

from typing import Any

from holoctl.base.errors import InputError
from holoctl.estimation.prepared_assembly import PreparedAssembly
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["check_assembly"]


def check_assembly(mech: Mechanism, assembly: Any, owner: str) -> None:
    """Check what finds the state of a mechanism, None for what its owner does by itself.

    Parameters
    ----------
    mech : Mechanism
        That of the owner.
    assembly : PreparedAssembly or None
    owner : str
        Who is given it, for the message, such as ``"controller"``.

    Raises
    ------
    InputError
        For what is no `PreparedAssembly`, or one of another mechanism.
    """
    if assembly is None:
        return
    if not isinstance(assembly, PreparedAssembly):
        raise InputError(
            f"assembly must be a PreparedAssembly; got {type(assembly).__name__}: "
            "hc.PreparedAssembly(mech, measured=[...]) makes one"
        )
    if assembly.mech is not mech:
        raise InputError(
            f"assembly is that of another mechanism, {assembly.mech.name}; make it of the very "
            f"mechanism of the {owner}, {mech.name}"
        )
