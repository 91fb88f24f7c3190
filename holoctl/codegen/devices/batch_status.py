"""The status of each robot of a batch, and what it means in words."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import counted
from holoctl.base.errors import InputError

__all__ = ["BatchStatus", "described"]


class BatchStatus(IntEnum):
    """The status of one robot of a batch; where it is not `OK` its results are NaN.

    Attributes
    ----------
    OK
        The results are valid.
    NOT_FINITE
        An input is not finite.
    IN_DOUBT
        The guard of the law refuses: the state is near a singularity, or beyond the limits of
        closure or velocity error; a quaternion or rotation is not normalised; targets contradict
        each other; no efforts are within the limits; or a result overflows. The function in Python
        at this state raises the error that says which.
    START_OPEN
        Of `state`: the configuration to start from is not closed.
    START_SINGULAR
        Of `state`: the sensors do not determine the motion there.
    FAR
        Of `state`: the readings are too far from the start, or beyond the reach of the mechanism.
    LOST
        Of `state`: the readings cannot be followed, or not without passing a singularity: the
        branch is not proved.
    CONTRADICTORY
        Of `state`: redundant sensors contradict each other.
    OPEN
        Of `state`: redundant constraints are not closed at the readings.

    See Also
    --------
    results.BatchFunctions : its methods return these codes, as bytes.

    Examples
    --------
    >>> import holoctl as hc
    >>> hc.results.BatchStatus(2).name
    'IN_DOUBT'
    """

    OK = 0
    NOT_FINITE = 1
    IN_DOUBT = 2
    START_OPEN = 3
    START_SINGULAR = 4
    FAR = 5
    LOST = 6
    CONTRADICTORY = 7
    OPEN = 8


WORDS = {
    BatchStatus.NOT_FINITE: "an input is not finite",
    BatchStatus.IN_DOUBT: (
        "the guard refuses (near a singularity, beyond the limits of closure or velocity error, "
        "not normalised, contradictory targets, or no efforts within limits)"
    ),
    BatchStatus.START_OPEN: "the configuration to start from is not closed",
    BatchStatus.START_SINGULAR: "the sensors do not determine the motion at the start",
    BatchStatus.FAR: "the readings are too far from the start, or beyond reach",
    BatchStatus.LOST: "the readings do not prove the branch of the mechanism",
    BatchStatus.CONTRADICTORY: "redundant sensors contradict each other",
    BatchStatus.OPEN: "redundant constraints are not closed at the readings",
}


def described(status: NDArray[Any]) -> str:
    """How many robots have which status, with the first of each."""
    if status.ndim != 1 or not np.isin(status, list(BatchStatus)).all():
        raise InputError("status must be (N,) codes, as a function of a batch returned them")
    parts = [f"{(status == BatchStatus.OK).sum()} of {counted(status.size, 'robot')} OK"]
    for code in map(BatchStatus, np.unique(status[status != BatchStatus.OK]).tolist()):
        robots = np.flatnonzero(status == code)
        first = "" if robots.size == 1 else "the first "
        parts.append(
            f"{counted(robots.size, 'robot')} ({first}{robots[0]}): {code.name}, {WORDS[code]}"
        )
    return "; ".join(parts)
