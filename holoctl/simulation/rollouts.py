"""`Rollouts`: many robots at once, each with its own state, parameters and noise.

One kernel has the whole loop: sensors, controller and plant are the C that `export_c` writes. Each
robot takes the same steps whatever the others do, so results do not depend on their number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holoctl.base.checks import Array, counted, number, numbers, positive, quiet, quoted, whole
from holoctl.base.errors import HoloctlError, InputError
from holoctl.codegen.devices.device_named import device_named
from holoctl.codegen.devices.dlpack import on_gpu
from holoctl.codegen.devices.kernels import Device, Module
from holoctl.codegen.devices.rollout_program import CONTEXT, RolloutProgram, rollout_program
from holoctl.codegen.exported.c_sources import Library
from holoctl.codegen.exported.export import law_library
from holoctl.control.computed_torque import ComputedTorque
from holoctl.control.task_space.impedance import Impedance
from holoctl.control.task_space.task_space_control import TaskSpaceControl
from holoctl.mechanism.mechanism import Mechanism
from holoctl.simulation.sensors import WHOLE_STATE, Sensors
from holoctl.tree.coordinates import translational

__all__ = ["RolloutResult", "Rollouts"]


@dataclass(frozen=True, eq=False)
class RolloutResult:
    """What `Rollouts.run` returns: the motions of N robots, at R + 1 instants.

    Arrays are of NumPy, or of the GPU if an input was; those have ``__dlpack__``. Rows after the
    tick in which a robot stopped are nan.

    Attributes
    ----------
    t : (R + 1,) array
        Instants, s.
    q : (N, R + 1, nq) array
        Configurations.
    v : (N, R + 1, nv) array
        Velocities.
    u : (N, R, nu) array
        Motor efforts that act from each instant on, N m or N.
    status : (N,) array of bytes
        Why a robot stopped; 0: it did not.
    counts : (N, 2) array
        Whole numbers: the ticks that each robot made, and those of them in which limits changed
        the command.
    statuses : dict of int to str
        Names of the statuses.

    See Also
    --------
    Rollouts : makes them.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> found = hc.Rollouts(mech, dt=1e-3).run(q, v, np.zeros((3, 10, 2)))
    >>> found.q.shape, found.status.tolist()
    ((3, 11, 4), [0, 0, 0])
    """

    t: Array
    q: Any
    v: Any
    u: Any
    status: Any
    counts: Any
    statuses: Mapping[int, str] = field(repr=False)

    def __repr__(self) -> str:
        N, R = self.q.shape[:2]
        return f"<RolloutResult of {counted(N, 'robot')}, {counted(R, 'instant')}>"

    def describe(self) -> str:
        """How many robots came to the end, and why others stopped, with the first of each.

        Examples
        --------
        >>> import numpy as np, holoctl as hc
        >>> mech = hc.load(hc.robot_file("five_bar"))
        >>> q, v = hc.assemble(mech)
        >>> u = np.zeros((3, 10, 2))
        >>> u[1, 4] = np.nan
        >>> hc.Rollouts(mech, dt=1e-3).run(q, v, u).describe()
        '2 of 3 robots came to the end; 1 robot (1, after 4 ticks): NOT_FINITE'
        """
        status, ticks = np.array(self.status), np.array(self.counts)[:, 0]
        parts = [
            f"{np.count_nonzero(status == 0)} of {counted(status.size, 'robot')} came to the end"
        ]
        for code in np.unique(status[status != 0]).tolist():
            robots = np.flatnonzero(status == code)
            first = f"{robots[0]}, after {counted(int(ticks[robots[0]]), 'tick')}"
            first = first if robots.size == 1 else f"the first: {first}"
            name = self.statuses.get(code, str(code))
            parts.append(f"{counted(robots.size, 'robot')} ({first}): {name}")
        return "; ".join(parts)


@dataclass(frozen=True, eq=False, repr=False)
class Rollouts:
    """Many robots at once, on all cores or on a GPU: a plant, alone or under a controller.

    Built once, by the C compiler of this computer or by NVRTC (the extra ``holoctl[cuda]``), and
    kept in the cache folder as `compile` keeps its modules. The plant is that of
    ``export_c(plant=True)``: exact forward dynamics, one step of the classical Runge-Kutta method
    for each of `substeps`, and a correction that closes the loops. The controller is that of
    `export_c`: each tick has its checks, and a tick without a valid torque stops its robot, with a
    status, and no other one. There are no ground, no stops of joints and no saturation of motors;
    limits of a controller are kept.

    Parameters
    ----------
    what : Mechanism, ComputedTorque, TaskSpaceControl or Impedance
        A mechanism takes efforts of its motors; a controller takes its references.
    dt : float
        Seconds from tick to tick; efforts are held between them.
    sensors : Sensors, optional
        For a controller: it gets readings of these joints, with their noise and counts, and
        estimates the closed state. Default: it gets the exact state.
    substeps : int, optional
        Steps of the plant in a tick.
    payload : str, optional
        A frame: robots then have a payload there; see `run`.
    gravity : bool, optional
        Whether robots have gravity of their own.
    device : str, optional
        ``"cpu"``: all cores of this computer; ``"cuda"``: its GPU.
    workers : int, optional
        The number of threads of ``"cpu"``. Default: one for each core.

    Attributes
    ----------
    mech, followed, controller_parameters, plant_parameters, statuses
        Properties.

    Raises
    ------
    InputError
        As `export_c`; for contacts; for sensors with a delay, filtered rates or cut joints, or that
        do not determine the state; for unknown devices; without a compiler or a GPU, with what to
        install.
    HoloctlError
        If the compiler fails.

    See Also
    --------
    simulate : one robot, with events, contacts and a record of its energy.
    compile : laws at many states, with ``device=``.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> robots = hc.Rollouts(hc.ComputedTorque(mech, kp=400.0, kd=40.0), dt=1e-3)
    >>> found = robots.run(
    ...     q, v, mech.motor_positions(q), np.zeros(2), np.zeros(2), ticks=100,
    ...     controller={"kp": [[100.0, 100.0], [400.0, 400.0]]},
    ... )
    >>> found.q.shape, found.status.tolist()
    ((2, 101, 4), [0, 0])
    """

    what: Mechanism | ComputedTorque | TaskSpaceControl | Impedance
    dt: float
    sensors: Sensors | None = None
    substeps: int = 1
    payload: str | None = None
    gravity: bool = False
    device: str = "cpu"
    workers: int | None = None
    _device: Device = field(init=False, repr=False)
    _module: Module = field(init=False, repr=False)
    _program: RolloutProgram = field(init=False, repr=False)
    _context: Any = field(init=False, repr=False)
    _usual: dict[str, Array] = field(init=False, repr=False)
    _reading: tuple[Array, Array] = field(init=False, repr=False)

    @quiet
    def __post_init__(self) -> None:
        """Check the options; build the kernels and try the controller."""

        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("dt", positive("dt", self.dt, "s"))
        put("substeps", whole("substeps", self.substeps, 1))
        put("_device", device_named(self.device, self.workers))
        lib = self._library()
        state = lib.laws.closed_state
        if self.sensors is not None and state is None:
            raise InputError(
                f"{self.mech.name}: the motors do not determine the closed state; name more joints "
                "in hc.Sensors(measured)"
            )
        model = None if self.sensors is None or state is None else state.sensing.sensors
        put("_program", rollout_program(lib, model))
        put("_usual", _usual(lib))
        put("_reading", _reading(self.sensors, model))
        put("_module", self._device.build(self._program.program))
        put("_context", self._device.array("context", np.zeros(CONTEXT, np.uint8), np.uint8))
        if lib.laws.controlled:
            ended = self._device.array("ended", np.zeros(1, np.uint8), np.uint8)
            self._module.run("prepare", 1, ended, self._context)
            if self._device.numpy(ended)[0]:
                raise HoloctlError(
                    f"{self.mech.name}: the controller does not compute on this device as it "
                    "should; report this with the names of device and compiler"
                )

    def __repr__(self) -> str:
        return f"<Rollouts {self.mech.name!r} on {self.device}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Rollouts, (
            self.what, self.dt, self.sensors, self.substeps, self.payload, self.gravity,
            self.device, self.workers,
        )  # fmt: skip

    @property
    def mech(self) -> Mechanism:
        """That of the plant."""
        return self.what if isinstance(self.what, Mechanism) else self.what.mech

    @property
    def followed(self) -> dict[str, int]:
        """What `run` takes at each tick, with sizes: ``u``, or references of the controller."""
        return dict(self._program.followed)

    @property
    def controller_parameters(self) -> dict[str, int]:
        """What `run` takes for the controller of each robot, with sizes."""
        return dict(self._program.controller)

    @property
    def plant_parameters(self) -> dict[str, int]:
        """What `run` takes for the plant of each robot, with sizes."""
        return dict(self._program.plant)

    @property
    def statuses(self) -> dict[int, str]:
        """Names of the statuses: those of `export_c`, and PLANT_REFUSED where constraints are
        singular, or the motion too fast for its step."""
        return dict(self._program.statuses)

    def run(
        self,
        q: Any,
        v: Any,
        *followed: Any,
        ticks: int | None = None,
        every: int = 1,
        t: float = 0.0,
        seed: int = 0,
        first_robot: int = 0,
        controller: Mapping[str, Any] | None = None,
        plant: Mapping[str, Any] | None = None,
    ) -> RolloutResult:
        """The motions of N robots, from their states on.

        The same inputs give the same bits on the same device, whatever the number of robots.

        Parameters
        ----------
        q : (nq,) or (N, nq) array_like
            Configurations at the start, closed to 1e-3 (scaled), else the status is OPEN; one for
            all, or one for each.
        v : (nv,) or (N, nv) array_like
            Velocities at the start; SLIDING if they break the constraints.
        followed : (n,), (T, n) or (N, T, n) array_like
            The inputs at each tick, in the order of `followed`: ``u`` of a mechanism; ``q_ref,
            v_ref, a_ref`` of a `ComputedTorque`; ``value, rate, acceleration`` of a law of a task.
            One for all ticks, for each tick, or for each tick of each robot; (N, 1, n) is held at
            all ticks.
        ticks : int, optional
            Their number. Default: T.
        every : int, optional
            Only the state of each so many ticks is returned; a divisor of their number.
        t : float, optional
            Time at the start, s.
        seed : int, optional
            Seed of the sensors' noise, at least 0, which is another for each robot and tick of a
            run: give each run of a sequence another one. That of `Sensors` is not used.
        first_robot : int, optional
            The number of the first robot, for its noise, where a batch is run in parts.
        controller, plant : dict of str to array_like, optional
            Parameters of each, (n,) or (N, n), as the exported C names them: ``kp`` and ``kd`` of
            the motors, ``payload_mass`` (kg), ``payload_centre`` (m) and ``payload_inertia``
            (xx yy zz xy xz yz, about the centre, kg m^2), ``gravity`` (m/s^2). Defaults: gains and
            gravity of the controller, no payload.

        Returns
        -------
        RolloutResult

        Raises
        ------
        InputError
            For arrays of wrong shapes, and names that are no parameters. Numbers that are not
            finite stop their robot, with the status NOT_FINITE.
        """
        made, N, T = self._tables(q, v, followed, ticks, controller or {}, plant or {})
        every, start = whole("every", every, 1), number("t", t, "s")
        if T % every:
            raise InputError(f"every must divide the number of ticks, {T}; got {every}")
        rows, mech = T // every, self.mech
        results = [
            self._device.empty(shape)
            for shape in (
                (N, rows + 1, mech.nq), (N, rows + 1, mech.nv), (N, rows, mech.nu), (N, 2)
            )
        ]  # fmt: skip
        ended = self._device.empty((N,), np.uint8)
        scalars = (
            start, self.dt, T, self.substeps, every, whole("seed", seed, 0),
            whole("first_robot", first_robot, 0),
        )  # fmt: skip
        self._module.run(
            "rollout", N, *made, *scalars, *results, ended, (self._context, ("entry",))
        )
        given = q, v, *followed, *(controller or {}).values(), *(plant or {}).values()
        if not any(map(on_gpu, given)):
            results, ended = [self._device.numpy(x) for x in results], self._device.numpy(ended)
        instants = np.asarray(start + every * self.dt * np.arange(rows + 1), dtype=float)
        found_q, found_v, found_u, counts = results
        return RolloutResult(instants, found_q, found_v, found_u, ended, counts, self.statuses)

    def _tables(
        self, q: Any, v: Any, followed: tuple[Any, ...], ticks: int | None,
        controller: Mapping[str, Any], plant: Mapping[str, Any],
    ) -> tuple[list[tuple[Any, tuple[str, ...]]], int, int]:  # fmt: skip
        """The arrays of all inputs with their axes, the numbers of robots and ticks."""
        program = self._program
        sizes = {axis: dict[str, int]() for axis in ("robot", "step", "held")}
        if len(followed) != len(program.followed):
            raise InputError(
                f"{self.mech.name}: run takes q, v, {', '.join(program.followed)}; got "
                f"{len(followed)} arrays after q and v"
            )
        named = dict(zip(program.followed, followed, strict=True))
        made = [self._table("q", q, self.mech.nq, sizes), self._table("v", v, self.mech.nv, sizes)]
        made += [self._table(x, named[x], n, sizes, True) for x, n in program.followed.items()]
        for label, known, given in (
            ("controller", program.controller, controller), ("plant", program.plant, plant),
        ):  # fmt: skip
            for name in given:
                if name not in known:
                    raise InputError(
                        f"{label}: {quoted(name)} is no parameter of it; known: "
                        f"{', '.join(known) or 'none'}"
                    )
            for x, n in known.items():
                value = given.get(x, self._usual[x])
                value = _column(f"{label} {x}", value) if x == "payload_mass" else value
                made.append(self._table(f"{label} {x}", value, n, sizes))
        noise, steps = self._reading
        made += [(self._device.array("noise", noise), ("step", "entry")),
                 (self._device.array("counts", steps), ("entry",))]  # fmt: skip
        N = _one("robots", sizes["robot"], 1)
        steps_given = dict(sizes["step"])
        if ticks is not None:
            steps_given["ticks"] = whole("ticks", ticks, 1)
        T = _one("ticks", steps_given, 1 if sizes["held"] else None)
        if ticks is None and T == N > 1 and not any(len(axes) == 3 for _, axes in made):
            raise InputError(
                f"{', '.join(sizes['step'])}: are these {N} rows ticks, or robots? For ticks give "
                f"ticks={N}, for robots an axis of one tick, x[:, None]"
            )
        return made, N, T

    def _table(
        self,
        name: str,
        value: Any,
        size: int,
        sizes: dict[str, dict[str, int]],
        steps: bool = False,
    ) -> tuple[Any, tuple[str, ...]]:
        """An array of the device with its axes; notes the sizes of these."""
        x = self._device.array(name, value)
        axes = (("robot", "step", "entry") if steps else ("robot", "entry"))[-len(x.shape) :]
        if not x.shape or len(x.shape) > 2 + steps or x.shape[-1] != size:
            wanted = (
                f"({size},), (T, {size}) or (N, T, {size})"
                if steps
                else (f"({size},) or (N, {size})")
            )
            raise InputError(f"{name} must have shape {wanted}; got {tuple(x.shape)}")
        if len(x.shape) == 3 and x.shape[1] == 1:  # held at all ticks, as (n,) is
            axes, sizes["held"][name] = ("robot", "held", "entry"), 1
        for axis, n in zip(axes[:-1], x.shape[:-1], strict=True):
            sizes[axis][name] = int(n)
        return x, axes

    def _library(self) -> Library:
        kinds = Mechanism, ComputedTorque, TaskSpaceControl, Impedance
        if not isinstance(self.what, kinds):
            raise InputError(
                "what must be a Mechanism, a ComputedTorque, a TaskSpaceControl or an Impedance; "
                f"got a {type(self.what).__name__}"
            )
        if getattr(self.what, "contacts", None) is not None:
            raise InputError(f"{self.mech.name}: rollouts have no ground, so no contacts")
        measured: Any = "all"
        if self.sensors is not None:
            measured = _measured(self.what, self.sensors)
        return law_library(
            self.what, name="robot", plant=True, measured=measured, payload=self.payload,
            gravity=self.gravity,
        )  # fmt: skip


def _measured(what: Any, sensors: Any) -> Any:
    if not isinstance(sensors, Sensors):
        raise InputError(f"sensors must be Sensors; got a {type(sensors).__name__}")
    if isinstance(what, Mechanism):
        raise InputError(f"{what.name}: a mechanism alone reads no sensors; leave out sensors")
    if sensors.delay or sensors.rate_bandwidth is not None or sensors.measured == WHOLE_STATE:
        raise InputError(
            "sensors of rollouts measure joints without delay, rates too: leave out delay, "
            f"rate_bandwidth and measured='all'; got {sensors}"
        )
    return sensors.measured


def _reading(sensors: Sensors | None, model: Any) -> tuple[Array, Array]:
    """Standard deviations of positions and rates (2, m), and the steps of positions (m,)."""
    if sensors is None:
        return np.zeros((2, 1)), np.zeros(1)
    m, linear = model.columns.size, translational(model.mech.model)[model.columns]
    noise = np.array([_spread("noise", x, m) for x in sensors.noise])
    counts = np.full(m, np.inf) if sensors.counts is None else _spread("counts", sensors.counts, m)
    return noise, np.where(linear, 1.0, 2.0 * np.pi) / counts


def _spread(name: str, given: Any, m: int) -> Array:
    x = np.asarray(given, float)
    if x.ndim and x.size != m:
        raise InputError(f"{name} of the sensors must be a number or ({m},) of them; got {x.shape}")
    return np.broadcast_to(x, (m,)).copy()


def _usual(lib: Library) -> dict[str, Array]:
    laws = lib.laws
    gains = (
        {} if laws.controller is None else {x: getattr(laws.controller, x) for x in ("kp", "kd")}
    )
    return {**gains, **laws.parameters}


def _column(name: str, mass: Any) -> Any:
    """One mass for all, or a column of one for each robot."""
    if hasattr(mass, "__dlpack__") and not isinstance(mass, np.ndarray):
        return mass
    x = numbers(name, mass)
    return x.reshape(1) if x.size == 1 else x.reshape(-1, 1) if x.ndim == 1 else x


def _one(what: str, given: dict[str, int], usual: int | None) -> int:
    """The number that all agree on."""
    if len(set(given.values())) > 1:
        raise InputError(
            f"numbers of {what} must agree; got "
            + ", ".join(f"{n} of {name}" for name, n in given.items())
        )
    found = next(iter(given.values()), usual)
    if found is None:
        raise InputError(f"the number of {what} is not known: give {what}=")
    return found
