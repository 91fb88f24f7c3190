"""Checks of arguments: their shapes, numbers and names."""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from holoctl.base.errors import InputError

__all__ = [
    "Array",
    "Indices",
    "Mask",
    "Vector",
    "as_given",
    "counted",
    "entries",
    "file_path",
    "finite",
    "flag",
    "freeze",
    "instant",
    "is_float",
    "joined",
    "known_name",
    "listing",
    "made_again",
    "name_list",
    "named",
    "number",
    "numbers",
    "one_of",
    "plain_name",
    "positive",
    "quiet",
    "quoted",
    "read_only",
    "shaped",
    "shown",
    "stored",
    "suggestion",
    "unpickled",
    "vector",
    "verb",
    "whole",
]

Vector = NDArray[np.float64]
Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
"""Arrays of floats (`Vector` where there is one axis), of indices, of booleans."""
_T = TypeVar("_T", bound=np.generic)

quiet = np.errstate(all="ignore")
"""Decorator of public functions: overflows within them neither warn nor raise numpy's
FloatingPointError, whatever the caller has set. The library checks the results and raises its own
errors."""


def vector(name: str, value: Any, size: int, meaning: str = "") -> Vector:
    """`value` as a new float array of shape (size,), or an `InputError` that says why not."""
    x = as_given(name, value, size, meaning).copy()
    if not finite(x) and not np.isfinite(x).all():
        about = f" ({meaning})" if meaning else ""
        bad = np.flatnonzero(~np.isfinite(x))
        raise InputError(
            f"{name}{about} must be finite; entry {bad[0]} is {x[bad[0]]}"
            + (f", and {bad.size - 1} more" if bad.size > 1 else "")
        )
    return x


def shaped(name: str, value: Any, size: int, meaning: str = "") -> Vector:
    """`value` as a float array of shape (size,), or an `InputError`; its entries are not
    checked."""
    x = numbers(name, value, meaning)
    if x.shape != (size,):
        about = f" ({meaning})" if meaning else ""
        raise InputError(f"{name}{about} must have shape ({size},); got shape {x.shape}")
    return x


def shown(value: Any) -> str:
    """The beginning of ``str(value)`` for a message, for a value of any type."""
    try:
        return str(value)[:60]
    except Exception:  # a foreign __str__ may raise, and so do integers of thousands of digits
        return f"a value of type {type(value).__name__}"


def plain_name(given: Any) -> str:
    """A name unchanged if it is text; anything else as text for the error message that refuses
    it."""
    return given if isinstance(given, str) else shown(given)


def quoted(value: Any) -> str:
    """The beginning of ``repr(value)`` for a message, for a value of any type."""
    try:
        return repr(value)
    except Exception:  # as for `shown`
        return f"a value of type {type(value).__name__}"


def as_given(name: str, value: Any, size: int, meaning: str = "") -> Vector:
    """`shaped` for a control tick: a float vector is returned unchanged, at almost no cost."""
    if type(value) is np.ndarray and value.shape == (size,) and is_float(value.dtype):
        return value
    return shaped(name, value, size, meaning)


def finite(x: Vector) -> bool:
    """Whether all numbers and their squares are finite, at almost no cost.

    Computed by BLAS, which raises no warning of an overflow, whatever the error handling of numpy.
    """
    return not x.size or bool(_DOT(x, x) < _INF)


def stored(name: str, place: Any, x: Vector) -> Vector:
    """`place`, the caller's output array, filled with x; or an `InputError`."""
    if type(place) is not np.ndarray or place.shape != x.shape or not is_float(place.dtype):
        kind = f"{place.dtype} {place.shape}" if isinstance(place, np.ndarray) else ""
        raise InputError(
            f"{name} must be an array of {x.size} floats, shape {x.shape}; got "
            f"{type(place).__name__} {kind}".rstrip()
        )
    if not place.flags.writeable:
        raise InputError(f"{name} must be an array that can be written to; this one is read-only")
    place[:] = x
    return place


_FLOAT, _INF, _DOT = np.dtype(float), float("inf"), blas.ddot


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is float64; an unpickled dtype is equal, but not the same object."""
    return dtype is _FLOAT or dtype == _FLOAT


def numbers(name: str, value: Any, meaning: str = "") -> Vector:
    """`value` as a float array of any shape, or an `InputError`: no strings, no objects.

    A masked array is refused if entries are masked: a masked entry has no value.
    """
    if _masked(value):
        about = f" ({meaning})" if meaning else ""
        raise InputError(
            f"{name}{about} has masked entries, which are no numbers: fill them "
            "(numpy.ma.filled) or leave them out"
        )
    try:
        x = np.asarray(value)
        if x.dtype.kind in "fiu":
            return x.astype(float, copy=False)
    except Exception:  # a foreign __array__ may raise anything
        pass
    about = f" ({meaning})" if meaning else ""
    raise InputError(
        f"{name}{about} must be an array of real numbers; got {type(value).__name__} "
        f"{shown(value)!r}"
    )


def _masked(value: Any, depth: int = 3) -> bool:
    """Whether entries are masked, in an array or in nested lists of arrays."""
    if isinstance(value, np.ma.MaskedArray):
        return bool(np.ma.is_masked(value))
    return (
        depth > 0
        and isinstance(value, (list, tuple))
        and any(_masked(entry, depth - 1) for entry in value)
    )


def number(name: str, value: Any, meaning: str = "") -> float:
    """`value` as a finite float, or an `InputError`."""
    about = f" ({meaning})" if meaning else ""
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
        raise InputError(f"{name}{about} must be a number; got {shown(value)!r}")
    try:
        x = float(value)
    except OverflowError:
        x = float("inf")
    if not np.isfinite(x):
        raise InputError(f"{name}{about} must be finite; got {x}")
    return x


def instant(t: Any) -> float:
    """A time as a finite float, or an `InputError`: `number` at next to no cost."""
    return t if type(t) is float and t - t == 0.0 else number("t", t, "time, s")


def positive(name: str, value: Any, meaning: str = "") -> float:
    """`value` as a finite float above zero, or an `InputError`."""
    x = number(name, value, meaning)
    if x <= 0.0:
        raise InputError(f"{name}{f' ({meaning})' if meaning else ''} must be above zero; got {x}")
    return x


def whole(name: str, value: Any, least: int) -> int:
    """`value` as an int of at least `least`, or an `InputError`."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= least:
        if value > sys.maxsize:
            raise InputError(f"{name} is larger than any count; got a number above {sys.maxsize}")
        return int(value)
    raise InputError(f"{name} must be a whole number, {least} or more; got {shown(value)!r}")


