"""The placement of a frame of a constraint, which cannot be changed: mechanisms depend on it."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, read_only
from holoctl.base.errors import InputError

__all__ = ["FrozenPlacement"]


class FrozenPlacement(pin.SE3):  # type: ignore[misc]
    """A placement of a description, which cannot be changed; ``copy()`` returns one that can."""

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise InputError(_PLACED.format(name))

    def setIdentity(self) -> NoReturn:
        """Refused."""
        raise InputError(_PLACED.format("setIdentity"))

    def setRandom(self) -> NoReturn:
        """Refused."""
        raise InputError(_PLACED.format("setRandom"))

    @property
    def rotation(self) -> Array:
        """(3, 3), read-only."""
        return read_only(pin.SE3.rotation.fget(self))

    @property
    def translation(self) -> Vector:
        """(3,), m, read-only."""
        return read_only(pin.SE3.translation.fget(self))

    def __copy__(self) -> FrozenPlacement:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> FrozenPlacement:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _placed, (np.array(self.rotation), np.array(self.translation))


_PLACED = (
    "{}: the placement of a constraint does not change, for mechanisms are made from it: make "
    "another constraint with dataclasses.replace"
)


def _placed(rotation: Array, translation: Vector) -> FrozenPlacement:
    return FrozenPlacement(pin.SE3(rotation, translation))
