"""A model that does not change: what a mechanism was made from, for good.

Prepared, compiled and exported laws are laid out once, from the numbers of a model. A model that
were changed behind them would be another robot than theirs. So arrays are read-only, methods and
assignments that change a model raise, and what Pinocchio hands out as a live object is a copy:
changing that has no effect, and the next function that is given the mechanism says so.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import pinocchio as pin

from holoctl.errors import InputError

__all__ = ["FrozenModel", "check_unchanged", "live"]

HOW = (
    "the model of a mechanism does not change, for laws are laid out from it: change a copy, "
    "m = mech.model.copy(), and make another mechanism with mech.with_model(m)"
)

WATCHED = ("inertias", "jointPlacements", "gravity")
"""What is handed out as a copy, and compared with the model later."""

CHANGING = (
    "addBodyFrame", "addFrame", "addJoint", "addJointFrame", "appendBodyToJoint",
    "loadFromBinary", "loadFromString", "loadFromText", "loadFromXML",
)  # fmt: skip


class FrozenModel(pin.Model):  # type: ignore[misc]
    """A private copy of a `pin.Model` that cannot be changed; ``copy()`` gives one that can."""

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise InputError(f"{name}: {HOW}")

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenModel, (self.copy(),)


def _handed_out(name: str) -> property:
    live = getattr(pin.Model, name)

    def get(self: FrozenModel) -> Any:
        shown = self.__dict__.get(name)
        if shown is None:
            value = live.fget(self)
            shown = self.__dict__[name] = type(value)(value)
        return shown

    return property(get, doc=live.__doc__)


def _read_only(name: str) -> property:
    live = getattr(pin.Model, name)

    def get(self: FrozenModel) -> Any:
        value = live.fget(self)
        value.setflags(write=False)
        return value

    return property(get, doc=live.__doc__)


def _refused(name: str) -> Any:
    def method(self: FrozenModel, *_: Any, **__: Any) -> NoReturn:
        raise InputError(f"{name}: {HOW}")

    return method


def _freeze() -> None:
    sample = pin.Model()
    for name in CHANGING:
        setattr(FrozenModel, name, _refused(name))
    for name, attribute in vars(pin.Model).items():
        if name in WATCHED:
            setattr(FrozenModel, name, _handed_out(name))
        elif type(attribute) is property and isinstance(getattr(sample, name), np.ndarray):
            setattr(FrozenModel, name, _read_only(name))


_freeze()


def live(model: pin.Model, name: str) -> Any:
    """``model.inertias`` or the like itself, to be read only: nothing to be compared later."""
    return getattr(pin.Model, name).fget(model)


def check_unchanged(model: pin.Model, owner: str) -> None:
    """Raise `InputError` where somebody has changed what a frozen model handed out."""
    for name in WATCHED:
        shown = model.__dict__.get(name)
        if shown is None:
            continue
        real = live(model, name)
        if name == "gravity":
            same = shown == real
        else:
            same = len(shown) == len(real) and all(map(_equal, shown, real))
        if not same:
            raise InputError(f"{owner}: {name} of its model was changed; {HOW}")


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b)
