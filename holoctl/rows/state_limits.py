"""The limits within which a state, and a torque for it, are accepted, on all paths.

    closure       max |r phi|                                                    closure_limit
    velocity      max |r rate| / (1 + max |r G| |v|)                             velocity_limit
    acceleration  max |r (G a + drift)| / (1 + max |r G| |a| + max |r drift|)    see below
    condition     of the factored matrix                                            MOST_CONDITION
    sigma         the smallest singular value of gamma' B, scaled, from below               margin

r scales the rows, and all rows count, including redundant ones. These are the residuals of the
certificate. Its tolerances decide what is certified; the limits here are wider and decide which
states and torques a robot with noisy sensors may use. Off the manifold the redundant rows
contradict the kept ones slightly, however exact the solution is: so they may be violated by the
error of the state times `ALLOWANCE`, and with rounded geometry also by its tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from holoctl.base.checks import positive
from holoctl.base.errors import InconsistentError, InputError, SingularityError
from holoctl.base.tolerances import ALLOWANCE, CLOSURE_LIMIT, TOLERANCES, VELOCITY_LIMIT

__all__ = [
    "NOT_GIVEN",
    "NotGiven",
    "StateLimits",
    "allowed_acceleration",
    "check_solution",
    "check_tolerance",
    "least_acceleration",
    "state_limits",
]

MOST_CONDITION = TOLERANCES["condition"] / 10.0
"""A real-time law refuses a state at which the condition number of its matrix is larger: ten times
stricter than the certificate."""


class NotGiven(Enum):
    """The type of `NOT_GIVEN`, for limits that may also be None (no limit)."""

    NOT_GIVEN = "not given"

    def __repr__(self) -> str:
        return self.name


NOT_GIVEN = NotGiven.NOT_GIVEN
"""Default of a limit that a controller may provide instead."""


@dataclass(frozen=True)
class StateLimits:
    """Largest closure and velocity errors, and the least smallest singular value of gamma' B, of a
    state at which a torque is given; None: no limit."""

    closure: float | None = CLOSURE_LIMIT
    velocity: float | None = VELOCITY_LIMIT
    margin: float | None = None

    def allow(self, closure: float, velocity: float) -> bool:
        """Whether these errors of a state are within the limits."""
        return (self.closure is None or closure <= self.closure) and (
            self.velocity is None or velocity <= self.velocity
        )

    def check(
        self, owner: str, closure: float, velocity: float, then: str = "no torque is given"
    ) -> None:
        """Raise `InconsistentError` for a state whose closure or velocity error exceeds its
        limit."""
        if self.closure is not None and not closure <= self.closure:
            raise InconsistentError(
                f"{owner}: the closures are open by {closure:.2g} (scaled: lengths over the size "
                f"of their loop), more than closure_limit = {self.closure:g}, so {then}; "
                "check the sensors, or assemble the configuration",
                residual=closure,
            )
        if self.velocity is not None and not velocity <= self.velocity:
            raise InconsistentError(
                f"{owner}: the rates break the constraints by {velocity:.2g} of the speed, more "
                f"than velocity_limit = {self.velocity:g}, so {then}; check the "
                "sensors of the rates",
                residual=velocity,
            )


def state_limits(closure_limit: Any, velocity_limit: Any, margin: Any = None) -> StateLimits:
    """Limits from arguments of these names: above zero, the margin below one, or None."""
    given = {"closure_limit": closure_limit, "velocity_limit": velocity_limit, "margin": margin}
    found = [None if x is None else positive(name, x) for name, x in given.items()]
    if found[2] is not None and found[2] >= 1.0:
        raise InputError(
            "margin must be below 1, the largest value of the smallest singular value of gamma' B; "
            f"got {margin:g}"
        )
    return StateLimits(*found)


def check_tolerance(owner: str, limits: StateLimits, tolerance: float) -> None:
    """Raise `InputError` if the tolerance of rounded geometry is not below the closure limit."""
    if limits.closure is not None and tolerance >= limits.closure:
        raise InputError(
            f"{owner}: its geometry is rounded, with tolerance {tolerance:g}, so rows "
            f"may be open by that much; closure_limit = {limits.closure:g} must be larger"
        )


def least_acceleration(tolerance: float) -> float:
    """Largest relative violation of redundant rows by the acceleration, at an exact state.

    `tolerance` is that of rounded geometry, times the stiffness of stabilisation.
    """
    return max(TOLERANCES["acceleration"], tolerance)


def allowed_acceleration(closure: float, velocity: float, tolerance: float = 0.0) -> float:
    """Largest relative violation of redundant rows by the acceleration, at a state with these
    errors: of all its rows, or with rounded geometry of the kept rows."""
    return max(least_acceleration(tolerance), ALLOWANCE * (closure + velocity))


def check_solution(
    owner: str, closure: float, velocity: float, acceleration: float, dynamics: float,
    condition: float, tolerance: float = 0.0,
) -> None:  # fmt: skip
    """Raise an error if a residual of a solution exceeds its limit."""
    if not condition <= MOST_CONDITION:
        raise SingularityError(
            f"{owner}: close to singular here: the matrix of the torque has condition "
            f"number {condition:.1e}, more than {MOST_CONDITION:.0e}; no torque is given",
            condition=condition,
        )
    limit = allowed_acceleration(closure, velocity, tolerance)
    if not acceleration <= limit:
        raise InconsistentError(
            f"{owner}: the motion breaks constraint rows that were left out as redundant, by "
            f"{acceleration:.1e} of the acceleration (state off by {closure + velocity:.1e}): "
            "they count at this configuration, so no torque is given",
            residual=acceleration,
        )
    if not dynamics <= TOLERANCES["dynamics"]:
        raise InconsistentError(
            f"{owner}: the equation of motion does not hold with any torque (off by "
            f"{dynamics:.1e}), so none is given",
            residual=dynamics,
        )
