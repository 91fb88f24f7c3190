"""The limits of a mechanism: its own, or those of its model; and the argument `limits` of public
functions."""

from __future__ import annotations

from typing import Any

from holoctl.base.errors import InputError
from holoctl.base.tolerances import LARGEST_LIMIT
from holoctl.mechanism.bound_limits import applicable
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.limits import MODEL, Limits, Pair, checked_limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frozen_model import plain

__all__ = ["limits_of", "requested_limits"]

FARTHEST_LIMIT = 1e6  # rad, m
"""A position limit of a model at this distance or farther means no limit: readers give joints
without limits such bounds so that random configurations can be drawn."""


_INF = float("inf")


def limits_of(mech: Mechanism) -> Limits:
    """The limits in the description of a mechanism.

    Parameters
    ----------
    mech : Mechanism

    Returns
    -------
    Limits
        Those of the mechanism, ``mech.limits``, as far as they concern its motors. Without any,
        those of its `pin.Model`, by name: efforts of motors, velocities and positions of all
        coordinates. Limits of the model that are infinite, zero, or extremely large do not count.

    Raises
    ------
    InputError
        For anything but a Mechanism, and for a model with too few or too many limits.

    See Also
    --------
    Limits : limits of your own.
    load : reads limits from files.
    limited_inverse_dynamics : keeps limits.

    Notes
    -----
    A model limits the effort on a coordinate. This is the limit of a motor that acts on that
    coordinate alone, through its gear if motors are given by a matrix. For motors that share a
    coordinate, or act on several, it gives no limit.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> hc.limits_of(mech).effort["crank"]
    10.0
    """
    check_mechanism(mech)
    return applicable(mech, _of_model(mech) if mech.limits is None else mech.limits)


def requested_limits(mech: Mechanism, given: Any, owner: str) -> Limits | None:
    """The argument `limits` of a public function: ``"model"`` for `limits_of`, a `Limits`, or None
    for no limits.

    Raises
    ------
    InputError
        For anything else.
    """
    if given is None:
        return None
    if isinstance(given, str) and given == MODEL:
        return limits_of(mech)
    return checked_limits(given, owner, f'"{MODEL}", None or ')


def _of_model(mech: Mechanism) -> Limits:
    """The limits of the model, by coordinate."""
    model = plain(mech.model)
    sizes = {"Effort": model.nv, "Velocity": model.nv, "Position": model.nq}
    read = {of: _sides(mech, of, size) for of, size in sizes.items()}
    effort, velocity = dict[str, float | Pair](), dict[str, float | Pair]()
    position = dict[str, float | Pair]()
    for i, name in enumerate(mech.coordinate_names):
        _put(effort, name, *read["Effort"][i], LARGEST_LIMIT)
        # Pinocchio may store the lower limit with a positive sign
        slowest, fastest = read["Velocity"][i]
        if fastest > 0.0:
            _put(velocity, name, -abs(slowest) or -_INF, fastest, LARGEST_LIMIT)
    for j in range(1, model.njoints):
        first_v, first_q = int(model.idx_vs[j]), int(model.idx_qs[j])
        for i in range(model.nvs[j]) if model.nqs[j] == model.nvs[j] else ():
            name = mech.coordinate_names[first_v + i]
            _put(position, name, *read["Position"][first_q + i], FARTHEST_LIMIT)
    return Limits(effort=effort or None, velocity=velocity or None, position=position or None)


def _sides(mech: Mechanism, of: str, size: int) -> list[Pair]:
    """The lower and the upper limits in the model."""
    model = plain(mech.model)
    lower, upper = (getattr(model, f"{side}{of}Limit").tolist() for side in ("lower", "upper"))
    if not len(lower) == len(upper) == size:
        raise InputError(
            f"{mech.name}: the model has {len(lower)} and {len(upper)} entries in lower{of}Limit "
            f"and upper{of}Limit; there must be {size}"
        )
    return list(zip(lower, upper, strict=True))


def _put(
    found: dict[str, float | Pair], name: str, lower: float, upper: float, none: float
) -> None:
    """Store a range; a side of at least the size `none`, or a range of no width, is no limit."""
    lower, upper = (-_INF if lower <= -none else lower), (_INF if upper >= none else upper)
    if lower < upper and (lower, upper) != (-_INF, _INF):
        found[name] = upper if lower == -upper else (lower, upper)
