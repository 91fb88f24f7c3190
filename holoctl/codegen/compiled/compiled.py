"""`Compiled`: functions of raw arrays in machine code; Python computes what the guard refuses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from holoctl.base.checks import (
    Array,
    Vector,
    as_given,
    finite,
    flag,
    instant,
    quiet,
    stored,
    vector,
)
from holoctl.base.errors import SingularityError
from holoctl.codegen.compiled.batch import BatchInputs, answers, certified
from holoctl.codegen.compiled.certificates import forward_certificate, inverse_certificate
from holoctl.codegen.compiled.estimator import CompiledEstimator, Estimators, not_compiled
from holoctl.codegen.compiled.extension_source import Law
from holoctl.codegen.compiled.fallback_counter import Fallbacks
from holoctl.codegen.compiled.functions import certified_code, machine_code
from holoctl.codegen.compiled.loop_functions import (
    estimated,
    integrating,
    loop_functions,
    of_states,
    repartitioned,
)
from holoctl.codegen.compiled.present_load import (
    PresentLoad,
    carrying,
    expressions_of,
    loaded,
    other_controller,
)
from holoctl.codegen.law_options import Subject
from holoctl.codegen.laws.border_expressions import estimator_with
from holoctl.control.computed_torque import ComputedTorque, check_memory
from holoctl.control.loop import (
    LoopFunctions,
    loop_of_thread,
    new_loop,
    reset,
    track,
    track_from_motors,
)
from holoctl.control.loop_memory import Memory
from holoctl.dynamics.batch_certificate import BatchCertificate
from holoctl.dynamics.certificate import Certificate
from holoctl.dynamics.tick.prepared_forward import PreparedForwardDynamics
from holoctl.dynamics.tick.prepared_inverse import PreparedInverseDynamics
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.rows.evaluate import may_depend_on_time
from holoctl.rows.state_limits import StateLimits
from holoctl.rows.terms import terms

__all__ = ["Compiled", "CompiledTerms", "from_subject"]


class CompiledTerms(NamedTuple):
    """All rows and the terms of the equation of motion at one state; see `Terms`."""

    error: Vector
    rate: Vector
    jacobian: Array
    drift: Vector
    M: Array
    h: Vector
    F: Vector


@dataclass(frozen=True, eq=False, repr=False)
class Compiled:
    """The result of `compile`: functions of raw arrays, in machine code.

    Arrays of the right shape, float64 and contiguous, are passed to C directly; other arguments
    that the Python functions accept are converted first, which takes longer. Where the guard does
    not pass (near singular states, beyond the limits of closure or velocity error, orientation
    closures near half a turn, quaternions that are not normalised, numbers that are not finite) the
    Python path computes the result, or raises its error; `fallbacks` counts these calls, and the
    first one is logged as a warning.

    With ``payload=`` or ``gravity=`` of `compile`, `loaded` returns the same law with others.

    It may be shared between threads, copied and pickled; a pickle is built again, or loaded from
    the cache. The methods of functions that were not compiled raise an `InputError`.

    Attributes
    ----------
    mech : Mechanism
        With the load, if there is one; so is that of the controller.
    partition : Partition
    controller : ComputedTorque or None
    functions : tuple of str
        The compiled functions.
    weights : (nu,) array or None
    inconsistent : str
    limits : StateLimits
        Both of the next limits.
    closure_limit, velocity_limit : float or None
        As in `PreparedInverseDynamics`.
    flags : tuple of str
    measured : tuple of str or None
        The measured joints of `state` and `torque_from_motors`; None for those of the controller's
        `estimator`, or the motors.
    machine : str
        ``"c"``, or ``"vm"`` for CasADi's virtual machine.

    See Also
    --------
    compile : returns it.
    results.Loop : a loop with its own memory.
    linearize : takes compiled derivatives.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> fast = hc.compile(mech, ["forward_dynamics"], machine="vm")
    >>> q, v = hc.assemble(mech)
    >>> fast.forward_dynamics(q, v, np.zeros(4)).round(1)[[0, 2]].tolist()
    [31.1, -31.1]
    """

    mech: Mechanism
    partition: Partition
    controller: ComputedTorque | None
    functions: tuple[str, ...]
    weights: Vector | None
    inconsistent: str
    limits: StateLimits
    flags: tuple[str, ...]
    measured: tuple[str, ...] | None
    machine: str
    _laws: dict[str, tuple[Any, Law]] = field(repr=False)
    _load: PresentLoad | None = field(default=None, repr=False)
    _empty: Compiled | None = field(default=None, repr=False)
    _inverse: PreparedInverseDynamics | None = field(init=False, repr=False)
    _forward: PreparedForwardDynamics = field(init=False, repr=False)
    _fallbacks: Fallbacks = field(init=False, repr=False)
    _lock: threading.Lock = field(init=False, repr=False)
    _estimators: Estimators = field(init=False, repr=False)
    _certified: dict[str, tuple[Any, Law]] = field(init=False, repr=False)
    _local: threading.local = field(init=False, repr=False)
    _tick: Callable[..., Vector] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("_inverse", None)
        if "inverse_dynamics" in self.functions:
            options = self.partition, self.weights, self.inconsistent
            limits = self.limits.closure, self.limits.velocity, self.limits.margin
            put("_inverse", PreparedInverseDynamics(self.mech, *options, *limits))
        put("_forward", PreparedForwardDynamics(self.mech, self.partition))
        if self._empty is None:
            put("_fallbacks", Fallbacks(self.mech.name))
            numbers = 0 if self._load is None else self._load.numbers(self.mech).size
            own = self.mech, self._estimator, self.flags, self.machine, self._fallbacks.note
            put("_estimators", Estimators(*own, numbers))
        else:  # the geometry is the same
            put("_fallbacks", self._empty._fallbacks)
            put("_estimators", self._empty._estimators)
        put("_lock", threading.Lock())
        put("_certified", {})
        put("_local", threading.local())
        # C functions replace the methods of the same name, and call them if needed
        names = {
            "inverse_dynamics": ("inverse_dynamics", self._inverse_in_python),
            "forward_dynamics": ("forward_dynamics", self._forward_in_python),
            "torque": ("_torque", self._torque_in_python),
        }
        for name, (usual, otherwise) in names.items():
            if name in self._laws:
                module, _ = self._laws[name]
                found = module.bind(getattr(type(self), usual).__get__(self), otherwise)
                put(name if name == usual else "_tick", found)
        if "torque" not in self._laws:
            put("_tick", self._torque)
        elif self.controller is not None and not self.controller.ki.any():
            put("torque", self._tick)

    def __repr__(self) -> str:
        return f"<Compiled {self.mech.name!r}: {', '.join(self.functions)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        given = self.functions, self.flags, self.measured, self.machine, self._load
        return from_subject, ((self._empty or self)._subject(), *given)

    def __deepcopy__(self, memo: dict[int, Any]) -> Compiled:
        return self  # immutable except for the counter of fallbacks

    @property
    def closure_limit(self) -> float | None:
        """The largest scaled closure error of a state for a torque; None for no limit."""
        return self.limits.closure

    @property
    def velocity_limit(self) -> float | None:
        """The largest velocity error of a state for a torque, relative to the speed, or None."""
        return self.limits.velocity

    @property
    def fallbacks(self) -> int:
        """The number of calls that the Python path computed because the guard did not pass."""
        return self._fallbacks.count

    # ------------------------------------------------------------------------- the functions

    def inverse_dynamics(
        self, q: Any, v: Any, target: Any, t: float = 0.0, *, out: Vector | None = None
    ) -> Vector:
        """The motor efforts that cause the accelerations `target` of the motors.

        Parameters
        ----------
        q : (nq,) array_like
        v : (nv,) array_like
        target : (nu,) array_like
            ``B' a``, rad/s^2 or m/s^2.
        t : float, optional
            Time, s, for constraints that depend on it.
        out : (nu,) array, optional
            Array for the result; unchanged if an error is raised.

        Returns
        -------
        u : (nu,) array
            N m or N: `out`, or a new array.

        Raises
        ------
        InputError, SingularityError, InconsistentError
            As `PreparedInverseDynamics.torque`.
        """
        found = self._answer("inverse_dynamics", (q, v, target), t)
        if found is None:
            return self._inverse_in_python(q, v, target, t, out=out)
        return found if out is None else stored("out", out, found)

    def forward_dynamics(
        self, q: Any, v: Any, tau: Any, t: float = 0.0, *, out: Vector | None = None
    ) -> Vector:
        """The acceleration that efforts on the coordinates cause.

        Parameters
        ----------
        q : (nq,) array_like
        v : (nv,) array_like
        tau : (nv,) array_like
            Efforts on the coordinates, N m or N; ``mech.B @ u`` for motors.
        t : float, optional
            Time, s.
        out : (nv,) array, optional
            Array for the result.

        Returns
        -------
        a : (nv,) array
            rad/s^2 or m/s^2: `out`, or a new array.

        Raises
        ------
        InputError, SingularityError
            As `PreparedForwardDynamics.acceleration`.
        """
        found = self._answer("forward_dynamics", (q, v, tau), t)
        if found is None:
            return self._forward_in_python(q, v, tau, t, out=out)
        return found if out is None else stored("out", out, found)

    def torque(
        self,
        q: Any,
        v: Any,
        q_ref: Any,
        v_ref: Any,
        a_ref: Any,
        t: float = 0.0,
        *,
        out: Vector | None = None,
    ) -> Vector:
        """The motor efforts of the controller, for one tick.

        For a whole configuration as `q_ref`, and for motors without a position of their own, the
        controller in Python computes the torque.

        Parameters
        ----------
        q, v, q_ref, v_ref, a_ref, t, out
            As in `ComputedTorque.torque`.

        Returns
        -------
        u : (nu,) array
            N m or N: `out`, or a new array.

        Raises
        ------
        InputError, SingularityError, InconsistentError
            As `ComputedTorque.torque`.
        """
        check_memory(self._law_of_torque().ki)
        return self._torque(q, v, q_ref, v_ref, a_ref, t, out=out)

    def _torque(
        self, q: Any, v: Any, q_ref: Any, v_ref: Any, a_ref: Any, t: float = 0.0, *,
        out: Vector | None = None,
    ) -> Vector:  # fmt: skip
        """`torque` without the integral."""
        controller = self._law_of_torque()
        if "torque" not in self._laws or np.shape(q_ref) != (self.mech.nu,):
            return controller._at_state(None, q, v, q_ref, v_ref, a_ref, t, out=out)
        found = self._answer("torque", (q, v, q_ref, v_ref, a_ref), t)
        if found is None:
            return self._torque_in_python(q, v, q_ref, v_ref, a_ref, t, out=out)
        return found if out is None else stored("out", out, found)

    def terms(self, q: Any, v: Any, t: float = 0.0) -> CompiledTerms:
        """Error, rate, Jacobian and drift of all rows, M, h and F.

        Parameters
        ----------
        q : (nq,) array_like
        v : (nv,) array_like
        t : float, optional
            Time, s.

        Returns
        -------
        CompiledTerms
            A named tuple of arrays: error, rate, jacobian, drift, M, h, F; F is that of the
            mechanism's forces.

        Raises
        ------
        InputError
            As the function `terms`.
        """
        found = self._raw("terms", (q, v), t)
        if found is None:
            self._fell_back("terms")
            T = terms(self.mech, q, v, t=t)
            return CompiledTerms(T.error, T.rate, T.jacobian, T.drift, T.M, T.h, T.F)
        m, n = self.mech.row_scale.size, self.mech.nv
        error, rate, G, drift, M, h, *forces = found
        F = forces[0] if forces else np.zeros(n)
        return CompiledTerms(error, rate, G.reshape(m, n), drift, M.reshape(n, n), h, F)

    def inverse_dynamics_derivatives(
        self, q: Any, v: Any, target: Any, t: float = 0.0
    ) -> tuple[Array, Array, Array]:
        """Derivatives of u by a step in q, by v and by the target.

        Parameters
        ----------
        q, v, target, t
            As in `inverse_dynamics`.

        Returns
        -------
        u_q, u_v, u_target : (nu, nv), (nu, nv), (nu, nu) arrays
            A step in q is in the tangent space, as `pin.integrate` takes it; also away from the
            manifold, with steps that violate the closures.

        Raises
        ------
        InputError
            For wrong shapes, or numbers that are not finite.
        SingularityError
            If the guard does not pass: no derivative is given there.
        """
        return self._derivatives("inverse_dynamics_derivatives", (q, v, target), t, self.mech.nu)

    def forward_dynamics_derivatives(
        self, q: Any, v: Any, tau: Any, t: float = 0.0
    ) -> tuple[Array, Array, Array]:
        """Derivatives of a by a step in q, by v and by tau.

        Parameters
        ----------
        q, v, tau, t
            As in `forward_dynamics`.

        Returns
        -------
        a_q, a_v, a_tau : (nv, nv) arrays

        Raises
        ------
        InputError, SingularityError
            As `inverse_dynamics_derivatives`.
        """
        return self._derivatives("forward_dynamics_derivatives", (q, v, tau), t, self.mech.nv)

    def certificate(self, q: Any, v: Any, target: Any, t: float = 0.0) -> Certificate:
        """The certificate of the efforts that `inverse_dynamics` returns at a state.

        Measured in Python: the acceleration is that of the general path, the efforts are compiled.

        Parameters
        ----------
        q, v, target, t
            As in `inverse_dynamics`.

        Returns
        -------
        Certificate

        Raises
        ------
        InputError, SingularityError, InconsistentError, NotActuatedError
            As the function `inverse_dynamics`.
        """
        return self._inverse_certificate(
            q, v, target, t, lambda: self.inverse_dynamics(q, v, target, t)
        )

    def state(
        self,
        q_measured: Any,
        v_measured: Any = None,
        t: float = 0.0,
        *,
        out: tuple[Vector, Vector] | None = None,
    ) -> tuple[Vector, Vector]:
        """The closed state from the measured joints, by the loop of this thread.

        Parameters
        ----------
        q_measured, v_measured, t, out
            As in `ClosedStateEstimator.state`.

        Returns
        -------
        q, v : (nq,) and (nv,) arrays

        Raises
        ------
        InputError, BranchError, AssemblyError, InconsistentError
            As there, and as `loop`.
        """
        more = {} if out is None else {"out": out}
        return loop_of_thread(self).state(q_measured, v_measured, t, **more)

    def torque_from_motors(
        self,
        q_motors: Any,
        v_motors: Any,
        q_ref: Any,
        v_ref: Any,
        a_ref: Any,
        t: float = 0.0,
        *,
        out: Vector | None = None,
    ) -> Vector:
        """The closed state from the measured joints, and the motor efforts there, by the loop of
        this thread.

        Parameters
        ----------
        q_motors, v_motors, q_ref, v_ref, a_ref, t, out
            As in `Loop.torque_from_motors`.

        Returns
        -------
        u : (nu,) array
            N m or N: `out`, or a new array.

        Raises
        ------
        InputError, SingularityError, InconsistentError, BranchError, AssemblyError
            As there, and as `loop`.
        """
        loop = loop_of_thread(self)
        return loop.torque_from_motors(q_motors, v_motors, q_ref, v_ref, a_ref, t, out=out)

    loop = new_loop
    track = track
    track_from_motors = track_from_motors
    reset = reset
    repartitioned = repartitioned
    loaded = loaded

    @overload
    def inverse_dynamics_batch(
        self, Q: Any, V: Any, T: Any, t: float = 0.0, *, certificate: Literal[False] = False,
        out: Array | None = None, workers: int | None = None, progress: bool = False,
    ) -> Array: ...  # fmt: skip

    @overload
    def inverse_dynamics_batch(
        self, Q: Any, V: Any, T: Any, t: float = 0.0, *, certificate: Literal[True],
        out: Array | None = None, workers: int | None = None, progress: bool = False,
    ) -> tuple[Array, BatchCertificate]: ...  # fmt: skip

    def inverse_dynamics_batch(
        self,
        Q: Any,
        V: Any,
        T: Any,
        t: float = 0.0,
        *,
        certificate: bool = False,
        out: Array | None = None,
        workers: int | None = None,
        progress: bool = False,
    ) -> Array | tuple[Array, BatchCertificate]:
        """`inverse_dynamics` at many states, on all cores.

        Parameters
        ----------
        Q : (N, nq) array_like
        V : (N, nv) array_like
        T : (N, nu) array_like
            Targets.
        t : float, optional
            Time, s, the same for all.
        certificate : bool, optional
            Also return the certificates of all states, measured in the same pass in machine code,
            which usually takes less than twice the time, with many redundant rows about three
            times. The first call compiles that function. Its guard includes the certificate, so
            that Python may compute more states; U is the same to rounding.
        out : (N, nu) array, optional
            Contiguous array for the result. Its content after an error is undefined.
        workers : int, optional
            The number of threads; default: one for each core. They do not hold the GIL.
        progress : bool, optional
            Show a progress bar (needs tqdm).

        Returns
        -------
        U : (N, nu) array
            N m or N: `out`, or a new array.
        certificates : BatchCertificate
            With ``certificate=True`` only: the constraint errors of each state, and the residuals
            of its U and motion in constraints and equation of motion, as `inverse_dynamics` of the
            library certifies them with this partition.

        Raises
        ------
        InputError, SingularityError, InconsistentError
            As `inverse_dynamics`; a note on the error states the index of the state. A state that
            is not certified is no error: see `BatchCertificate.raise_if_bad`.
        HoloctlError
            If the compiler fails.
        """
        given = BatchInputs(
            (Q, V, T), ("Q", "V", "T"), "inverse dynamics", t, out, workers, progress
        )
        way = self._inverse_in_python, self._inverse_certified_in_python
        return self._batch("inverse_dynamics", given, certificate, *way)

    @overload
    def forward_dynamics_batch(
        self, Q: Any, V: Any, TAU: Any, t: float = 0.0, *, certificate: Literal[False] = False,
        out: Array | None = None, workers: int | None = None, progress: bool = False,
    ) -> Array: ...  # fmt: skip

    @overload
    def forward_dynamics_batch(
        self, Q: Any, V: Any, TAU: Any, t: float = 0.0, *, certificate: Literal[True],
        out: Array | None = None, workers: int | None = None, progress: bool = False,
    ) -> tuple[Array, BatchCertificate]: ...  # fmt: skip

    def forward_dynamics_batch(
        self,
        Q: Any,
        V: Any,
        TAU: Any,
        t: float = 0.0,
        *,
        certificate: bool = False,
        out: Array | None = None,
        workers: int | None = None,
        progress: bool = False,
    ) -> Array | tuple[Array, BatchCertificate]:
        """`forward_dynamics` at many states, on all cores.

        Parameters
        ----------
        Q : (N, nq) array_like
        V : (N, nv) array_like
        TAU : (N, nv) array_like
            Efforts on the coordinates, N m or N; ``U @ mech.B.T`` for motors.
        t, certificate, out, workers, progress
            As in `inverse_dynamics_batch`; `out` is (N, nv).

        Returns
        -------
        A : (N, nv) array
            rad/s^2 or m/s^2: `out`, or a new array.
        certificates : BatchCertificate
            With ``certificate=True`` only.

        Raises
        ------
        InputError, SingularityError
            As `forward_dynamics`; a note on the error states the index of the state.
        HoloctlError
            If the compiler fails.
        """
        given = BatchInputs(
            (Q, V, TAU), ("Q", "V", "TAU"), "forward dynamics", t, out, workers, progress
        )
        way = self._forward_in_python, self._forward_certified_in_python
        return self._batch("forward_dynamics", given, certificate, *way)

    # ------------------------------------------------------------------------------ internals

    def _law_of_torque(self) -> ComputedTorque:
        """The controller whose torque was compiled."""
        if self.controller is None or "torque" not in self.functions:
            raise not_compiled("torque", "hc.compile(controller)")
        return self.controller

    def _loop_functions(self, memory: Memory | None = None) -> LoopFunctions:
        """The functions that loops and trackings need."""
        if self.controller is None or "torque" not in self.functions:
            return of_states(self._estimators)
        controller, tick = self.controller, self._tick
        python, integral = controller._loop_functions(memory), bool(controller.ki.any())
        if integral:
            tick = integrating(controller, python, tick)

        def at_once(found: CompiledEstimator) -> Callable[..., Vector]:
            usual = estimated(found, tick, 3)
            if integral or "torque" not in self._laws:
                return usual
            module, _ = self._laws["torque"]
            load = [] if self._load is None else [self._load.numbers(self.mech)]
            return found.with_torque(module.pointer(), usual, tick, self._torque_in_python, *load)

        silent = controller.limits is not None and not integral
        timed = may_depend_on_time(self.mech)
        return loop_functions(python, tick, self._estimators, silent, at_once, 3, timed)

    def _estimator(self) -> ClosedStateEstimator:
        """The estimator of the measured joints, with the rows of the partition."""
        given = None if self.controller is None else self.controller.estimator
        return estimator_with(self.mech, self.partition, self.measured, given)

    def _law(self, name: str) -> tuple[Any, Law]:
        if name not in self._laws:
            raise not_compiled(name, f"hc.compile(mech, [{name!r}, ...])")
        return self._laws[name]

    def _batch(
        self, name: str, given: BatchInputs, certificate: bool, in_python: Callable[..., Vector],
        certified_in_python: Callable[..., tuple[Vector, Certificate]],
    ) -> Array | tuple[Array, BatchCertificate]:  # fmt: skip
        module, law = self._law(name)
        if flag("certificate", certificate):
            module, law = self._certified_law(name)
            return certified(module, law, given, certified_in_python, self.partition.tolerance)
        (found,) = answers(module, law, given, lambda *state: (in_python(*state),))
        return found

    def _certified_law(self, name: str) -> tuple[Any, Law]:
        """Extension module and law of inverse or forward dynamics with certificates, made on first
        use."""
        with self._lock:
            if name not in self._certified:
                if self._empty is not None:
                    code = self._empty._certified_law(name)
                else:
                    subject = self._subject()
                    E = expressions_of(subject, self._load)
                    code = certified_code(E, subject, name, self.flags, self.machine)
                self._certified[name] = carrying(code, self._load, self.mech)
            return self._certified[name]

    def _carrying(self, load: PresentLoad) -> Compiled:
        """The same code with another load."""
        empty = self._empty or self
        mech = load.mechanism(empty.mech)
        laws = {name: carrying(code, load, mech) for name, code in self._laws.items()}
        return Compiled(
            mech, self.partition, other_controller(empty.controller, mech), self.functions,
            self.weights, self.inconsistent, self.limits, self.flags, self.measured, self.machine,
            laws, load, empty,
        )  # fmt: skip

    def _subject(self) -> Subject:
        return Subject(
            self.mech, self.controller, self.partition, self.weights, self.inconsistent, self.limits
        )

    def _raw(self, name: str, inputs: Sequence[Any], t: Any) -> list[Array] | None:
        """All outputs except the last, for inputs in any form; None if the guard is in doubt."""
        module, law = self._law(name)
        given = [
            np.require(as_given(label, x, size), requirements=["C", "A"])
            for x, (label, size) in zip(inputs, law.inputs, strict=True)
        ]
        results = [np.empty(size) for _, size in law.outputs]
        module.raw(*given, instant(t), *results)
        good = results[-1][0] < 1.0 and all(finite(x) for x in (*given, *results[:-1]))
        return results[:-1] if good else None

    def _answer(self, name: str, inputs: Sequence[Any], t: Any) -> Vector | None:
        found = self._raw(name, inputs, t)
        return None if found is None else found[0]

    def _derivatives(
        self, name: str, inputs: Sequence[Any], t: Any, rows: int
    ) -> tuple[Array, Array, Array]:
        found = self._raw(name, inputs, t)
        if found is None:
            for x, (label, size) in zip(inputs, self._laws[name][1].inputs, strict=True):
                vector(label, x, size)  # raises for what is not finite
            raise SingularityError(
                f"{self.mech.name}: the guard of the compiled function refuses this state: it is "
                "near a singular configuration, or q is not normalised; no derivative is computed "
                "there"
            )
        by_q, by_v, by_input = (part.reshape(rows, -1) for part in found)
        return by_q, by_v, by_input

    def _fell_back(self, name: str) -> None:
        self._fallbacks.note(name)

    def _inverse_in_python(
        self, q: Any, v: Any, target: Any, t: Any = 0.0, *, out: Vector | None = None
    ) -> Vector:
        self._fell_back("inverse_dynamics")
        if self._inverse is None:
            raise not_compiled("inverse_dynamics", "hc.compile(mech, ['inverse_dynamics'])")
        return self._inverse.torque(q, v, target, t, out=out)

    def _inverse_certificate(
        self, q: Any, v: Any, target: Any, t: Any, efforts: Callable[[], Vector]
    ) -> Certificate:
        options = self.mech, self.partition, self.weights, self.inconsistent
        return inverse_certificate(*options, (q, v, target, t), efforts)

    def _inverse_certified_in_python(
        self, q: Any, v: Any, target: Any, t: Any
    ) -> tuple[Vector, Certificate]:
        u = self._inverse_in_python(q, v, target, t)
        return u, self._inverse_certificate(q, v, target, t, lambda: u)

    def _forward_certified_in_python(
        self, q: Any, v: Any, tau: Any, t: Any
    ) -> tuple[Vector, Certificate]:
        a = self._forward_in_python(q, v, tau, t)
        return a, forward_certificate(self.mech, self.partition, (q, v, tau, t), a)

    def _forward_in_python(
        self, q: Any, v: Any, tau: Any, t: Any = 0.0, *, out: Vector | None = None
    ) -> Vector:
        self._fell_back("forward_dynamics")
        return self._forward.acceleration(q, v, tau, t, out=out)

    def _torque_in_python(
        self, q: Any, v: Any, q_ref: Any, v_ref: Any, a_ref: Any, t: Any = 0.0, *,
        out: Vector | None = None,
    ) -> Vector:  # fmt: skip
        self._fell_back("torque")
        if self.controller is None:
            raise not_compiled("torque", "hc.compile(controller)")
        return self.controller._at_state(None, q, v, q_ref, v_ref, a_ref, t, out=out)


@quiet
def from_subject(
    subject: Subject,
    functions: tuple[str, ...],
    flags: tuple[str, ...],
    measured: tuple[str, ...] | None,
    machine: str,
    load: PresentLoad | None = None,
) -> Compiled:
    """Build the requested functions, now or when a pickle is read."""
    E = expressions_of(subject, load)
    empty = None if load is None else load.empty(subject.mech)
    laws = {
        name: carrying(code, empty, subject.mech)
        for name, code in machine_code(E, subject, functions, flags, machine).items()
    }
    found = Compiled(
        subject.mech, E.partition, subject.controller, functions, subject.weights,
        subject.inconsistent, subject.limits, flags, measured, machine, laws, empty,
    )  # fmt: skip
    if "state" in functions:
        found._estimators.code()
    return found if load is None or load.same(empty) else found._carrying(load)
