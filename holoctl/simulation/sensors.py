"""Options of simulated sensors: which joints are measured, with what noise, rounding and delay."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from holoctl.base.checks import name_list, number, numbers, positive, shown, whole
from holoctl.base.errors import InputError

__all__ = ["WHOLE_STATE", "Sensors"]

WHOLE_STATE = "all"
"""The value of `measured` with which every coordinate is measured."""


@dataclass(frozen=True)
class Sensors:
    """The sensors of the controller of a simulation.

    The controller is then a function ``(t, q_m, v_m) -> u`` of the measured positions, in the order
    of ``hc.ClosedStateEstimator(mech, measured).measured``, and of their rates. With ``"all"`` it
    is a function of the whole state, (t, q, v), as without sensors.

    A reading of a position is that of the state `delay` ago, plus noise, rounded to `counts`.

    Parameters
    ----------
    measured : iterable of str or "all", optional
        Joints, coordinates of joints, and closures that are joints. Default: the motors. A floating
        base is measured with all its coordinates, before all others unless it is named.
    noise : (positions, rates), optional
        Standard deviations, each a number or (m,) of them: of positions, rad or m, in the tangent
        space; of rates, rad/s or m/s. Drawn at every tick, independently.
    counts : float or (m,) array_like, optional
        Resolution of encoders: counts per turn, or per m. Positions are rounded to it. One number
        applies to all joints that have one position for each coordinate. Of m numbers, those of
        the parts of a ball, a free or a planar joint must be inf; inf also means no rounding.
        Default: no position is rounded.
    delay : float, optional
        s: a reading at t is that of the state at t - `delay`; before the start, of the state at the
        start.
    rate_bandwidth : float, optional
        rad/s, for drives that do not measure rates: the rates are those of a `RateFilter` with this
        bandwidth, applied to the measured positions at the rate of the simulation. It starts with
        the rates at the start. Joints without one position for each coordinate keep measured rates
        and their noise. Default: rates are measured.
    seed : int, optional
        Seed of the noise, at least 0.

    Raises
    ------
    InputError
        If `measured` has no names, a number is negative or not finite; other shapes, names that are
        not joints, and noise of rates that are not measured are refused by `simulate`.

    See Also
    --------
    simulate : takes them as ``sensors=``.
    ClosedStateEstimator : the state from the same measurements.
    RateFilter : the rates of ``rate_bandwidth``.

    Examples
    --------
    >>> import holoctl as hc
    >>> encoders = hc.Sensors(counts=2**17, rate_bandwidth=600.0)
    >>> noisy_state = hc.Sensors("all", noise=(1e-4, 1e-2))
    >>> with_hinge = hc.Sensors(["motor_left", "motor_right", "tip_hinge"])
    >>> with_hinge.measured
    ('motor_left', 'motor_right', 'tip_hinge')
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
                f"delay must not be negative, s; got {self.delay:g}: a sensor cannot read the "
                "future"
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
    """A number, or a tuple of them; finite and not negative, or, if `bound` is "above", positive
    with inf allowed."""
    x = numbers(name, given)
    if x.ndim > 1 or not x.size:
        raise InputError(f"{name} must be a number, or (m,) of them; got shape {x.shape}")
    good = x > 0.0 if bound == "above" else (x >= 0.0) & (x < float("inf"))
    if not good.all():
        what = "finite and not negative" if bound == "not below" else "above zero"
        raise InputError(f"{name} must be {what}; got {x if x.ndim else float(x)}")
    return float(x) if x.ndim == 0 else tuple(x.tolist())
