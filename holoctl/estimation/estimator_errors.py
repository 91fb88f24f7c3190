"""Errors of an estimator of the closed state that cannot follow its readings.

After the errors of `LOST` the branch of the mechanism is unproven.
"""

from __future__ import annotations

import numpy as np

from holoctl.base.checks import Vector, listing
from holoctl.base.errors import (
    AssemblyError,
    BranchError,
    HoloctlError,
    InconsistentError,
    InputError,
)
from holoctl.base.tolerances import DEAD_POINT_TICKS, GAIN_LIMIT, JUMPS_BY, NEAR_TICK, SENSORS_AGREE
from holoctl.estimation.branch_continuation import FollowedState, Tally
from holoctl.estimation.measurement_model import MeasurementModel
from holoctl.mechanism.mechanism import Mechanism

__all__ = [
    "LOST", "dead_point_since", "not_followed", "rows_open", "sensors_disagree", "too_close",
    "went_back",
]  # fmt: skip

FACTORED_START = 1000
"""Most factorisations when an estimator resynchronises."""

GAIN_DOUBT = 30.0
"""A continuation that fails where sensor noise is amplified by more has ended at a dead point."""


LOST = ("dead point", "gain", "time")
"""`BranchError.why` of the errors after which every call is refused until `reset`."""


def _lost(message: str, why: str) -> BranchError:
    return BranchError(
        f"{message}. The branch is unproven from here on: call reset(q) with the configuration "
        "of the mechanism",
        why=why,
    )


def went_back(mech: Mechanism, last: float, t: float) -> BranchError:
    """The time of a call is before that of the last state."""
    return _lost(
        f"{mech.name}: t went back, from {last:g} to {t:g} s, so this is "
        "another run than that of the last state (a call that leaves t out has t = 0)",
        "time",
    )


def dead_point_since(mech: Mechanism, measured: tuple[str, ...]) -> BranchError:
    """A dead point may have been passed since the last state."""
    return _lost(
        f"{mech.name}: the mechanism may have passed a dead point since the last state, so it may "
        f"be on another branch: extrapolated backwards with the rates of {listing(measured, 6)}, "
        "it meets a dead point within the time since then, or its velocity changes too much for "
        "the extrapolation to be valid. If the first reading follows reset within one tick, give "
        "t to both; otherwise call reset while the mechanism is at rest", "dead point",
    )  # fmt: skip


def rows_open(mech: Mechanism, error: float) -> BranchError:
    """The rows that were left out of the partition are violated by a scaled error."""
    return BranchError(
        f"{mech.name}: rows left out as redundant would have an error of {error:.1e} "
        "(scaled): the rows that are kept do not determine the motion there; start from a "
        "configuration nearby, or give a partition made there",
        why="rows",
    )


def sensors_disagree(
    mech: Mechanism, sensors: MeasurementModel, error: Vector
) -> InconsistentError:
    """There are more sensors than motions, and they differ from the best fit by `error` (m,)."""
    worst = np.abs(error / sensors.unit)
    named = ", ".join(f"{sensors.labels[i]!r} by {error[i]:.2g}" for i in np.argsort(-worst)[:4])
    return InconsistentError(
        f"{mech.name}: the sensors contradict each other: they differ from the closed state that "
        f"fits best: {named} (rad or m; at most {SENSORS_AGREE:g}, lengths over the size of the "
        "mechanism). One of them has an offset, or slips",
        residual=float(worst.max()),
    )


def too_close(mech: Mechanism, measured: tuple[str, ...], gain: float) -> BranchError:
    """The noise gain of a start is too large."""
    return BranchError(
        f"{mech.name}: close to this configuration the branch is not determined by "
        f"{listing(measured)}: their noise would be amplified by {gain:.0f} (at most "
        f"{GAIN_LIMIT:g}). This is a dead point, or nearly",
        why="gain",
    )


def not_followed(
    mech: Mechanism,
    measured: tuple[str, ...],
    last: FollowedState,
    there: FollowedState | None,
    tally: Tally,
    t: float,
    size: float,
    jump: bool,
) -> HoloctlError:
    """The readings could not be followed from the last state.

    Parameters
    ----------
    mech, measured
    last : FollowedState
    there : FollowedState or None
        The state of the readings, if it was found.
    tally : Tally
    t : float
        Time of the readings, s.
    size : float
        The scaled step of the sensors.
    jump : bool
        Whether the step may be a glitch.
    """
    where = f"{mech.name}: from the last state to what {listing(measured, 6)} read"
    if there is not None and jump:
        return BranchError(
            f"{where} the sensors moved by {size:.2g} (scaled), more than {JUMPS_BY:g} times "
            "their usual step, towards a dead point: a glitch, or a dead point within "
            f"{DEAD_POINT_TICKS:g} calls. The last state is kept",
            why="jump",
        )
    if there is not None:
        return _lost(
            f"{where} the mechanism comes so close to a dead point that it may be on another "
            f"branch within {DEAD_POINT_TICKS:g} calls, undetected by the sensors", "dead point",
        )  # fmt: skip
    if tally.why == "range":
        return InputError(
            f"{where} the mechanism leaves the range in which the rows can be evaluated"
        )
    far = f"{size:.2g} away, scaled"
    if last.drift is not None and t != last.t:
        far += f", and {t - last.t:.3g} s later"
    if size <= NEAR_TICK and tally.why != "far":
        how = f"noise would be amplified by more than {GAIN_LIMIT:g}"
        if tally.why != "gain":
            how = f"no continuation was found ({tally.factored} factorisations)"
        return _lost(
            f"{where} ({far}) {how}: the mechanism is at a dead point, or nearly",
            "gain" if tally.why == "gain" else "dead point",
        )
    part = f"after {100.0 * tally.reached:.0f} % of the path"
    if tally.why != "far" and (tally.gain > GAIN_DOUBT or tally.factored < tally.most):
        return AssemblyError(
            f"{where} ({far}) no path of closed states leads on this branch: {part} the mechanism "
            "is singular, or nearly. The last state is kept. Check the readings and the zero "
            "offsets of the sensors"
        )
    return BranchError(
        f"{where} is too far for one call ({far}; {part} {tally.factored} factorisations were "
        f"used, of {tally.most}). The last state is kept. Ticks may have been missed: call "
        + (
            "resynchronise(q_measured), which goes farther, or "
            if tally.most < FACTORED_START
            else ""
        )
        + "reset(q) with the configuration of the mechanism",
        why="jump",
    )
