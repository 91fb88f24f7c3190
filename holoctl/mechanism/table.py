"""What a notebook shows of a mechanism."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import pinocchio as pin

from holoctl.base.checks import counted
from holoctl.base.html_table import Part, named
from holoctl.constraints.contract import BoundRows
from holoctl.forces.contract import Force
from holoctl.tree.frozen_model import plain

__all__ = ["parts_of"]


class _Told(Protocol):
    """A mechanism, as far as the table tells of it."""

    @property
    def model(self) -> pin.Model: ...
    @property
    def coordinate_names(self) -> tuple[str, ...]: ...
    @property
    def actuator_names(self) -> tuple[str, ...]: ...
    @property
    def constraint_names(self) -> tuple[str, ...]: ...
    @property
    def force_names(self) -> tuple[str, ...]: ...
    @property
    def bound(self) -> tuple[BoundRows, ...]: ...
    @property
    def forces(self) -> Sequence[Force]: ...
    @property
    def tolerance(self) -> float: ...


def parts_of(mech: _Told) -> Iterator[Part]:
    """The lines of its table."""
    rows = [
        f"{name} ({counted(len(bound.labels), 'row')})"
        for name, bound in zip(mech.constraint_names, mech.bound, strict=True)
    ]
    yield "coordinates", named(mech.coordinate_names)
    yield "motors", named(mech.actuator_names)
    yield "constraints", named(rows)
    if mech.forces:
        yield "forces", named(mech.force_names)
    yield "mass", f"{pin.computeTotalMass(plain(mech.model)):.4g} kg"
    if mech.tolerance:
        yield "tolerance of the geometry", f"{mech.tolerance:.0e} (scaled)"
