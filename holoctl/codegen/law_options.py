"""What code is made for: a mechanism with its options, or a controller, which brings its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holoctl.base.checks import Vector, one_of, quoted
from holoctl.base.errors import InputError
from holoctl.control.computed_torque import ComputedTorque, state_limits_of
from holoctl.control.limit_policies import LimitsLaw
from holoctl.dynamics.actuation import effort_weights
from holoctl.dynamics.inverse import POLICIES
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.rows.state_limits import NOT_GIVEN, NotGiven, StateLimits

__all__ = ["Subject", "refuse_contacts", "subject_of"]


@dataclass(frozen=True, eq=False)
class Subject:
    """A mechanism or a controller, and what its laws depend on; checked.

    Attributes
    ----------
    mech : Mechanism
    controller : ComputedTorque or None
    partition : Partition or None
        None: to be decided at the configuration assembled from the mechanism's reference.
    weights : (nu,) array or None
        Not writable.
    inconsistent : str
        What becomes of targets that contradict each other: as in `PreparedInverseDynamics`.
    limits : StateLimits
        How far a state may be off for a torque.
    """

    mech: Mechanism
    controller: ComputedTorque | None
    partition: Partition | None
    weights: Vector | None
    inconsistent: str
    limits: StateLimits

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", effort_weights(self.mech, self.weights))

    @property
    def keeping(self) -> LimitsLaw | None:
        """The law of the limits that a controller keeps; None without."""
        limited = None if self.controller is None else self.controller._limited
        return None if limited is None else limited.law

    def __reduce__(self) -> tuple[Any, ...]:  # arrays in a pickle could be written to
        return Subject, (
            self.mech, self.controller, self.partition, self.weights, self.inconsistent,
            self.limits,
        )  # fmt: skip


def subject_of(
    what: Mechanism | ComputedTorque,
    partition: Partition | None,
    weights: Any,
    inconsistent: str | NotGiven,
    closure_limit: float | NotGiven | None,
    velocity_limit: float | NotGiven | None,
) -> Subject:
    """A mechanism with these options, or a controller with none.

    Raises
    ------
    InputError
        For options that do not fit, and for those that a controller brings.
    """
    controller = what if isinstance(what, ComputedTorque) else None
    mech = what.mech if isinstance(what, ComputedTorque) else what
    check_mechanism(mech, "what")
    if inconsistent is not NOT_GIVEN:
        one_of("inconsistent", inconsistent, POLICIES)
    if controller is None:
        policy = "raise" if inconsistent is NOT_GIVEN else inconsistent
    else:
        if partition is not None or weights is not None:
            raise InputError("a controller brings its own partition and weights; give neither")
        if inconsistent not in (NOT_GIVEN, "project"):
            raise InputError(
                "a controller projects targets that contradict each other; beside it inconsistent "
                f"must be 'project', or left out; got {quoted(inconsistent)}"
            )
        partition, weights, policy = controller.partition, controller.weights, "project"
    limits = state_limits_of(controller, closure_limit, velocity_limit)
    return Subject(mech, controller, partition, weights, policy, limits)


def refuse_contacts(controller: Any) -> None:
    """Raise `InputError` for a controller on unilateral contacts."""
    if getattr(controller, "contacts", None) is not None:
        raise InputError(
            f"{controller.mech.name}: a controller with contacts= cannot be compiled; it runs in "
            "Python, and hc.export_c writes it as C"
        )
