"""Former public names: they work for one version with a `DeprecationWarning`, or name what replaces
them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

from holoctl.base.errors import InputError

__all__ = ["RENAMED", "former_names", "former_order", "formerly"]

_C = TypeVar("_C", bound=Callable[..., Any])

RENAMED = {
    "AssemblyReport": "results.EstimatorReport",
    "CompiledLoop": "results.Loop",
    "CompiledTaskLoop": "results.Loop",
    "PreparedAssembly": "ClosedStateEstimator",
    "Snapped": "results.RepairedGeometry",
    "TaskLoop": "results.Loop",
    "TaskTracking": "results.Tracking",
    "snapped": "repaired_geometry",
}
"""The former name in `holoctl` -> the present one."""


def former_names(**names: str) -> Callable[[_C], _C]:
    """Decorate a function or class whose keywords changed: ``former_names(present="former")``.

    The former keyword is taken for the present one, and overrides it: `dataclasses.replace` gives
    both. A class has the former attribute as well.
    """
    present = {former: name for name, former in names.items()}

    def decorated(what: _C) -> _C:
        owner = what.__name__

        def renamed(given: dict[str, Any]) -> dict[str, Any]:
            for former in given.keys() & present.keys():
                _warn(f"{owner}(..., {former}=)", f"{present[former]}=")
                given[present[former]] = given.pop(former)
            return given

        if not isinstance(what, type):

            @wraps(what)
            def call(*args: Any, **given: Any) -> Any:
                return what(*args, **renamed(given))

            return call  # type: ignore[return-value]
        made = "__new__" if issubclass(what, tuple) else "__init__"
        init: Callable[..., Any] = getattr(what, made)

        @wraps(init)
        def make(self: Any, *args: Any, **given: Any) -> Any:
            return init(self, *args, **renamed(given))

        setattr(what, made, make)
        for former, name in present.items():
            setattr(what, former, _attribute(owner, former, name))
        return what

    return decorated


def former_order(first: type, *names: str) -> Callable[[_C], _C]:
    """Decorator of a function whose parameters stood in another order, `names`: that order is taken
    if the first argument is a `first`. Its `mech` could be left out."""

    def decorated(function: _C) -> _C:
        now = list(signature(function).parameters)[: len(names)]

        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            if args and isinstance(args[0], first):
                owner = function.__name__
                _warn(f"{owner}({', '.join(names)})", f"{owner}({', '.join(now)})", 3)
                return function(**{"mech": None, **dict(zip(names, args, strict=False)), **options})
            return function(*args, **options)

        return call  # type: ignore[return-value]

    return decorated


def formerly(**now: str) -> Callable[[_C], _C]:
    """Decorator of public functions: a keyword that was removed raises an `InputError` which names
    its replacement."""

    def decorated(function: _C) -> _C:
        @wraps(function)
        def checked(*args: Any, **options: Any) -> Any:
            for name in options.keys() & now.keys():
                raise InputError(f"{function.__name__} has no {name}= any more: {now[name]}")
            return function(*args, **options)

        return checked  # type: ignore[return-value]

    return decorated


def _attribute(owner: str, former: str, name: str) -> property:
    def read(self: Any) -> Any:
        _warn(f"{owner}.{former}", name)
        return getattr(self, name)

    read.__doc__ = f"The former name of `{name}`."
    return property(read)


def _warn(former: str, present: str, level: int = 4) -> None:
    warnings.warn(
        f"{former} is called {present} now, and this name goes with the next version",
        DeprecationWarning,
        stacklevel=level,
    )
