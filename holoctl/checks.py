"""Checks at the door: shapes, numbers and names of what a caller hands in."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.errors import InputError

__all__ = ["Vector", "known_name", "number", "positive", "vector"]

Vector = NDArray[np.float64]


def vector(name: str, value: Any, size: int, meaning: str = "") -> Vector:
    """`value` as a new float array of shape (size,), or an `InputError` that says why not."""
    about = f" ({meaning})" if meaning else ""
    try:
        x = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise InputError(
            f"{name}{about} must be {size} numbers; got {type(value).__name__} "
            f"{str(value)[:60]!r}, which does not convert to floats"
        ) from None
    if x.shape != (size,):
        raise InputError(f"{name}{about} must have shape ({size},); got shape {x.shape}")
    if not np.isfinite(x).all():
        bad = np.flatnonzero(~np.isfinite(x))
        raise InputError(
            f"{name}{about} must be finite; entry {bad[0]} is {x[bad[0]]}"
            + (f", and {bad.size - 1} more" if bad.size > 1 else "")
        )
    return x


def number(name: str, value: Any, meaning: str = "") -> float:
    """`value` as a finite float, or an `InputError`."""
    about = f" ({meaning})" if meaning else ""
    if isinstance(value, (bool, str, bytes)):
        raise InputError(f"{name}{about} must be a number; got {value!r}")
    try:
        x = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name}{about} must be a number; got {value!r}") from None
    if not np.isfinite(x):
        raise InputError(f"{name}{about} must be finite; got {x}")
    return x


def positive(name: str, value: Any, meaning: str = "") -> float:
    """`value` as a finite float above zero, or an `InputError`."""
    x = number(name, value, meaning)
    if x <= 0.0:
        raise InputError(f"{name}{f' ({meaning})' if meaning else ''} must be above zero; got {x}")
    return x


def known_name(name: Any, valid: Sequence[str], what: str, owner: str) -> str:
    """`name` if it is one of `valid`, or an `InputError` that lists the valid names."""
    if isinstance(name, str) and name in valid:
        return name
    raise InputError(
        f"{owner}: there is no {what} called {name!r}{suggestion(name, valid)}; "
        f"valid names: {listing(valid)}"
    )


def suggestion(name: Any, valid: Iterable[str]) -> str:
    """A hint such as ``(did you mean 'knee'?)``, or nothing."""
    close = difflib.get_close_matches(str(name), list(valid), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def listing(names: Sequence[str], most: int = 40) -> str:
    """Names for a message: all of them, or the first `most` and how many more there are."""
    if not names:
        return "none"
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f", ... ({len(names) - most} more)" if len(names) > most else "")
