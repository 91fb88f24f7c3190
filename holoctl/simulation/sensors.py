"""What the controller of a simulation is shown: which joints, how exactly, how late."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from holoctl.base.checks import name_list, number, numbers, positive, shown, whole
from holoctl.base.errors import InputError

__all__ = ["WHOLE_STATE", "Sensors"]

WHOLE_STATE = "all"
"""That every coordinate is measured."""


@dataclass(frozen=True)
class Sensors:
    """What the controller of a simulation is shown.

    The controller is then a function ``(t, q_m, v_m) -> u`` of what is measured: positions in the
    order of ``hc.ClosedStateEstimator(mech, measured).measured``, and their rates. With ``"all"``
    it is one of the whole state, (t, q, v), as without sensors.

    Positions are read so: the state `delay` ago, noise, then the rounding of `counts`.

    Parameters
    ----------
    measured : iterable of str or "all", optional
        Joints, coordinates of joints, and closures that are joints. Default: the motors. A floating
        base is measured whole, in front of all others where it is not named.
    noise : (positions, rates), optional
        Standard deviations, each a number or (m,) of them: of positions, rad or m, in the tangent
        space; of rates, rad/s or m/s. Drawn at every tick, independently.
    counts : float or (m,) array_like, optional
        Resolution of encoders: counts per turn, or per m. Positions are rounded to it. One number
        is that of all joints that have a position for each coordinate; of m numbers that of a part
        of a ball, a free or a planar joint, and of what is not to be rounded, is inf. Default:
        nothing is rounded.
    delay : float, optional
        s: what is read at t is that of t - `delay`; before the start, that of the start.
    rate_bandwidth : float, optional
        rad/s, for drives that give no rates: those of `RateFilter` with this bandwidth, of the
        positions that are read, at the rate of the simulation. It starts with the rates at the
        start. What has no position for each coordinate keeps its rates, and their noise. Default:
        rates are measured.
    seed : int, optional
        Of the noise, at least 0.

    Raises
    ------
    InputError
        For what are no names, numbers that are below zero or not finite, and noise of rates that
        are not measured; other shapes and names of no joints are refused where they are used.

    Examples
    --------
    >>> import holoctl as hc
    >>> encoders = hc.Sensors(counts=2**17, rate_bandwidth=600.0)
    >>> slipping = hc.Sensors(["motor_left", "motor_right", "tip_hinge"], noise=(1e-4, 1e-2))
    >>> noisy_state = hc.Sensors("all", noise=(1e-4, 1e-2))
    """

    measured: Iterable[str] | str | None = None
    noise: Any = (0.0, 0.0)
    counts: Any = None
    delay: float = 0.0
    rate_bandwidth: float | None = None
    seed: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "measured", _names(self.measured))
        put(self, "noise", _noise(self.noise))
        put(self, "counts", None if self.counts is None else _row("counts", self.counts, "above"))
        put(self, "delay", number("delay", self.delay, "s"))
        if self.delay < 0.0:
            raise InputError(
                f"delay must not be negative, s; got {self.delay:g}: nobody reads what is to come"
            )
        if self.rate_bandwidth is not None:
            bandwidth = positive("rate_bandwidth", self.rate_bandwidth, "rad/s")
            put(self, "rate_bandwidth", bandwidth)
        put(self, "seed", whole("seed", self.seed, 0))


def _names(given: Any) -> tuple[str, ...] | str | None:
    if given is None or (isinstance(given, str) and given == WHOLE_STATE):
        return given
    if isinstance(given, str):
        raise InputError(
            f'measured must be a list of names, "all", or None for the motors; got {given[:60]!r}'
        )
    names = name_list("measured", given)
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong or not names:
        found = f"{shown(wrong[0])!r} is no name" if wrong else "got none"
        raise InputError(f"measured must name one joint or more; {found}")
    return tuple(str(name) for name in names)


def _noise(given: Any) -> tuple[Any, Any]:
    try:
        two = [] if isinstance(given, (str, bytes, dict, set, frozenset)) else list(given)
    except TypeError:
        two = []
    if len(two) != 2:
        raise InputError(
            "noise must be two standard deviations, of positions and of rates; got "
            f"{shown(given)!r}"
        )
    positions, rates = (_row("noise", x, "not below") for x in two)
    return positions, rates


def _row(name: str, given: Any, bound: str) -> float | tuple[float, ...]:
    """A number, or some in a row; finite and not below zero, or above zero and inf as well."""
    x = numbers(name, given)
    if x.ndim > 1 or not x.size:
        raise InputError(f"{name} must be a number, or (m,) of them; got shape {x.shape}")
    good = x > 0.0 if bound == "above" else (x >= 0.0) & (x < float("inf"))
    if not good.all():
        what = "finite and not negative" if bound == "not below" else "above zero"
        raise InputError(f"{name} must be {what}; got {x if x.ndim else float(x)}")
    return float(x) if x.ndim == 0 else tuple(x.tolist())
