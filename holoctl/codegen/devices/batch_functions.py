"""`BatchFunctions`: compiled laws at the states of many robots, on all cores or a GPU.

One call evaluates a law for all robots. A robot whose guard refuses gets NaN and a status; the
others get what they would get alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector, instant, joined, numbers, one_of, quiet
from holoctl.base.errors import InputError
from holoctl.codegen.batched_functions import batched_source
from holoctl.codegen.compiled.compiled import CompiledTerms
from holoctl.codegen.compiled.compiled_tasks import task_source_and_law
from holoctl.codegen.compiled.estimator import not_compiled
from holoctl.codegen.compiled.extension_source import Law
from holoctl.codegen.compiled.functions import law_of, law_sources
from holoctl.codegen.devices.batch_kernels import (
    batch_program,
    kernel_name,
    results_of,
    state_source,
)
from holoctl.codegen.devices.batch_status import described
from holoctl.codegen.devices.device_named import DEVICES, device_named
from holoctl.codegen.devices.dlpack import on_gpu
from holoctl.codegen.devices.kernels import Device, Module
from holoctl.codegen.expressions import Expressions, symbolic
from holoctl.codegen.law_options import Subject
from holoctl.codegen.laws.border_expressions import estimator_with, sensing_of
from holoctl.codegen.laws.closed_state import closed_state
from holoctl.codegen.laws.kinematics import frames_for, kinematics_function
from holoctl.codegen.laws.task_rows import reference_value
from holoctl.codegen.task_law_options import TaskSubject
from holoctl.control.computed_torque import ComputedTorque
from holoctl.control.task_space.impedance import Impedance
from holoctl.control.task_space.task_space_control import TaskSpaceControl
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition

__all__ = ["BatchFunctions", "batch_functions", "check_device"]


@dataclass(frozen=True, eq=False, repr=False)
class BatchFunctions:
    """The result of `compile` with a `device`: functions of many states in one call, one robot a
    row.

    An input has shape (N, n), or (n,) for the same numbers for all robots; of inputs without an
    axis of robots N is 1. Rows may have any strides. What has ``__dlpack__`` (arrays of PyTorch,
    CuPy, JAX) is read where it is if it is float64 on the device. Results are NumPy arrays, or
    arrays of the GPU if an input was no array of NumPy.

    A function returns its arrays and ``status``, (N,) bytes: a `results.BatchStatus` for each
    robot. Where it is not ``OK`` the results of that robot are NaN; the others are what they are
    in a batch without it, bit by bit, whatever the number of threads. Nothing is computed in
    Python, so a state that `results.Compiled` hands over to the Python path is ``IN_DOUBT`` here.

    It may be shared between threads, copied and pickled; a pickle is built again, or loaded from
    the cache. The methods of functions that were not compiled raise an `InputError`.

    Attributes
    ----------
    mech : Mechanism
    partition : Partition
    controller : ComputedTorque, TaskSpaceControl, Impedance or None
    functions : tuple of str
        The compiled functions.
    device : str
        ``"cpu"`` or ``"cuda"``.
    workers : int or None
        The number of threads of ``"cpu"``; None for one for each core.
    measured : tuple of str or None
        The measured joints of `state`; None for those of the controller's `estimator`, or the
        motors.
    frames : tuple of str
        The frames of `kinematics`.

    See Also
    --------
    compile : returns it.
    results.BatchStatus : the codes.
    results.Compiled : one state in a call, and the Python path where the guard refuses.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> many = hc.compile(mech, ["inverse_dynamics"], device="cpu")
    >>> q, v = hc.assemble(mech)
    >>> Q = np.tile(q, (3, 1))
    >>> Q[1, 0] = np.nan
    >>> u, status = many.inverse_dynamics(Q, v, np.zeros(2))
    >>> u.round(2).tolist()
    [[-2.3, 2.3], [nan, nan], [-2.3, 2.3]]
    >>> many.describe(status)
    '2 of 3 robots OK; 1 robot (1): NOT_FINITE, an input is not finite'
    """

    mech: Mechanism
    partition: Partition
    controller: ComputedTorque | TaskSpaceControl | Impedance | None
    functions: tuple[str, ...]
    device: str
    workers: int | None
    measured: tuple[str, ...] | None
    frames: tuple[str, ...]
    _subject: Subject | TaskSubject = field(repr=False)
    _device: Device = field(repr=False)
    _laws: dict[str, tuple[Module, Law]] = field(repr=False)
    _start: Vector | None = field(repr=False)

    def __repr__(self) -> str:
        return f"<BatchFunctions {self.mech.name!r} on {self.device}: {', '.join(self.functions)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        given = self._subject, self.functions, self.measured, self.device, self.workers, self.frames
        return batch_functions, given

    def __deepcopy__(self, memo: dict[int, Any]) -> BatchFunctions:
        return self  # immutable

    def inverse_dynamics(
        self, q: Any, v: Any, target: Any, t: float = 0.0, *, out: Any = None
    ) -> tuple[Any, Any]:
        """The motor efforts that cause the accelerations `target` of the motors.

        Parameters
        ----------
        q : (N, nq) or (nq,) array_like
        v : (N, nv) or (nv,) array_like
        target : (N, nu) or (nu,) array_like
            ``B' a``, rad/s^2 or m/s^2.
        t : float, optional
            Time, s, for constraints that depend on it; the same for all.
        out : (N, nu) array, optional
            Array of floats for the result, of NumPy or as a function of this device returned it.
            On a GPU it must not overlap inputs, other than being one of them.

        Returns
        -------
        u : (N, nu) array
            N m or N: `out`, or a new array.
        status : (N,) array of bytes

        Raises
        ------
        InputError
            For wrong shapes, for values that are no arrays of real numbers, and for an `out` that
            cannot take the result.
        """
        u, status = self._answers("inverse_dynamics", (q, v, target), t, out)
        return u, status

    def forward_dynamics(
        self, q: Any, v: Any, tau: Any, t: float = 0.0, *, out: Any = None
    ) -> tuple[Any, Any]:
        """The acceleration that efforts on the coordinates cause.

        Parameters
        ----------
        q, v
            As in `inverse_dynamics`.
        tau : (N, nv) or (nv,) array_like
            Efforts on the coordinates, N m or N; ``U @ mech.B.T`` for motors.
        t, out
            As in `inverse_dynamics`; `out` is (N, nv).

        Returns
        -------
        a : (N, nv) array
            rad/s^2 or m/s^2: `out`, or a new array.
        status : (N,) array of bytes

        Raises
        ------
        InputError
            As `inverse_dynamics`.
        """
        a, status = self._answers("forward_dynamics", (q, v, tau), t, out)
        return a, status

    def torque(
        self, q: Any, v: Any, *reference: Any, t: float = 0.0, out: Any = None
    ) -> tuple[Any, Any]:
        """The motor efforts of the controller, for one tick.

        Parameters
        ----------
        q, v
            As in `inverse_dynamics`.
        reference
            Of a `ComputedTorque`: `q_ref`, `v_ref` and `a_ref`, each (N, nu) or (nu,). Of a law of
            tasks: a value, or a tuple (value, rate, acceleration), each (N, rows) or (rows,).
            The value of a pose is a `pin.SE3` for all, or a list of N; or numbers for each robot:
            its position, and if the task has angular axes the whole position (3) and the rotation
            (9), row by row.
        t, out
            As in `inverse_dynamics`; t may also follow the reference.

        Returns
        -------
        u : (N, nu) array
            N m or N: `out`, or a new array.
        status : (N,) array of bytes

        Raises
        ------
        InputError
            As `inverse_dynamics`; for a reference of another form.
        """
        _, law = self._law("torque")
        tasks = isinstance(self._subject, TaskSubject)
        count = 1 if tasks else 3
        if len(reference) not in (count, count + 1):
            form = "value or (value, rate, acceleration)" if tasks else "q_ref, v_ref, a_ref"
            raise InputError(
                f"the reference of torque is {form}, and t may follow; got {len(reference)} values"
            )
        given = self._numbers_of(reference[0], law) if tasks else reference[:3]
        time = reference[count] if len(reference) > count else t
        u, status = self._answers("torque", (q, v, *given), time, out)
        return u, status

    def terms(self, q: Any, v: Any, t: float = 0.0) -> tuple[CompiledTerms, Any]:
        """Error, rate, Jacobian and drift of all rows, M, h and F.

        Parameters
        ----------
        q, v, t
            As in `inverse_dynamics`.

        Returns
        -------
        terms : CompiledTerms
            As of `Compiled.terms`, with an axis of robots in front.
        status : (N,) array of bytes

        Raises
        ------
        InputError
            As `inverse_dynamics`.
        """
        *found, status = self._answers("terms", (q, v), t)
        return CompiledTerms(*found), status

    def inverse_dynamics_derivatives(
        self, q: Any, v: Any, target: Any, t: float = 0.0
    ) -> tuple[Any, Any, Any, Any]:
        """Derivatives of u by a step in q, by v and by the target.

        Parameters
        ----------
        q, v, target, t
            As in `inverse_dynamics`.

        Returns
        -------
        u_q, u_v, u_target : (N, nu, nv), (N, nu, nv), (N, nu, nu) arrays
            As of `Compiled.inverse_dynamics_derivatives`.
        status : (N,) array of bytes

        Raises
        ------
        InputError
            As `inverse_dynamics`.
        """
        by_q, by_v, by_target, status = self._answers(
            "inverse_dynamics_derivatives", (q, v, target), t
        )
        return by_q, by_v, by_target, status

    def forward_dynamics_derivatives(
        self, q: Any, v: Any, tau: Any, t: float = 0.0
    ) -> tuple[Any, Any, Any, Any]:
        """Derivatives of a by a step in q, by v and by tau.

        Parameters
        ----------
        q, v, tau, t
            As in `forward_dynamics`.

        Returns
        -------
        a_q, a_v, a_tau : (N, nv, nv) arrays
            As of `Compiled.forward_dynamics_derivatives`.
        status : (N,) array of bytes

        Raises
        ------
        InputError
            As `inverse_dynamics`.
        """
        by_q, by_v, by_tau, status = self._answers("forward_dynamics_derivatives", (q, v, tau), t)
        return by_q, by_v, by_tau, status

    def state(
        self, q_measured: Any, v_measured: Any = None, start: Any = None
    ) -> tuple[Any, Any, Any]:
        """The closed states from the measured joints, each on the branch of its start.

        No history is kept between calls: in a loop the last q is the next start.

        Parameters
        ----------
        q_measured : (N, m) or (m,) array_like
            Readings, as of `ClosedStateEstimator.state`: rad or m.
        v_measured : (N, m) or (m,) array_like, optional
            Their rates, rad/s or m/s; default: at rest.
        start : (N, nq) or (nq,) array_like, optional
            Closed configurations; default: the one assembled from the mechanism's reference.

        Returns
        -------
        q, v : (N, nq) and (N, nv) arrays
        status : (N,) array of bytes

        Raises
        ------
        InputError
            As `inverse_dynamics`.
        """
        _, law = self._law("state")
        rates = np.zeros(dict(law.inputs)["v_measured"]) if v_measured is None else v_measured
        given = q_measured, rates, self._start if start is None else start
        q, v, status = self._answers("state", given, 0.0)
        return q, v, status

    def kinematics(self, q: Any) -> tuple[Any, Any, Any, Any]:
        """Placements and Jacobians of the `frames`, in the axes of the world.

        They are those of the tree at q, whether its loops are closed or not. ``R[i, f] @ x + p[i,
        f]`` is the point x of frame f of robot i, and ``J @ v`` its velocity: ``(J @ V[:, None, :,
        None])[..., 0]`` of all frames for rows V.

        Parameters
        ----------
        q : (N, nq) or (nq,) array_like

        Returns
        -------
        p : (N, F, 3) array
            Origins, m; F frames, in the order of `frames`.
        R : (N, F, 3, 3) array
            The axes of the frames, as columns.
        J : (N, F, 6, nv) array
            Velocity of the origin (m/s), above the angular velocity (rad/s), by v.
        status : (N,) array of bytes

        Raises
        ------
        InputError
            As `inverse_dynamics`.

        Examples
        --------
        >>> import holoctl as hc
        >>> mech = hc.load(hc.robot_file("five_bar"))
        >>> many = hc.compile(mech, ["kinematics"], frames=["tip_right"], device="cpu")
        >>> p, R, J, status = many.kinematics([hc.assemble(mech)[0]] * 3)
        >>> p.shape, R.shape, J.shape, status.tolist()
        ((3, 1, 3), (3, 1, 3, 3), (3, 1, 6, 4), [0, 0, 0])
        """
        p, R, J, status = self._answers("kinematics", (q,), 0.0)
        return p, R, J, status

    def describe(self, status: Any) -> str:
        """What a status says, in words: how many robots have which code, with the first of each.

        Parameters
        ----------
        status : (N,) array of bytes
            As a function returned it.

        Returns
        -------
        str

        Raises
        ------
        InputError
            For what is no array of codes.
        """
        if _plain(status):
            return described(numbers("status", status))
        return described(self._device.numpy(self._device.array("status", status, np.uint8)))

    # ------------------------------------------------------------------------------ internals

    def _law(self, name: str) -> tuple[Module, Law]:
        if name not in self._laws:
            raise not_compiled(name, f"hc.compile(..., [{name!r}, ...], device={self.device!r})")
        return self._laws[name]

    def _numbers_of(self, reference: Any, law: Law) -> Sequence[Any]:
        """Value, rate and acceleration of the reference of a task, as numbers."""
        task, sizes = self.controller._own.law.tasks[0], dict(law.inputs)  # type: ignore[union-attr]
        full = reference if type(reference) is tuple else (reference, None, None)
        if len(full) != 3:
            raise InputError(
                f"a reference is a value, or (value, rate, acceleration); got {len(full)} values"
            )
        value, *rates = full
        if isinstance(value, pin.SE3):
            value = reference_value(task, task.wanted(value))
        elif isinstance(value, list) and value and isinstance(value[0], pin.SE3):
            value = np.array([reference_value(task, task.wanted(x)) for x in value])
        return value, *(np.zeros(sizes["rate"]) if x is None else x for x in rates)

    @quiet
    def _answers(
        self, name: str, inputs: Sequence[Any], t: Any, out: Any = None
    ) -> tuple[Any, ...]:
        """The results and the status; `out` is the place of the first."""
        module, law = self._law(name)
        device, time = self._device, instant(t)
        given = [
            self._array(label, x, size) for x, (label, size) in zip(inputs, law.inputs, strict=True)
        ]
        many = {label: x.shape[0] for x, (label, _) in zip(given, law.inputs, strict=True)
                if len(x.shape) == 2}  # fmt: skip
        if len(set(many.values())) > 1:
            got = joined([f"{n} of {label}" for label, n in many.items()])
            raise InputError(f"inputs must have as many rows, or no axis of robots; got {got}")
        N = next(iter(many.values()), 1)
        status = device.empty((N,), np.uint8)
        shapes = _matrices(law, self.mech, len(self.frames))
        found = [device.empty((N, *shapes.get(x, (n,)))) for x, n in results_of(law)]
        if out is not None:
            _check_place(out, found[0])
            if type(out) is type(found[0]) and not _read_again(out, given):
                found[0] = out
        if N:
            module.run(kernel_name(law), N, *map(_along, given), time, *found, status)
        if out is not None and found[0] is not out:
            out[...] = device.numpy(found[0])
            found[0] = out
        if not any(map(on_gpu, inputs)):
            found = [x if x is out else device.numpy(x) for x in found]
            status = device.numpy(status)
        return *found, status

    def _array(self, name: str, value: Any, size: int) -> Any:
        """An input as an array of the device, of shape (N, size) or (size,)."""
        x = self._device.array(name, numbers(name, value) if _plain(value) else value)
        if len(x.shape) not in (1, 2) or x.shape[-1] != size:
            raise InputError(f"{name} must have shape (N, {size}) or ({size},); got {x.shape}")
        return x


def _along(x: Any) -> tuple[Any, tuple[str, ...]]:
    """An input with its axes."""
    return x, ("robot", "entry")[-len(x.shape) :]


def _plain(x: Any) -> bool:
    """Whether it is NumPy's, or a list of numbers: not an array of another library."""
    return isinstance(x, np.ndarray) or not hasattr(x, "__dlpack__")


