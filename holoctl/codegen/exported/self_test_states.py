"""The states that the self-test of an exported controller knows, with torques by Python."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array
from holoctl.base.errors import (
    AssemblyError,
    HoloctlError,
    InconsistentError,
    LimitError,
    SingularityError,
)
from holoctl.base.tolerances import CLOSURE_LIMIT, SELF_TEST_STATES, VELOCITY_LIMIT
from holoctl.closing.assembly import assemble
from holoctl.codegen.exported.laws import Laws
from holoctl.codegen.exported.self_test_references import reference_of_tasks, task_state
from holoctl.codegen.exported.standing import StandingExport
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.parameters import PAYLOAD, mechanism_with
from holoctl.codegen.precision import DOUBLE, Precision
from holoctl.codegen.task_law_options import TaskSubject
from holoctl.control.computed_torque import ComputedTorque
from holoctl.control.limit_policies import LimitsLaw
from holoctl.control.limited_inverse_dynamics import (
    LimitedInverseDynamics,
    WithinLimits,
    limited_inverse_dynamics,
)
from holoctl.dynamics.effort_response import response_at
from holoctl.dynamics.inverse import inverse_dynamics
from holoctl.dynamics.tick.prepared_inverse import PreparedInverseDynamics
from holoctl.forces.sum_of_forces import change_by_velocity
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.scales import sizes
from holoctl.projector.partition import Partition
from holoctl.projector.projection import project
from holoctl.rows.state_limits import StateLimits
from holoctl.tree.kinematics import kinematics

__all__ = ["States", "golden_states"]

SELF_TEST_NEAR = 16
"""The number of states that are near the manifold, not on it."""

AGREE, LIMITED_AGREE = 45.04, 450.4
"""Efforts in C, and within limits, are those of Python to so many eps of the largest one at best,
times `Precision.caution`."""


CONTACTS_AGREE = 1e-7
"""Efforts on contacts in C are those of Python to this share of the largest one, also of redundant
motors, whose efforts a weight of 3e-9 decides."""

ON_CONTACTS = 0.3
"""States on contacts are nearer to the configuration of the export, and slower, by this factor."""

OFF_CONTACTS = 1e-9
"""How far states on contacts are off the manifold, scaled: more would part contacts whose rows
depend on each other."""

SHARE_OF_PAYLOAD, SIZE_OF_PAYLOAD = 0.25, 0.05
"""Mass and size of the payload of the self-test: shares of those of the mechanism."""

CENTRE, INERTIA = np.array([0.6, -0.9, 1.2]), np.array([0.8, 1.1, 0.9, 0.1, -0.2, 0.3])
"""Its centre of mass and inertia, over its size, and its mass times the square of that."""

DOWN, STANDARD_GRAVITY = np.array([0.6, -0.64, -0.48]), 9.81
"""The direction of gravity of the self-test, and its size (m/s^2) where the model has none."""

HASTY = (1.0, 10.0, 100.0)
"""Within limits, the acceleration of a task is commanded so many times as large, in turn."""


@dataclass(frozen=True, eq=False)
class States:
    """What the self-test knows: a row for each state. A `reference` is q_ref, v_ref and a_ref, of a
    law of tasks value, rate and acceleration; `tolerance` is over the largest torque of the state.
    """

    q: Array
    v: Array
    t: Array
    target: Array
    reference: tuple[Array, ...]
    inverse: Array
    torque: Array
    tolerance: Array
    open: Array | None = None
    sliding: Array | None = None
    overflow: bool = field(default=False, kw_only=True)
    """Whether fast motion is sure to give a torque that is not finite."""
    limited: bool = field(default=False, kw_only=True)
    """Whether some state is past limits."""
    cases: int = field(default=1, kw_only=True)
    """Every state whose index is a multiple of this has the parameters of the model."""
    parameters: Array = field(default_factory=lambda: np.zeros((0, 0)), kw_only=True)
    """The values of all parameters."""


def golden_states(E: Expressions, laws: Laws, weights: Array | None, limits: StateLimits) -> States:
    """States with torques by the Python path, where the guard trusts them."""
    limit, slow = limits.closure or CLOSURE_LIMIT, limits.velocity or VELOCITY_LIMIT
    mech, rng = E.mech, np.random.default_rng(64)
    cases = [_case(E, laws, weights, limits)]
    if laws.parameters:
        cases.append(_case(*_with_other_values(E, laws), weights, limits))
    rows: list[tuple[Any, ...]] = []
    limited = False
    size, beyond, doubtful = min(1e-4, 0.01 * limit, 0.01 * slow), 0, 0
    size = size if laws.standing is None else min(size, OFF_CONTACTS)
    for closed_q, closed_v, t in _closed_states(E, laws, rng):
        if not rows and doubtful + beyond == 2 * SELF_TEST_STATES:
            break  # there are none
        off = size if len(rows) >= SELF_TEST_STATES - SELF_TEST_NEAR else 0.0
        q, v = map(E.precision.rounded, _nearby(mech, closed_q, closed_v, rng, off))
        target = E.precision.rounded(5.0 * rng.normal(size=mech.nu))
        case = cases[len(rows) % len(cases)]
        asked = case.laws.measured(mech, q, v, target, t)
        guard, closed, moved, speed = laws.measures(asked)
        if not guard[0] < _most_guard(E):
            doubtful += 1
            continue
        if not (np.abs(closed).max() < 0.5 * limit and np.abs(moved).max() < 0.5 * slow * speed[0]):
            beyond += 1
            continue
        try:
            row = _answers(case, q, v, t, target, len(rows), rng)
        except (SingularityError, InconsistentError, LimitError):
            row = None
        if row is None:
            doubtful += 1
            continue
        rows.append(row[:-1])
        limited |= row[-1]
        if len(rows) == SELF_TEST_STATES:
            q, v, ts, target, inverse, torque, tolerance, *followed = (
                np.array(column) for column in zip(*rows, strict=True)
            )
            found = States(q, v, ts, target, tuple(followed), inverse, torque, tolerance)
            return replace(
                found,
                open=_open(E, laws, q[0], limit, rng) if limits.closure else None,
                sliding=_sliding(E, laws, found, limits.velocity, rng) if limits.velocity else None,
                overflow=_overflows(mech, laws, found, E.precision),
                limited=limited,
                cases=len(cases),
                parameters=_values(cases),
            )
    cause = "the reference configuration may be close to a singular one"
    if E.precision is not DOUBLE:
        cause += ", or inertias differ by too much for single precision"
    if E.partition.tolerance > 0.0:
        cause = (
            f"the geometry is rounded by {E.partition.off:.0e}, and the rows that are left hardly "
            f"determine the motion ({cause}): give axes and points with more digits, or call "
            "hc.repaired_geometry"
        )
    if beyond > doubtful:
        cause = (
            f"{beyond} closed states were past closure_limit {limit:g} or velocity_limit {slow:g} "
            "by rounding alone, so these limits are too narrow"
        )
    raise HoloctlError(
        f"{mech.name}: only {len(rows)} of {SELF_TEST_STATES} states for the self-test were "
        f"found at which the torque can be trusted; {cause}"
    )


class _Case(NamedTuple):
    """The laws with some values of their parameters, and what answers for them in Python."""

    E: Expressions
    laws: Laws
    python: PreparedInverseDynamics
    unlimited: ComputedTorque | None


def _case(E: Expressions, laws: Laws, weights: Array | None, limits: StateLimits) -> _Case:
    python = PreparedInverseDynamics(
        E.mech, E.partition, weights, "project", limits.closure, limits.velocity, limits.margin
    )
    unlimited = None if laws.controller is None else replace(laws.controller, limits=None)
    return _Case(E, laws, python, unlimited)


def _with_other_values(E: Expressions, laws: Laws) -> tuple[Expressions, Laws]:
    """With a payload and another gravity."""
    values = dict(laws.parameters)
    if E.parameters.frame is not None:
        mass = SHARE_OF_PAYLOAD * (sum(x.mass for x in E.mech.model.inertias) or 1.0)
        size = SIZE_OF_PAYLOAD * sizes(E.mech.model, E.mech.reference, E.mech.bound)[0]
        numbers = np.array([mass]), size * CENTRE, mass * size**2 * INERTIA
        values |= dict(zip(PAYLOAD, numbers, strict=True))
    if "gravity" in values:
        values["gravity"] = (np.linalg.norm(values["gravity"]) or STANDARD_GRAVITY) * DOWN
    values = {x: E.precision.rounded(y) for x, y in values.items()}
    mech = mechanism_with(E.mech, E.parameters.frame, values)
    warned = "limits that were looked at"  # at these values nothing need be within them
    mech.per_thread(warned, set).update(E.mech.per_thread(warned, set))

    def moved(controller: Any) -> Any:
        return replace(controller, mech=mech, partition=E.partition, estimator=None)

    task = laws.task
    return replace(E, mech=mech), replace(
        laws, parameters=values,
        controller=None if laws.controller is None else moved(laws.controller),
        task=None if task is None else replace(
            task, subject=TaskSubject(moved(task.subject.controller))
        ),
        limits=None if laws.limits is None else replace(laws.limits, mech=mech),
    )  # fmt: skip


def _values(cases: list[_Case]) -> Array:
    """The parameters of every state, one after the other."""
    one = [np.concatenate([np.zeros(0), *x.laws.parameters.values()]) for x in cases]
    return np.array([one[k % len(one)] for k in range(SELF_TEST_STATES)])


def _answers(
    case: _Case, q: Array, v: Array, t: float, target: Array, k: int, rng: np.random.Generator
) -> tuple[Any, ...] | None:
    """The row of the k-th state, q, v, t, target, inverse, torque, tolerance and the reference, and
    whether it is past limits; None where the guard of a task does not trust it.

    Raises
    ------
    SingularityError, InconsistentError
        As the torques by the Python path.
    """
    E, laws, unlimited, weights = case.E, case.laws, case.unlimited, case.python.weights
    mech = E.mech
    condition = inverse_dynamics(
        mech, q, v, target, inconsistent="project", weights=weights, t=t, partition=E.partition
    ).certificate.condition
    if laws.standing is not None:
        return _on_contacts(mech, laws, laws.standing, q, v, t, target, condition, rng)
    inverse, past, lost = case.python.torque(q, v, target, t), False, 0.0
    rounded, eps = E.precision.rounded, E.precision.caution * E.precision.eps
    first, second, third = map(rounded, _references(laws, q, v, rng))
    reference, free = (first, second, third), None
    torque = np.zeros(mech.nu)
    if laws.controller is not None:
        torque = laws.controller.torque(q, v, *reference, t=t)
    if unlimited is not None and laws.limits is not None:
        free = unlimited.torque(q, v, *reference, t=t)
    if laws.task is not None:
        hasty = 1.0 if laws.limits is None else HASTY[k % len(HASTY)]
        found = task_state(laws.task, q, v, t, laws.context(t), hasty, rng)
        if not found.guard < _most_guard(E):
            return None
        reference, free, torque = found.reference, found.free, found.torque
        condition *= found.worse
    if laws.limits is not None:
        within = _within(laws.limits, q, v, target, t, E.partition, weights)
        pairs = [(inverse, within.u), *([] if free is None else [(free, torque)])]
        inverse, past = within.u, within.scale != 1.0 or _changed(pairs)
        H = response_at(mech, E.partition, q, v, t, None).H
        lost = _lost_to_idle(laws.limits, H, pairs)
    condition *= 1.0 + _steepness(mech, q, v, t) / max(np.abs(inverse).max(), 1e-300)
    tolerance = eps * max(AGREE, condition)
    if laws.limits is not None:  # limited efforts may be small compared with the commanded ones
        tolerance = max(E.precision.caution * tolerance, eps * LIMITED_AGREE, eps * lost)
    return q, v, t, target, inverse, torque, tolerance, *reference, past


def _on_contacts(
    mech: Mechanism, laws: Laws, standing: StandingExport, q: Array, v: Array, t: float,
    target: Array, condition: float, rng: np.random.Generator,
) -> tuple[Any, ...]:  # fmt: skip
    """`_answers` of a law on contacts."""
    inverse, torque = standing.inverse(q, v, target, t), np.zeros(mech.nu)
    reference = _references(laws, q, v, rng)
    past = standing.paths.limiting() is not None
    if laws.controller is not None:
        torque = laws.controller.torque(q, v, *reference, t=t)
    if standing.subject is not None:
        given, reference = reference_of_tasks(standing.subject, q, v, t, rng)
        torque = standing.subject.torque(q, v, given, t)
    least = 100.0 * np.finfo(float).eps * condition
    return q, v, t, target, inverse, torque, max(least, CONTACTS_AGREE), *reference, past


def _changed(pairs: list[tuple[Array, Array]]) -> bool:
    """Whether some efforts are certainly not those asked for."""
    return any(np.abs(x - y).max() > 1e-6 * np.abs(x).max() for x, y in pairs)


def _most_guard(E: Expressions) -> float:
    """The guard of a state of the self-test is below this, and that of C below 1. Where it is near
    1 digits are lost; but in rounded geometry it also tells how far that determines the motion."""
    return 0.9 if E.partition.tolerance > 0.0 else 0.5


def _within(
    law: LimitsLaw, q: Array, v: Array, target: Array, t: float, part: Partition,
    weights: Array | None,
) -> LimitedInverseDynamics:  # fmt: skip
    """Inverse dynamics within limits."""
    return limited_inverse_dynamics(
        law.mech, q, v, target, WithinLimits(law.bound.limits, law.policy, law.dt),
        inconsistent="project", weights=weights,
        projection=project(law.mech, q, v, t=t, partition=part),
    )  # fmt: skip


def _lost_to_idle(law: LimitsLaw, H: Array, pairs: list[tuple[Array, Array]]) -> float:
    """By how much rounding is larger in the nearest efforts: what hardly moves anything, as where
    motors are redundant, is worth next to nothing, and known to so many digits less. Of pairs of
    efforts as asked for and within limits; zero where none is past them."""
    past = [
        max(1.0, float(np.abs(asked).max() / (np.abs(given).max() or np.inf)))
        for asked, given in pairs if not np.array_equal(asked, given)
    ]  # fmt: skip
    return float(np.linalg.cond(law.scaled_metric(H))) * max(past) if past else 0.0


def _steepness(mech: Mechanism, q: Array, v: Array, t: float) -> float:
    """How much the efforts of forces change with all of the velocity, N m: friction is steep at
    rest, and the velocity of a reference comes out of a solve."""
    data, slopes = mech.model.createData(), [0.0]
    for rates in (v, np.zeros(mech.nv)) if mech.forces else ():
        kin = kinematics(mech.model, data, q, rates, t)
        slopes.append(float(np.abs(change_by_velocity(mech.bound_forces, kin)).max()))
    return max(slopes) * float(np.abs(v).max())


def _closed_states(
    E: Expressions, laws: Laws, rng: np.random.Generator
) -> Iterator[tuple[Array, Array, float]]:
    """Random closed and moving states around the samples."""
    mech, most = E.mech, 20 * SELF_TEST_STATES
    held = mech if laws.standing is None else laws.standing.held
    for i in range(most):
        t = float(rng.uniform(0.0, 1.0)) if laws.timed else 0.0
        step = 0.1 * rng.normal(size=mech.nv) * mech.column_scale
        guess = pin.integrate(mech.model, E.samples[i % len(E.samples)], step)
        speed = rng.normal(size=mech.nv) * mech.column_scale
        if laws.standing is not None:
            guess = pin.integrate(mech.model, E.samples[0], ON_CONTACTS * step)
            speed *= ON_CONTACTS
        try:
            q, v = assemble(held, guess, speed, t=t, restarts=0, max_iter=50)
        except AssemblyError:
            continue
        yield q, v, t


def _nearby(
    mech: Mechanism, q: Array, v: Array, rng: np.random.Generator, size: float
) -> tuple[Array, Array]:
    """Off the manifold by about `size`, scaled."""
    if not size:
        return q, v
    off = size * rng.normal(size=(2, mech.nv)) * mech.column_scale
    return pin.integrate(mech.model, q, off[0]), v + off[1]


def _references(
    laws: Laws, q: Array, v: Array, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """q_ref, v_ref, a_ref a little off the state."""
    if laws.errors is None:
        empty = np.zeros(0)
        return empty, empty, empty
    nu = laws.errors.numel_out(0)
    zero = np.zeros(nu)
    e, rate = (-np.array(x).ravel() for x in laws.errors.call([q, v, zero, zero]))
    off = rng.normal(size=(3, nu))
    return e + 0.05 * off[0], rate + 0.1 * off[1], 2.0 * off[2]


def _open(
    E: Expressions, laws: Laws, q: Array, limit: float, rng: np.random.Generator
) -> Array | None:
    """A configuration that is open by more than `limit`; None where none is found."""
    mech = E.mech
    for i in range(40):
        size = min(0.5, limit * 2.0 ** (i / 4))
        step = size * rng.normal(size=mech.nv) * mech.column_scale
        found: Array = pin.integrate(mech.model, q, step)
        inputs = laws.measured(mech, found, np.zeros(mech.nv), np.zeros(mech.nu), 0.0)
        closed = np.array(laws.law.call(inputs)[2])
        if np.isfinite(closed).all() and np.abs(closed).max() > 2.0 * limit:
            return found
    return None


def _sliding(
    E: Expressions, laws: Laws, states: States, limit: float, rng: np.random.Generator
) -> Array | None:
    """A velocity at the first state that slides by more than `limit`; None where none is found."""
    mech = E.mech
    for i in range(40):
        step = 2.0 ** (i / 4) * rng.normal(size=mech.nv) * mech.column_scale
        found: Array = states.v[0] + step
        asked = laws.measured(mech, states.q[0], found, np.zeros(mech.nu), states.t[0])
        outputs = laws.law.call(asked)
        moved, speed = np.array(outputs[3]), float(outputs[4])
        if np.isfinite(moved).all() and np.abs(moved).max() > 2.0 * limit * speed:
            return found
    return None


def _overflows(mech: Mechanism, laws: Laws, states: States, precision: Precision) -> bool:
    """Whether most coordinates, each alone at 1e200, make a torque that is not finite.

    Then the self-test must see it: its storm has hundreds of such rates. Not required of
    the law with gravity alone, which is linear in the rates.
    """
    if laws.hold is not None or laws.standing is not None or precision is not DOUBLE:
        return False
    over = 0
    for k in range(laws.law.numel_in(1)):
        v = states.v[0].copy()
        v[k] = 1e200
        asked = laws.measured(mech, states.q[0], v, states.target[0], states.t[0])
        u, guard, _, moved, speed, *_ = (np.array(x).ravel() for x in laws.law.call(asked))
        judged = guard[0] < 1.0 and np.isfinite(moved).all() and np.isfinite(speed).all()
        over += bool(judged and not np.isfinite(u).all())
    return bool(2 * over >= laws.law.numel_in(1))
