"""The model of a mechanism, which cannot be changed.

Prepared, compiled and exported laws compute constants once, from the numbers of a model. If the
model changed afterwards, they would describe a different robot. So arrays are read-only, methods
and assignments that change a model raise, and objects that Pinocchio would return by reference are
copies: changing a copy has no effect on the model, and the next function that is given the
mechanism raises an error.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import pinocchio as pin

from holoctl.base.errors import InputError

__all__ = ["FrozenModel", "check_model", "check_unchanged", "has_joint", "plain"]

HOW = (
    "the model of a mechanism does not change, for laws are prepared from it: change a copy, "
    "m = mech.model.copy(), and make another mechanism with mech.with_model(m)"
)

CHANGING = (
    "addBodyFrame", "addFrame", "addJoint", "addJointFrame", "appendBodyToJoint",
    "loadFromBinary", "loadFromString", "loadFromText", "loadFromXML",
)  # fmt: skip


class FrozenModel(pin.Model):  # type: ignore[misc]
    """A private copy of a `pin.Model` that cannot be changed; ``copy()`` gives one that can."""

    def __init__(self, model: pin.Model) -> None:
        super().__init__(model)
        sizes = model.njoints, model.nframes
        self.__dict__.update(_plain=model.copy(), _sizes=sizes, _shown={})

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise InputError(f"{name}: {HOW}")

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenModel, (self.copy(),)


def _handed_out(name: str) -> property:
    live = getattr(pin.Model, name)

    def get(self: FrozenModel) -> Any:
        shown: dict[str, tuple[Any, Any]] = self.__dict__["_shown"]
        if name not in shown:
            value = getattr(self._plain, name)
            shown[name] = _copy(value), _entries(value)
        return shown[name][0]

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
        if type(attribute) is not property:  # gravity981 is static: of the class
            continue
        value = getattr(sample, name)
        if isinstance(value, np.ndarray):
            setattr(FrozenModel, name, _read_only(name))
        elif not isinstance(value, (int, float, str)):
            setattr(FrozenModel, name, _handed_out(name))


def _copy(value: Any) -> Any:
    if not isinstance(value, pin.StdMap_String_VectorXd):
        return type(value)(value)
    copy = pin.StdMap_String_VectorXd()
    for entry in value:
        copy[entry.key()] = entry.data().copy()
    return copy


def _entries(value: Any) -> Any:
    """The entries of a returned copy, as lists that ``==`` compares by value."""
    if isinstance(value, pin.StdMap_String_VectorXd):
        return {entry.key(): entry.data().tolist() for entry in value}
    if not hasattr(value, "tolist"):
        return value
    entries = value.tolist()
    if entries and hasattr(entries[0], "tolist"):
        return [entry.tolist() for entry in entries]
    return entries


_freeze()


def plain(model: pin.Model) -> pin.Model:
    """The plain `pin.Model` within a frozen model, to be read only: reading it makes no copies that
    have to be compared later. Any other model is returned unchanged."""
    return model._plain if isinstance(model, FrozenModel) else model


def check_model(model: Any, owner: str) -> None:
    """Raise `InputError` for anything but a model."""
    if not isinstance(model, pin.Model):
        raise InputError(f"{owner}: a pin.Model is needed; got {type(model).__name__}")


def has_joint(model: pin.Model, name: Any) -> bool:
    """Whether there is a joint of this name, which may be any value: Pinocchio accepts UTF-8
    only."""
    return isinstance(name, str) and name in list(plain(model).names)


def check_unchanged(model: pin.Model, owner: str) -> None:
    """Raise `InputError` if a copy that a frozen model returned was changed."""
    own = model.__dict__
    for name, (shown, as_made) in own["_shown"].items():
        if _entries(shown) != as_made:
            raise InputError(f"{owner}: {name} of its model was changed; {HOW}")
    if (model.njoints, model.nframes) != own["_sizes"]:
        raise InputError(f"{owner}: joints or frames of its model were added; {HOW}")
    if not pin.Model.__eq__(model, own["_plain"]):  # as pin.loadRotorParameters does, in C++
        raise InputError(f"{owner}: numbers of its model were written over; {HOW}")