def _check_place(out: Any, found: Any) -> None:
    """Raise `InputError` for a place that cannot take the result."""
    good = (
        type(out) in (np.ndarray, type(found)) and out.dtype == np.float64
        and tuple(out.shape) == tuple(found.shape)
    )  # fmt: skip
    if not good or (type(out) is np.ndarray and not out.flags.writeable):
        raise InputError(
            f"out must be a writable array of float64 of shape {tuple(found.shape)}, of NumPy "
            "or as this device returns it"
        )


def _read_again(out: Any, given: Sequence[Any]) -> bool:
    """Whether a place must not be written to before all inputs are read."""
    return type(out) is np.ndarray and (
        not out.flags.aligned or any(np.may_share_memory(out, x) for x in given)
    )


def _matrices(law: Law, mech: Mechanism, frames: int) -> dict[str, tuple[int, ...]]:
    """The outputs that are matrices, or one for each frame, and their shapes."""
    if law.name == "terms":
        return {"G": (mech.row_scale.size, mech.nv), "M": (mech.nv, mech.nv)}
    if law.name == "kinematics":
        return {"p": (frames, 3), "R": (frames, 3, 3), "J": (frames, 6, mech.nv)}
    if law.name.endswith("_derivatives"):
        rows = mech.nu if law.name.startswith("inverse") else mech.nv
        return {label: (rows, n // max(rows, 1)) for label, n in law.outputs[:-1]}
    return {}


def _rows(law: Law, mech: Mechanism, frames: int) -> dict[str, int]:
    """The outputs that are matrices, and how many rows a robot has of them."""
    return {x: math.prod(n[:-1]) for x, n in _matrices(law, mech, frames).items()}


def _with_forces(law: Law, mech: Mechanism) -> Law:
    """The law of the terms of a mechanism without forces, with F, which is zero."""
    return replace(law, outputs=(*law.outputs[:-1], ("F", mech.nv), law.outputs[-1]))


def check_device(device: Any, workers: Any, options: Mapping[str, bool]) -> None:
    """Raise `InputError` for an unknown device, and for options that it does not have.

    Parameters
    ----------
    device : str
    workers : int or None
    options : mapping of str to bool
        Name of an option to whether it was left out.
    """
    one_of("device", device, DEVICES)
    given = [name for name, absent in options.items() if not absent]
    if given:
        raise InputError(
            f"{joined(given)}: of one state in a call; leave it out with device={device!r} "
            "(hc.Rollouts has payloads for each robot)"
        )
    if workers is not None and device != "cpu":
        raise InputError(f"workers is the number of threads of 'cpu'; {device!r} has none")


@quiet
def batch_functions(
    subject: Subject | TaskSubject, functions: tuple[str, ...], measured: tuple[str, ...] | None,
    device: str, workers: int | None, frames: tuple[str, ...] = (),
) -> BatchFunctions:  # fmt: skip
    """Build the requested functions, now or when a pickle is read.

    Raises
    ------
    InputError
        For a controller with integral action, or whose torque has no expression; for the closed
        state with constraints that depend on time; for unknown frames, and without "kinematics".
    """
    mech, controller = subject.mech, subject.controller
    _check_memory(controller, functions)
    places = frames_for(mech, functions, frames, "compile")
    E = symbolic(mech, subject.partition)
    if isinstance(subject, TaskSubject):
        own = subject.own.estimator
        sources = [task_source_and_law(subject)]
    else:
        own = None if controller is None else subject.controller.estimator  # type: ignore[union-attr]
        subject = replace(subject, partition=E.partition)
        sources = law_sources(E, subject, functions)
    if "torque" in functions and "torque" not in [law.name for _, law in sources]:
        raise InputError(
            f"{mech.name}: motors without a position of their own have no torque in a batch; "
            "hc.compile(controller) computes it in Python"
        )
    start = None
    if "state" in functions:
        start, found = _state(E, measured, own)
        sources.append(found)
    if places:
        function = kinematics_function(E, places, batch=True)
        sources.append((batched_source([function]), law_of(function)))
    kind = device_named(device, workers)
    free = [law.name == "terms" and not mech.forces for _, law in sources]
    sources = [(c, _with_forces(law, mech) if x else law)
               for x, (c, law) in zip(free, sources, strict=True)]  # fmt: skip
    programs = [
        batch_program(c, law, _rows(law, mech, len(frames)), ("F",) * x, law.name == "state")
        for x, (c, law) in zip(free, sources, strict=True)
    ]
    with ThreadPoolExecutor() as pool:  # the compiler runs for several at once
        modules = list(pool.map(kind.build, programs))
    laws = {law.name: (x, law) for x, (_, law) in zip(modules, sources, strict=True)}
    return BatchFunctions(
        mech, E.partition, controller, functions, device, workers, measured, frames, subject, kind,
        laws, start,
    )  # fmt: skip


def _check_memory(controller: Any, functions: tuple[str, ...]) -> None:
    if isinstance(controller, ComputedTorque) and controller.ki.any() and "torque" in functions:
        raise InputError(
            f"{controller.mech.name}: the integral action ki remembers from tick to tick, which a "
            "batch does not; add it to a_ref, or take hc.compile(controller) and a loop for each "
            "robot"
        )


def _state(
    E: Expressions, measured: tuple[str, ...] | None, own: Any
) -> tuple[Vector, tuple[str, Law]]:
    """Where the closed state starts, and the C function that finds it."""
    estimator = estimator_with(E.mech, E.partition, measured, own)
    law = closed_state(E, sensing_of(estimator))
    if law.timed:
        raise InputError(
            f"{E.mech.name}: constraints depend on time, and a batch does not remember when its "
            "start was closed; hc.compile without a device, and a loop for each robot, does"
        )
    return estimator.q, state_source(E, law)
