"""Simulation: a plant alone, or under a controller at its own rate, whose model may differ."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np

from holoctl.base.checks import Vector, flag, positive
from holoctl.base.errors import InputError, has_time
from holoctl.base.progress import progress_bar
from holoctl.base.renamed import former_names, formerly
from holoctl.base.single_threaded_blas import one_thread
from holoctl.base.tolerances import MOST_TICKS
from holoctl.codegen.compiled.compiled import Compiled
from holoctl.codegen.compiled.simulation_steps import rows_of, step_of
from holoctl.constraints.unilateral_contact import UnilateralContact
from holoctl.control.computed_torque import Controller
from holoctl.dynamics.tick.prepared_forward import (
    PreparedForwardDynamics,
    at_once,
    with_other_efforts,
)
from holoctl.mechanism.checks import check_mechanism, check_state
from holoctl.mechanism.default_limits import requested_limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.projector.repartition import repartitioned
from holoctl.rows.evaluate import scaled_rows_at
from holoctl.simulation.contact_motion import ContactRun, check_gaps
from holoctl.simulation.contact_points import contact_points
from holoctl.simulation.events import Event, PendingEvent, checked_events
from holoctl.simulation.inputs import Inputs, check_controller, check_tick, motors_of, target_of
from holoctl.simulation.integration_loop import (
    PlantDecisions,
    RunInProgress,
    check_plant,
    decided,
    integrate_to,
    keep_last,
    started,
)
from holoctl.simulation.motion import (
    PlantDynamics,
    RunTally,
    Settings,
    begin_tick,
    check_effort,
    new_efforts,
)
from holoctl.simulation.plant import Integrator, Plant, check_dynamics, integrator_of, plant_of
from holoctl.simulation.record import checked_output, finished, record_for, ticks_of
from holoctl.simulation.run import Run
from holoctl.simulation.saturation import Saturation, limits_of_controller
from holoctl.simulation.sensor_readings import simulated_sensors
from holoctl.simulation.sensors import Sensors

__all__ = ["simulate"]

TIMED_TICKS = 10.0
"""If forces may depend on time, no step is longer than this number of ticks, so that a step does
not jump over a short force."""


@formerly(
    **{name: f"plant=hc.Plant({name}=...)" for name in ("dynamics", "limits", "f_ext", "efforts")},
    **{
        name: f"integrator=hc.Integrator({name}=...)"
        for name in ("method", "rtol", "atol", "at_singular", "hold")
    },
    seed="sensors=hc.Sensors(seed=...)",
)
@former_names(frequency="rate")
def simulate(
    mech: Mechanism,
    controller: Controller | None,
    q0: Any,
    v0: Any,
    duration: float,
    *,
    plant: Mechanism | Compiled | Plant | None = None,
    frequency: float = 1000.0,
    sensors: Sensors | None = None,
    events: Sequence[Event] | Event = (),
    contacts: Sequence[UnilateralContact] | UnilateralContact = (),
    output: Any = None,
    integrator: Integrator | None = None,
    progress: bool = False,
) -> Run:
    """Simulate a mechanism, alone or under a controller.

    At every tick the controller gets the state, or the readings of its sensors, and its efforts are
    held to the next tick. The forces of the plant, such as friction, act at every instant. Without
    a controller, or with a continuous one, there is one adaptive integration.

    After every step all rows are evaluated: the state is projected onto the manifold, other rows
    and coordinates are chosen if those in use become dependent, and no step jumps over a singular
    configuration. A result that leaves the constraints, or whose velocity jumps, is not returned.

    Parameters
    ----------
    mech : Mechanism
        The controller's model; also the plant unless one is given.
    controller : callable or None
        ``controller(t, q, v) -> u`` with u (nu,); `ComputedTorque.track` makes one. With `sensors`
        ``controller(t, q_m, v_m) -> u``, as `ComputedTorque.track_from_motors` makes one. None: no
        motor acts. If the controller has a method ``repartitioned``, it is called between ticks
        with (q, v, t), or the readings of the sensors, and returns the controller to use from
        there.
    q0, v0 : (nq,) and (nv,) array_like
        Start, on the manifold: see `assemble`.
    duration : float
        s. If it is not a multiple of the tick, the last tick is shorter.
    plant : Mechanism, Compiled or Plant, optional
        What is simulated, with the same coordinates and motors as `mech`: a mechanism, compiled
        forward dynamics of one, or a `Plant`, which also has limits of motors and external loads.
        Default: `mech`.
    frequency : float, optional
        Ticks per second. If a force may depend on time (loads, a continuous controller, functions
        of a `Custom` or `CustomForce`), no step is longer than ten ticks: a force that acts for a
        shorter time may be missed.
    sensors : Sensors, optional
        The sensors of the controller: which joints are measured, with what noise and delay.
        Default: the exact state. Not with a continuous controller.
    events : Event or sequence of Event, optional
        Zeros of functions at which the run ends, or the plant and its velocity change.
    contacts : UnilateralContact or sequence of UnilateralContact, optional
        Points of bodies that the ground pushes, and holds by friction. They land, slide, stick and
        leave by themselves: `Run.contact_events`, `Run.contact_forces`.
    output : (n,) array_like, optional
        Instants to record, increasing, from 0 to `duration`. Default: the ticks of `frequency`,
        the end included.
    integrator : Integrator, optional
        Method and tolerances of the steps, the behaviour at a singular configuration, and whether
        the controller is held between ticks. Default: ``Integrator()``.
    progress : bool, optional
        Show a progress bar (needs tqdm).

    Returns
    -------
    Run
        Ctrl-C ends the integration early; the run then has the instants so far.

    Raises
    ------
    InputError
        For wrong shapes, options or numbers, a `plant` or `sensors` that do not match, more than
        ten million instants, a controller, a load or an event that returns the wrong shape or
        numbers that are not finite.
    InconsistentError
        If the start is not on the manifold, the motion becomes too fast to integrate or leaves the
        constraints, or, if the geometry is rounded, the error of a row that was left out exceeds
        the tolerance.
    SingularityError
        If the motion runs into a singular configuration, or passes so close to one that its branch
        is not determined.

    See Also
    --------
    ComputedTorque : a controller.
    Plant : another plant than the model, limits, loads.
    Sensors : noise, resolution and delay.
    Event : what happens during a run.
    plot_run : pictures of a run.

    Notes
    -----
    An error during the run, also one that the controller raises, has the attributes ``time``, s,
    and ``run``, the `Run` so far, and a note that states the time.

    References
    ----------
    docs/derivations.md, "Simulation".

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> ctl = hc.ComputedTorque(mech, kp=400.0, kd=40.0)
    >>> run = hc.simulate(mech, ctl.track(lambda t: (q, [0.0, 0.0], [0.0, 0.0])), q, v, 0.02)
    >>> run.u[0].round(2).tolist(), bool(abs(run.q - q).max() < 1e-9)
    ([-2.3, 2.3], True)
    """
    check_mechanism(mech)
    plant, simulated = plant_of(plant, mech)
    check_plant(mech, plant, "plant")
    dynamics, limits = simulated.dynamics, requested_limits(plant, simulated.limits, "Plant")
    if controller is not None:
        check_controller(controller)
    q, v, _ = check_state(plant, q0, v0, names=("q0", "v0"))
    duration = positive("duration", duration, "s")
    rate = positive("frequency", frequency, "ticks per s")
    if not duration * rate <= MOST_TICKS:
        raise InputError(
            f"duration and frequency make {duration * rate:.3g} ticks; a run has at most "
            f"{MOST_TICKS:.0e}, all of them recorded"
        )
    by = integrator_of(integrator)
    watched, progress = checked_events(events), flag("progress", progress)
    check_tick(controller, rate, by.hold)
    held = controller is not None and by.hold
    if sensors is not None and not held:
        raise InputError(
            "sensors are read at the ticks of a controller: give a controller, and hold=True"
        )
    if limits is not None and controller is None:
        raise InputError("limits clip the efforts of a controller: give a controller, or no limits")
    motors = None if limits is None else motors_of(plant, limits)
    if dynamics is not None:
        check_dynamics(dynamics, plant)
    ticks = ticks_of(duration, rate)
    instants = ticks if output is None else checked_output(output, duration)
    readings = simulated_sensors(controller, sensors, mech, plant, ticks.tolist(), rate)
    loaded = simulated.f_ext is not None or simulated.efforts is not None
    timed = loaded or (controller is not None and not held) or _may_depend_on_time(plant)
    settings = Settings(
        dynamics=_dynamics_by(dynamics), method=by.method, rtol=by.rtol, atol=by.atol,
        cross=by.at_singular == "cross",
        hold_side=by.at_actuation_singularity == "raise", tick=1.0 / rate, ticks=held, end=duration,
        longest=TIMED_TICKS / rate if timed else np.inf, target=target_of(controller),
    )  # fmt: skip
    inputs = Inputs(controller, simulated.f_ext, simulated.efforts, dict(np.geterr()), motors)
    points = contact_points(plant, contacts)
    with np.errstate(all="ignore"):
        if points is not None:
            check_gaps(points, plant, q, v)
        at = decided(plant, q, v, 0.0)
        if dynamics is not None and _serves(dynamics.partition, at, q, v):
            at = replace(at, partition=dynamics.partition)
        u = np.zeros(plant.nu)
        tau = inputs.held(plant, u) if held else inputs.continuous(plant)
        motion = started(at, settings, RunTally(), 0.0, q, v, tau)
    pending = tuple(map(PendingEvent, watched))
    bounds = None if motors is None else motors.bound, limits_of_controller(controller)
    run = RunInProgress(
        motion, pending, record_for(plant, instants, sensors), inputs, held,
        u, {id(plant): at}, readings, Saturation(tuple(x for x in bounds if x is not None)),
    )  # fmt: skip
    if points is not None:
        run.contacts = ContactRun(points, plant, at.partition)
        run.record.contacts = run.contact_forces
        run.record.pushed = np.zeros((instants.size + 1, points.friction.size, 3))
    if progress:
        run.record.bar = progress_bar(instants.size, "simulating", "instants", scaled=True)
    return _integrated(run, ticks)


def _integrated(run: RunInProgress, ticks: Vector) -> Run:
    """The run to its end, or until Ctrl-C; an error gets the time and the run so far."""
    record, plant = run.record, run.motion.plant
    with np.errstate(all="ignore"), one_thread(), record.bar or nullcontext():
        try:
            if run.held:
                _ticked(run, ticks)
            else:
                duration = float(ticks[-1])
                integrate_to(run, duration)
                if run.ended or record.next <= duration:
                    keep_last(run)
        except KeyboardInterrupt:
            run.ended = "Ctrl-C"
            keep_last(run)
        except Exception as error:
            # an error of a function of the caller has a time
            t = getattr(error, "time", 0.0) if has_time(error) else run.motion.t
            keep_last(run, after_error=True)
            with suppress(Exception):  # a class that allows no new attributes
                error.time = t  # type: ignore[attr-defined]
                error.run = _finished(run, "an error")  # type: ignore[attr-defined]
                error.add_note(f"in the simulation of {plant.name!r}, at t = {t:.6g} s")
            raise
        return _finished(run, run.ended)


def _finished(run: RunInProgress, ended: str) -> Run:
    saturated = run.saturation.until(run.motion.t)
    tally = run.motion.tally
    return finished(run.record, tally, run.sides, saturated, ended, run.contacts)


def _ticked(run: RunInProgress, ticks: Vector) -> None:
    """Integrate tick by tick: read the sensors, call the controller, integrate to the next tick."""
    record, instants = run.record, ticks.tolist()
    rows = run.motion.monitor.decomposed
    for t, stop in zip_longest(instants, instants[1:]):
        motion = run.motion
        plant, q, v = motion.plant, motion.q, motion.v
        check_effort(motion)
        if run.sensors is not None:
            q, v = run.sensors.at_tick(motion, t)
        if rows is not motion.monitor.decomposed:  # the rows have changed noticeably
            rows = motion.monitor.decomposed
            run.inputs = run.inputs.repartitioned(q, v, t)
        start = time.perf_counter()
        run.u = run.inputs.command(plant, t, q, v)
        record.spent = time.perf_counter() - start
        run.commanded(t, plant.B.T @ motion.v)
        if stop is None:
            if record.next <= t:
                keep_last(run)
            break
        new_efforts(motion, run.inputs.held(plant, run.u))
        begin_tick(motion)
        integrate_to(run, stop)
        if run.ended:
            keep_last(run)
            break


def _serves(part: Partition, at: PlantDecisions, q: Vector, v: Vector) -> bool:
    """Whether the partition of compiled dynamics is well-conditioned at the start."""
    return part.rank == at.partition.rank and repartitioned(at.plant, part, q, v) is part


def _may_depend_on_time(plant: Mechanism) -> bool:
    """Whether a force that is neither spring nor friction, or a constraint with `time`, is
    there."""
    forces = any(not (force.stores or force.friction) for force in plant.bound_forces)
    return forces or any(bool(getattr(c, "time", False)) for c in plant.constraints)


def _dynamics_by(compiled: Compiled | None) -> Callable[[Mechanism, Partition], PlantDynamics]:
    if compiled is None:
        return _prepared
    rows, step = rows_of(compiled), step_of(compiled)
    serves = PlantDynamics(compiled.forward_dynamics, rows, step=step)

    def dynamics(mech: Mechanism, part: Partition) -> PlantDynamics:
        if mech is not compiled.mech:
            return _prepared(mech, part)
        return serves if part is compiled.partition else replace(_prepared(mech, part), rows=rows)

    return dynamics


def _prepared(mech: Mechanism, part: Partition) -> PlantDynamics:
    prepared = PreparedForwardDynamics(mech, part)
    rows = partial(scaled_rows_at, mech)
    return PlantDynamics(at_once(prepared), rows, partial(with_other_efforts, prepared))
