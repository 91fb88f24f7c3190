"""Efforts on a plant: the caller's controller and loads, and the saturation of the motors.

The caller's functions run under the caller's settings for floating-point errors, and their results
are checked.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from holoctl.base.checks import Vector, listing, vector
from holoctl.base.errors import InputError
from holoctl.codegen.compiled.compiled import Compiled
from holoctl.codegen.compiled.compiled_tasks import CompiledTasks
from holoctl.control.computed_torque import ComputedTorque, Controller
from holoctl.control.effort_bounds import effort_bounds, effort_bounds_at_any_rate
from holoctl.control.loop import Loop, Tracking, in_python
from holoctl.control.task_space.impedance import Impedance
from holoctl.control.task_space.task_space_control import TaskSpaceControl
from holoctl.design.feedback.state_feedback import Feedback, StateFeedback
from holoctl.mechanism.bound_limits import BoundLimits, bound_limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.open_tree import known_efforts
from holoctl.simulation.motion import Efforts
from holoctl.simulation.plant import Load

__all__ = ["Inputs", "check_controller", "check_tick", "motors_of", "target_of"]

SAME_TICK = 1e-6
"""Largest relative difference between the tick of a controller and that of a simulation."""


@dataclass(frozen=True, eq=False)
class PlantMotors:
    """The motors of a plant, which saturate at their effort limits.

    `curved` if a limit depends on the rate of its motor. Limits of joints do not count here, as a
    plant has no end stops.
    """

    bound: BoundLimits
    curved: bool

    def given(self, plant: Mechanism, u: Vector, v: Vector) -> Vector:
        """The efforts that the motors produce under the command u."""
        lower, upper = self.bound.effort
        if self.curved:
            lower, upper = effort_bounds(self.bound, plant.B.T @ v)
        acting: Vector = np.minimum(np.maximum(u, lower), upper)
        return acting

    def held(self, plant: Mechanism, u: Vector) -> Vector | Callable[[Vector], Vector]:
        """The efforts while u is held: an array, or a function of v."""
        lower, upper = self.bound.effort
        if self.curved:
            lower, upper = effort_bounds_at_any_rate(self.bound)
        least: Vector = np.minimum(np.maximum(u, lower), upper)
        if not self.curved or (least == u).all():
            return least
        return lambda v: self.given(plant, u, v)


def motors_of(plant: Mechanism, limits: Any) -> PlantMotors:
    """The motors of a plant with these limits.

    Raises
    ------
    InputError
        For limits that do not fit the plant, or limit no motor.
    """
    bound = bound_limits(plant, limits)
    if not np.isfinite(bound.effort).any():
        raise InputError(
            f"{plant.name}: limits of a simulation are those of motors, by effort= or "
            f"speed_torque=, for a plant has no end stops; got {limits}"
        )
    return PlantMotors(bound, any(curve is not None for curve in bound.curves))


@dataclass(frozen=True)
class Inputs:
    """Controller, loads and motors of a run, and the settings of numpy under which the caller's
    functions run."""

    controller: Controller | None
    f_ext: Load | None
    efforts: Load | None
    settings: dict[str, Any]
    motors: PlantMotors | None = None

    def called(
        self, t: float, function: Callable[[], Any], check: Callable[[Any], Any] | None = None
    ) -> Any:
        """The checked result of a function of the caller; its errors get the attribute `time`."""
        try:
            with np.errstate(**self.settings):
                found = function()
            return found if check is None else check(found)
        except Exception as error:
            with suppress(Exception):  # a class that allows no new attributes
                error.time = t  # type: ignore[attr-defined]
            raise

    def command(self, plant: Mechanism, t: float, q: Vector, v: Vector) -> Vector:
        """u of the controller."""
        controller = self.controller
        if controller is None:
            return np.zeros(plant.nu)
        found: Vector = self.called(
            t,
            lambda: controller(t, q.copy(), v.copy()),
            lambda u: vector("the controller's u", u, plant.nu, "motor efforts"),
        )
        return found

    def repartitioned(self, q: Vector, v: Vector, t: float) -> Inputs:
        """The same inputs with the controller that its method `repartitioned` returns, if any."""
        repartition = getattr(self.controller, "repartitioned", None)
        if repartition is None:
            return self
        what = "the result of controller.repartitioned(q, v, t)"
        controller = self.called(
            t,
            lambda: repartition(q.copy(), v.copy(), t),
            lambda given: check_controller(given, what),
        )
        return self if controller is self.controller else replace(self, controller=controller)

    def loads(self, plant: Mechanism) -> Callable[[float, Vector, Vector], Vector] | None:
        """Efforts of external loads on the coordinates; None if there are no loads."""
        both = self.f_ext, self.efforts
        if not any(load is not None for load in both):
            return None

        def loaded(t: float, q: Vector, v: Vector) -> Vector:
            t = float(t)
            found: Vector = self.called(
                t,  # a list: a generator would keep a StopIteration
                lambda: [None if load is None else load(t, q.copy(), v.copy()) for load in both],
                lambda given: known_efforts(plant, q, v, t, *given),
            )
            return found

        return loaded

    def acting(self, plant: Mechanism, u: Vector, v: Vector) -> Vector:
        """The efforts that the motors produce under the command u."""
        return u if self.motors is None else self.motors.given(plant, u, v)

    def held(self, plant: Mechanism, u: Vector) -> Efforts:
        """Efforts on the coordinates while u is held."""
        given = u if self.motors is None else self.motors.held(plant, u)
        if callable(given):
            at_speed = given
            return _sum(lambda t, q, v: plant.B.dot(at_speed(v)), self.loads(plant))
        tau: Vector = plant.B.dot(given)
        loads = self.loads(plant)
        return tau if loads is None else _sum(lambda t, q, v: tau, loads)

    def continuous(self, plant: Mechanism) -> Efforts:
        """Efforts on the coordinates with the controller evaluated at every instant."""
        loads, rest = self.loads(plant), np.zeros(plant.nv)
        if self.controller is None:
            return loads or (lambda t, q, v: rest)

        def driven(t: float, q: Vector, v: Vector) -> Vector:
            tau: Vector = plant.B @ self.acting(plant, self.command(plant, float(t), q, v), v)
            return tau

        return _sum(driven, loads)


_Function = Callable[[float, Vector, Vector], Vector]


def _sum(tau: _Function, loads: _Function | None) -> _Function:
    return tau if loads is None else lambda t, q, v: tau(t, q, v) + loads(t, q, v)


def target_of(controller: Any) -> str:
    """The targets of a controller of the library, in words; empty for a user-defined one."""
    if not isinstance(controller, Tracking):
        return ""
    law = in_python(controller.controller)
    if isinstance(law, ComputedTorque):
        return f"of the motors {listing(law.mech.actuator_names, 6)}"
    tasks = (law.task,) if isinstance(law, Impedance) else law.tasks
    named = [f"{type(x).__name__} {getattr(x, 'frame', '')!r}".removesuffix(" ''") for x in tasks]
    return f"of {' and '.join(named)}"


def check_tick(controller: Any, rate: float, hold: bool) -> None:
    """Raise `InputError` if a controller was designed for another tick than that of the run."""
    if isinstance(controller, Feedback):
        dt = controller.feedback.dt
        if hold and dt is not None and not abs(dt * rate - 1.0) < SAME_TICK:
            raise InputError(
                f"the gains of the controller are for ticks of dt = {dt:g} s, and the simulation "
                f"calls it every {1.0 / rate:g} s; design them with dt={1.0 / rate:g}, or give "
                f"frequency={1.0 / dt:g}"
            )
        return
    if not isinstance(controller, Tracking):
        return
    law = in_python(controller.controller)
    of_motors = isinstance(law, ComputedTorque)
    integrates = of_motors and bool(law.ki.any())
    if integrates and not hold:
        raise InputError(
            "a continuous controller, hold=False, has no ticks over which ki could integrate; "
            "take hold=True"
        )
    limits = law.limits
    of_joints = limits is not None and not (limits.position is None and limits.velocity is None)
    if (integrates or of_joints) and hold and not abs(law.dt * rate - 1.0) < SAME_TICK:
        raise InputError(
            f"the controller has ticks of dt = {law.dt:g} s, with which it "
            f"{'integrates and ' if of_motors else ''}keeps limits of joints, and the simulation "
            f"calls it every {1.0 / rate:g} s; give hc.{type(law).__name__}(..., "
            f"dt={1.0 / rate:g}), or frequency={1.0 / law.dt:g}"
        )


_LAWS = (ComputedTorque, TaskSpaceControl, Impedance, Compiled, CompiledTasks)


def check_controller(controller: Any, name: str = "controller") -> Any:
    """The controller; `InputError` if it is not a function. `name` is the subject of the
    message."""
    of = getattr(controller, "__self__", None)
    if isinstance(of if callable(controller) else controller, StateFeedback):
        raise InputError(
            f"{name} must be a function (t, q, v) -> u; got a StateFeedback, whose controller() "
            "makes one"
        )
    name_of = getattr(controller, "__name__", "")
    its_own = isinstance(of, (*_LAWS, Loop)) and hasattr(type(of), name_of)
    if not callable(controller) or its_own:
        given = of if its_own else controller
        from_motors = isinstance(given, Loop) or (its_own and "motors" in name_of)
        hint = ""
        if from_motors:
            hint = "; ctl.track_from_motors(reference) makes one that uses the measurements"
        elif isinstance(given, _LAWS):
            hint = "; ctl.track(reference) makes one"
        if hint:
            law = in_python(getattr(given, "controller", given))
            of_motors = not isinstance(law, (TaskSpaceControl, Impedance))
            what = "(q_ref, v_ref, a_ref)" if of_motors else "the reference argument of torque"
            hint += f", with reference(t) -> {what}"
        what = (
            f"{type(of).__name__}.{controller.__name__}" if its_own else type(controller).__name__
        )
        none = ", or None" if name == "controller" else ""
        raise InputError(f"{name} must be a function (t, q, v) -> u{none}; got a {what}{hint}")
    return controller