def flag(name: str, value: Any) -> bool:
    """`value` if it is True or False, or an `InputError`: "no" is true to Python."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise InputError(f"{name} must be True or False; got {shown(value)!r}")


def one_of(name: str, value: Any, valid: Sequence[str]) -> str:
    """`value` if it is one of the words `valid`, or an `InputError` that lists them."""
    if isinstance(value, str) and value in valid:
        return value
    raise InputError(
        f"{name} must be one of {listing(valid)}; got {shown(value)!r}{suggestion(value, valid)}"
    )


def entries(value: Any) -> list[Any] | None:
    """The entries of a list, an array or another iterable; None for text and for values without
    entries, such as a number or an array of no axes."""
    try:
        return None if isinstance(value, (str, bytes)) else list(value)
    except TypeError:
        return None


def file_path(name: str, value: Any) -> Path:
    """`value` as a path, or an `InputError`."""
    try:
        if os.fspath(value) and isinstance(os.fspath(value), str):
            return Path(value)
    except TypeError:
        pass
    raise InputError(f"{name} must be a path; got {shown(value) or repr('')}")


def name_list(argument: str, names: Any) -> list[Any]:
    """The entries of a list of names, or an `InputError` for anything that is not a list."""
    if not isinstance(names, (str, bytes, Mapping)):
        try:
            found = list(names)
            set(found)  # unhashable entries, such as rows of a matrix, cannot be names
            return found
        except TypeError:
            pass
    raise InputError(f"{argument} must be a list of names; got {shown(names)!r}")


def known_name(name: Any, valid: Sequence[str], what: str, owner: str) -> str:
    """`name` if it is one of `valid`, or an `InputError` that lists the valid names."""
    if isinstance(name, str) and name in valid:
        return name
    raise InputError(
        f"{owner}: there is no {what} called {quoted(name)}{suggestion(name, valid)}; "
        f"valid names: {listing(valid)}"
    )


def suggestion(name: Any, valid: Iterable[str]) -> str:
    """A hint such as ``(did you mean 'knee'?)``, or nothing."""
    given, known = name[:200] if isinstance(name, str) else shown(name), list(valid)
    close = difflib.get_close_matches(given, known, n=1)
    close = close or [other for other in known if _words(other) == _words(given)]
    return f" (did you mean {close[0]!r}?)" if close else ""


def _words(name: str) -> list[str]:
    """The words of a name in sorted order, without case and separators."""
    return sorted(re.findall(r"[^\W_]+", name.lower()))


def listing(names: Sequence[str], most: int = 40) -> str:
    """Names for a message: all of them, or the first `most` and how many more there are."""
    if not names:
        return "none"
    shown = ", ".join(map(quoted, names[:most]))
    return shown + (f", ... ({len(names) - most} more)" if len(names) > most else "")


def counted(n: int, what: str, many: str | None = None) -> str:
    """A number of things for a message: ``1 row``, ``2 rows``."""
    return f"{n} {what if n == 1 else many or what + 's'}"


def joined(parts: Sequence[str], most: int = 12, rest: str = "more") -> str:
    """a, b and c; of many the first ones, and the number of the others."""
    left = len(parts) - most
    shown = list(parts[:most])
    if left > 0:
        shown.append(counted(left, rest, "more" if rest == "more" else None))
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def named(names: Sequence[str], most: int = 12, rest: str = "more") -> str:
    """Names in a sentence, likewise."""
    return joined([f"'{name}'" for name in names], most, rest)


def verb(of: int | Sequence[object], one: str = "is", many: str = "are") -> str:
    """The singular or the plural word."""
    return one if (of if isinstance(of, int) else len(of)) == 1 else many


def read_only(x: NDArray[_T]) -> NDArray[_T]:
    """The same array, made read-only."""
    x.setflags(write=False)
    return x


def freeze(value: Any) -> None:
    """Replace the arrays of a frozen value by read-only views: later calls rely on their values."""
    own = vars(value)
    for name, x in own.items():
        if type(x) is np.ndarray and x.flags.writeable:
            own[name] = read_only(x[...])


def unpickled(value: Any, state: dict[str, Any]) -> None:
    """`__setstate__` of a frozen value: a pickled array forgets that it is read-only."""
    vars(value).update(state)
    _lock(tuple(state.values()))


def _lock(x: Any) -> None:
    """Make an array, or the arrays of a tuple, read-only."""
    if type(x) is np.ndarray:
        read_only(x)
    elif isinstance(x, tuple):
        for part in x:
            _lock(part)


def made_again(cls: Callable[..., Any], given: dict[str, Any]) -> Any:
    """Construct a value again from the arguments of its class: for pickles and copies."""
    return cls(**given)
