"""Why an estimator of the closed state does not follow its readings, in words.

After some of these errors nothing proves the branch any more: those of `LOST`.
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
    "LOST", "dead_point_behind", "not_followed", "rows_open", "sensors_disagree", "too_close",
    "went_back",
]  # fmt: skip

FACTORED_START = 1000
"""Most factorisations when an estimator resynchronises."""

GAIN_DOUBT = 30.0
"""A continuation that fails where sensor noise is amplified by more has ended at a dead point."""


LOST = ("dead point", "gain", "time")
"""`BranchError.why` of those after which every call is refused until `reset`."""


def _lost(message: str, why: str) -> BranchError:
    return BranchError(
        f"{message}. Nothing proves the branch from here on: reset(q) tells where it is", why=why
    )


def went_back(mech: Mechanism, last: float, t: float) -> BranchError:
    """The time of a call is before that of the last state."""
    return _lost(
        f"{mech.name}: t went back, from {last:g} to {t:g} s, so this is "
        "another run than that of the last state (a call that leaves t out has t = 0)",
        "time",
    )


def dead_point_behind(mech: Mechanism, measured: tuple[str, ...]) -> BranchError:
    """A dead point may have been passed since the last state."""
    return _lost(
        f"{mech.name}: the rates that {listing(measured, 6)} read lead away from "
        "a dead point so close that the mechanism may have passed it since the last state, "
        "or change so much on the way since then that they do not tell, so it may be on another "
        "branch. Where a first reading follows within a tick, t of both tells so; else reset "
        "where it stands still", "dead point",
    )  # fmt: skip


def rows_open(mech: Mechanism, off: float) -> BranchError:
    """Rows that were left out of the partition do not hold."""
    return BranchError(
        f"{mech.name}: rows left out as redundant would open by {off:.1e} "
        "(scaled): the rows that are kept do not decide the motion there; start from a "
        "configuration nearby, or give a partition decided there",
        why="rows",
    )


def sensors_disagree(mech: Mechanism, sensors: MeasurementModel, off: Vector) -> InconsistentError:
    """Sensors that are more than motions contradict each other by `off` (m,)."""
    worst = np.abs(off / sensors.unit)
    named = ", ".join(f"{sensors.labels[i]!r} by {off[i]:.2g}" for i in np.argsort(-worst)[:4])
    return InconsistentError(
        f"{mech.name}: the sensors contradict each other: they read more than the "
        f"closed state that fits best: {named} (rad or m; at most {SENSORS_AGREE:g}, "
        "lengths over the size of the mechanism). One of them is off, or slips",
        residual=float(worst.max()),
    )


def too_close(mech: Mechanism, measured: tuple[str, ...], gain: float) -> BranchError:
    """A start at which sensors amplify noise too much."""
    return BranchError(
        f"{mech.name}: close to this configuration the branch is not told by "
        f"{listing(measured)}: their noise would be amplified by {gain:.0f} (at most "
        f"{GAIN_LIMIT:g}). It is a dead point, or nearly",
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
    """The readings are not followed from the last state.

    Parameters
    ----------
    mech, measured
    last : FollowedState
    there : FollowedState or None
        Where they lead, if that was found.
    tally : Tally
    t : float
    size : float
        How far the sensors moved, scaled.
    jump : bool
        Whether that may be a glitch.
    """
    where = f"{mech.name}: from the last state to what {listing(measured, 6)} read"
    if there is not None and jump:
        return BranchError(
            f"{where} the sensors moved by {size:.2g} (scaled), more than {JUMPS_BY:g} times "
            "what they usually do, towards a dead point: a glitch, or a dead point within "
            f"{DEAD_POINT_TICKS:g} calls. The last state stays",
            why="jump",
        )
    if there is not None:
        return _lost(
            f"{where} the mechanism comes so close to a dead point that it may be on another "
            f"branch within {DEAD_POINT_TICKS:g} calls, and no sensor would tell", "dead point",
        )  # fmt: skip
    if tally.why == "range":
        return InputError(f"{where} it leaves the range in which rows can be evaluated")
    far = f"{size:.2g} away, scaled"
    if last.drift is not None and t != last.t:
        far += f", and {t - last.t:.3g} s later"
    if size <= NEAR_TICK and tally.why != "far":
        how = f"noise would be amplified by more than {GAIN_LIMIT:g}"
        if tally.why != "gain":
            how = f"nothing is found that goes on from there ({tally.factored} factorisations)"
        return _lost(
            f"{where} ({far}) {how}: it is at a dead point, or nearly",
            "gain" if tally.why == "gain" else "dead point",
        )
    part = f"after {100.0 * tally.reached:.0f} % of the way"
    if tally.why != "far" and (tally.gain > GAIN_DOUBT or tally.factored < tally.most):
        return AssemblyError(
            f"{where} ({far}) no closed state of this branch leads: {part} the mechanism is "
            "singular, or nearly. The last state stays. Is a reading wrong, or its zero?"
        )
    return BranchError(
        f"{where} is too far for one call ({far}; {part} {tally.factored} factorisations were "
        f"used, of {tally.most}). The last state stays. Were ticks missed? "
        + ("resynchronise(q_measured) goes farther, " if tally.most < FACTORED_START else "")
        + "reset(q) tells where it is",
        why="jump",
    )
