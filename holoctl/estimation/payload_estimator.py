"""Mass and centre of mass of a payload, at every tick, from the motors of a closed chain.

The momentum observer finds the unknown efforts tau of a tick (estimation/momentum_observer.py). Of
a payload with mass m and first moment h = m c in the axes of its frame they are linear in both,

    tau = -Phi [m; h]      Phi = gamma_m' J_m' [A  U; 0  -skew(A)]      U = skew(alpha) + skew(w)^2

A is the acceleration of the frame less gravity, alpha and w its angular acceleration and rate, in
its axes; accelerations are ``J_m (v - v_before) / h`` and the mean bias. Rows are divided by the
noise of tau, R = L L', and then filtered alike, b = exp(-K h):

    x = b x_before + (1 - b) L^-1 [Phi  -tau]
    [Lambda  z] += Phi_f' [Phi_f  -tau_f]        Omega += Phi_f' Phi_f
    [m; h] = Lambda^-1 z                         covariance Lambda^-1 Omega Lambda^-1

with Lambda and z times f, Omega times f^2 before, f = exp(-h / forgetting_time).

Derivation: docs/derivations-identification.md, "Payload at every tick".
References: C. Atkeson, C. An, J. Hollerbach 1986, Estimation of inertial parameters of manipulator
loads and links; L. Ljung 1999, System Identification, chapter 11 (recursive least squares).
"""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np
import pinocchio as pin
from scipy.linalg import lapack
from scipy.special import chdtri

from holoctl.base.checks import (
    Array,
    Vector,
    finite,
    number,
    numbers,
    positive,
    quiet,
    read_only,
    vector,
    whole,
)
from holoctl.base.errors import InputError, SingularityError
from holoctl.base.tolerances import CLOSURE_LIMIT, VELOCITY_LIMIT
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator
from holoctl.estimation.momentum_observer import MomentumObserver
from holoctl.estimation.payload_law import (
    SURE_MASS,
    PayloadMotion,
    payload_columns,
    payload_motion,
    solved_payload,
    statistic,
)
from holoctl.estimation.reduced_dynamics import ReducedMotion
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.scales import sizes
from holoctl.projector.partition import Partition
from holoctl.tree.frames import Frame, FrameLike, resolve_frame

__all__ = ["PayloadEstimator"]


class PayloadEstimator:
    """Mass and centre of mass of a payload at a frame, from the motors, at every tick.

    Recursive least squares on the efforts that a `MomentumObserver` finds, in the same tick: no
    acceleration and no force sensor is needed. The mechanism is the robot without the payload. The
    inertia of the payload about the origin of the frame is neglected: put the frame near its centre
    of mass. All other unknown efforts, such as contacts and errors of the model, count as payload.

    What the motion does not determine is unknown, `nan` with the standard deviation `inf`: at rest
    the centre of mass along gravity, on a platform that does not turn the whole centre.

    `detected` tells a payload from noise by a chi-square test of all four parameters. Errors of the
    model are no noise; their payload is found by a run of the empty robot.

    Parameters
    ----------
    mech : Mechanism
        Without payload; such as ``fit.mechanism()``.
    frame : str or (str, pin.SE3)
        The frame that carries the payload.
    gain : float
        1/s, of the momentum observer, and of the filter of all rows.
    noise : float or (nu,) array_like
        Standard deviations of the efforts of the motors, N m or N, independent from tick to tick.
    rate_noise : float, optional
        Standard deviation of the rates of the independent coordinates, rad/s or m/s, independent
        from tick to tick. It must be above zero if some motion is not driven.
    forgetting_time : float or None, optional
        Time constant of exponential forgetting, s. None: nothing is forgotten.
    false_alarm : float, optional
        Probability that `detected` is true at a tick without payload, at most.
    every : int, optional
        The number of ticks of one row of the equations: fewer rows take less time, and are as good
        while ``every * dt`` is short beside ``1 / gain``.
    dt, partition, estimator, closure_limit, velocity_limit
        As `MomentumObserver`.

    Attributes
    ----------
    mech : Mechanism
    frame : str
    placed : Frame
        The same, with its placement.
    observer : MomentumObserver
        Its `efforts` are those of payload and surroundings together. Do not call its `update`.
    gain, rate_noise, forgetting_time, false_alarm, every
        As given.
    noise : (nu,) array
    threshold : float
        Of `statistic`.
    length : float
        The size of the mechanism, m: the unit of first moments over masses, to decide what is
        known.

    Raises
    ------
    InputError
        For an unknown frame, a frame of the world, noise that is not above zero, and as
        `MomentumObserver`.
    AssemblyError
        As `MomentumObserver`.

    See Also
    --------
    MomentumObserver : any unknown efforts, and the wrench of a contact.
    identify_load : with the inertia, from a recorded motion.
    compile : laws that take a payload at run time.
    export_c : the same in C.

    References
    ----------
    docs/derivations-identification.md, "Payload at every tick".

    Examples
    --------
    A robot that holds still with the efforts of a robot that carries 2 kg:

    >>> import holoctl as hc, numpy as np, pinocchio as pin
    >>> mech = hc.load(hc.robot_file("delta"))
    >>> q, v = hc.assemble(mech)
    >>> weight = {"platform": [0, 0, -19.62, 0, 0, 0]}
    >>> u = hc.inverse_dynamics(mech, q, v, [0, 0, 0], f_ext=weight).u
    >>> payload = hc.PayloadEstimator(mech, "platform", gain=50.0, noise=0.1)
    >>> for _ in range(500):
    ...     payload.update(q, v, u)
    >>> payload.detected, round(payload.mass, 3), payload.centre.tolist()
    (True, 2.0, [nan, nan, nan])
    """

    mech: Mechanism
    frame: str
    placed: Frame
    observer: MomentumObserver
    noise: Vector
    threshold: float
    _begin: tuple[ReducedMotion, PayloadMotion] | None
    _ticks: int
    _impulse: Vector
    _squares: float

    @quiet
    def __init__(
        self,
        mech: Mechanism,
        frame: FrameLike,
        gain: float,
        noise: Any,
        *,
        rate_noise: float = 0.0,
        forgetting_time: float | None = None,
        false_alarm: float = 1e-6,
        every: int = 5,
        dt: float = 1e-3,
        partition: Partition | None = None,
        estimator: ClosedStateEstimator | None = None,
        closure_limit: float | None = CLOSURE_LIMIT,
        velocity_limit: float | None = VELOCITY_LIMIT,
    ) -> None:
        self.observer = MomentumObserver(
            mech, positive("gain", gain, "1/s"), partition, dt, estimator=estimator,
            closure_limit=closure_limit, velocity_limit=velocity_limit,
        )  # fmt: skip
        at = resolve_frame(mech.model, frame, "PayloadEstimator")
        if at.joint == 0:
            raise InputError(f"the frame {at.name!r} is fixed to the world, which moves no payload")
        self.mech, self.frame, self.placed = mech, at.name, at
        self.gain, self.noise = float(gain), read_only(_noise(mech, noise))
        self.rate_noise = number("rate_noise", rate_noise, "rad/s or m/s")
        if self.rate_noise < 0.0:
            raise InputError(f"rate_noise must not be negative; got {rate_noise!r}")
        self._check_driven()
        self.forgetting_time = (
            None if forgetting_time is None else positive("forgetting_time", forgetting_time, "s")
        )
        self.false_alarm = number("false_alarm", false_alarm, "a probability")
        if not 0.0 < self.false_alarm < 1.0:
            raise InputError(f"false_alarm is between 0 and 1; got {false_alarm!r}")
        self.every = whole("every", every, 1)
        self.threshold = float(chdtri(4.0, self.false_alarm))
        self.length = sizes(mech.model, mech.reference, mech.bound)[0]
        self._unit = np.array([1.0, *[self.length] * 3])  # of the parameters: kg, kg m
        self._spread = mech.B * self.noise
        self._motion = payload_motion(mech.model, at)
        self.forget()

    def __repr__(self) -> str:
        mass, sigma = self.mass, self.standard_deviations[0]
        known = "mass unknown" if np.isnan(mass) else f"{mass:.4g} +- {sigma:.1g} kg"
        return (
            f"<PayloadEstimator of {self.mech.name} at {self.frame!r}: {known}, "
            f"{'detected' if self.detected else 'not detected'}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        raise InputError(
            "a PayloadEstimator remembers the motion of its mechanism, for one loop: it is neither "
            "copied nor pickled; hc.PayloadEstimator(mech, frame, gain, noise) makes another one"
        )

    # ------------------------------------------------------------------------------- in a loop

    @quiet
    def update(
        self,
        q: Any,
        v: Any,
        u: Any,
        t: float | None = None,
        *,
        dt: float | None = None,
        efforts: Any = None,
        f_ext: Any = None,
    ) -> None:
        """Take in the tick that ends now.

        All arguments and errors are those of `MomentumObserver.update`. After an error the
        estimate is unchanged, and the next call takes both ticks together.

        Parameters
        ----------
        q, v : (nq,) and (nv,) array_like
            State now.
        u : (nu,) array_like
            Measured efforts of the motors from the last call to this one, N m or N.
        t, dt, efforts, f_ext
            As `MomentumObserver.update`.

        Raises
        ------
        InputError, InconsistentError, SingularityError
            As `MomentumObserver.update`; `SingularityError` also where the motors do not act on
            some motion.
        """
        before = self.observer._last
        self.observer.update(q, v, u, t, dt=dt, efforts=efforts, f_ext=f_ext)
        self._observed(before)

    @quiet
    def update_from_motors(
        self,
        q_motors: Any,
        v_motors: Any,
        u: Any,
        t: float | None = None,
        *,
        dt: float | None = None,
        efforts: Any = None,
        f_ext: Any = None,
    ) -> None:
        """`update` from measurements of the motors, or of the joints that `estimator` measures.

        Parameters
        ----------
        q_motors, v_motors, u, t, dt, efforts, f_ext
            As `MomentumObserver.update_from_motors`.

        Raises
        ------
        InputError, InconsistentError, SingularityError, BranchError, AssemblyError
            As there.
        """
        before = self.observer._last
        self.observer.update_from_motors(
            q_motors, v_motors, u, t, dt=dt, efforts=efforts, f_ext=f_ext
        )
        self._observed(before)

    # --------------------------------------------------------------------------------- estimate

    @property
    def detected(self) -> bool:
        """Whether mass and first moment differ from zero by more than noise: `statistic` is above
        `threshold`. A negative `mass` then means that the model is too heavy."""
        return self.statistic > self.threshold

    @property
    def statistic(self) -> float:
        """``z' Omega^-1 z``: without payload at most chi-square distributed with 4 degrees."""
        return statistic(self._omega, self._information[:4, 4])

    @property
    def mass(self) -> float:
        """kg; nan if the motion does not determine it."""
        return float(self.parameters[0])

    @property
    def centre(self) -> Vector:
        """(3,): the centre of mass in the axes of the frame, m; nan for coordinates that the motion
        does not determine, and while the mass is not above three standard deviations."""
        x, (C, known) = self.parameters, self._solved()[1:]
        sure = known[0] and x[0] > SURE_MASS * C[0, 0] ** 0.5
        return x[1:] / x[0] if sure else np.full(3, np.nan)

    @property
    def standard_deviations(self) -> Vector:
        """(4,): of `mass`, kg, and the entries of `centre`, m; inf where they are unknown. Of the
        noise alone, and never less than it."""
        c, m, (C, known) = self.centre, self.mass, self._solved()[1:]
        found = np.full(4, np.inf)
        if known[0]:
            found[0] = C[0, 0] ** 0.5
        for i in np.flatnonzero(np.isfinite(c)):
            spread = C[i + 1, i + 1] - 2.0 * c[i] * C[0, i + 1] + c[i] ** 2 * C[0, 0]
            found[i + 1] = max(spread, 0.0) ** 0.5 / m
        return found

    @property
    def parameters(self) -> Vector:
        """(4,): mass, kg, and first moment in the axes of the frame, kg m; nan if unknown."""
        x, _, known = self._solved()
        return np.where(known, x, np.nan)

    @property
    def covariance(self) -> Array:
        """(4, 4): of `parameters`; inf on the diagonal, and nan beside it, where unknown."""
        _, C, known = self._solved()
        found = np.where(known & known[:, None], C, np.nan)
        found[~known, ~known] = np.inf
        return found

    # ---------------------------------------------------------------------------- outside a loop

    def forget(self) -> None:
        """Discard the estimate, but not the last tick: for a payload that was gripped or put
        down."""
        self._rows = np.zeros((self.observer.gain.size, 5))
        self._information, self._omega = np.zeros((5, 5)), np.zeros((4, 4))
        self._found: tuple[Vector, Array, Any] | None = None
        self._restart(None)

    @quiet
    def reset(self, q: Any, v: Any, t: float = 0.0) -> None:
        """Start at a state, without estimate; as `MomentumObserver.reset`.

        Parameters
        ----------
        q, v : (nq,) and (nv,) array_like
            Configuration; velocity, rad/s or m/s.
        t : float, optional
            Time, s.

        Raises
        ------
        InputError, InconsistentError, SingularityError, BranchError
            As there; the estimator is unchanged then.
        """
        self.observer.reset(q, v, t)
        self.forget()

    @quiet
    def repartitioned(self, q: Any, v: Any, t: float = 0.0) -> PayloadEstimator:
        """This estimator, or one with other coordinates of the motions, with the same estimate.

        Parameters
        ----------
        q, v, t
            As `MomentumObserver.repartitioned`, and for the same purpose.

        Returns
        -------
        PayloadEstimator

        Raises
        ------
        InputError, SingularityError
            As there.
        """
        observer = self.observer.repartitioned(q, v, t)
        if observer is self.observer:
            return self
        other = object.__new__(PayloadEstimator)
        other.__dict__.update(self.__dict__)
        other.observer, other._rows = observer, np.zeros((observer.gain.size, 5))
        other._restart(None)
        return other

    def fresh(self) -> PayloadEstimator:
        """Another one with the same options, without history: for another loop.

        Returns
        -------
        PayloadEstimator
        """
        observer, at = self.observer, self.placed
        joint = self.mech.model.names[at.joint]
        found = PayloadEstimator(
            self.mech, (joint, pin.SE3(at.placement)), self.gain, self.noise,
            rate_noise=self.rate_noise, forgetting_time=self.forgetting_time,
            false_alarm=self.false_alarm, every=self.every, dt=observer.dt,
            partition=observer.partition, estimator=observer._given_estimator,
            closure_limit=observer.limits.closure, velocity_limit=observer.limits.velocity,
        )  # fmt: skip
        found.frame = self.frame
        return found

    # -------------------------------------------------------------------------------- internals

    def _check_driven(self) -> None:
        part = self.observer.partition
        if self.rate_noise == 0.0 and part.actuation_rank < part.independent.size:
            raise InputError(
                f"{self.mech.name}: {part.independent.size - part.actuation_rank} of its "
                f"{part.independent.size} motions are not driven, so that noise of motors does not "
                "tell how accurate their equations are: give rate_noise (rad/s or m/s)"
            )

    def _observed(self, before: ReducedMotion | None) -> None:
        """One tick: a row of the law every `every` ticks; see the head of this module."""
        now = self.observer._last
        if now is None:
            return
        if before is None:
            self._restart((now, self._motion(now.q, now.v)))
            return
        if self._begin is None:  # after reset
            self._begin = before, self._motion(before.q, before.v)
        h = now.t - before.t
        self._impulse += h * self.observer._tau
        self._squares += h * h
        self._ticks += 1
        if self._ticks < self.every:
            return
        begin, impulse, squares = self._begin, self._impulse, self._squares
        end = now, self._motion(now.q, now.v)
        self._restart(end)
        self._row(begin, end, impulse, squares)

    def _restart(self, begin: tuple[ReducedMotion, PayloadMotion] | None) -> None:
        """The next row begins here."""
        self._begin, self._ticks, self._squares = begin, 0, 0.0
        self._impulse = np.zeros(self.observer.gain.size)

    def _row(
        self,
        begin: tuple[ReducedMotion, PayloadMotion],
        end: tuple[ReducedMotion, PayloadMotion],
        impulse: Vector,
        squares: float,
    ) -> None:
        """Take in the rows between two ticks; `squares` is the sum of the squares of their times,
        s^2."""
        (before, last), (now, here) = begin, end
        h = now.t - before.t
        twice = before.gamma + now.gamma
        J = last.J + here.J  # twice the mean, as all that follows
        a = J.dot((now.v - before.v) * (1.0 / h)) + (last.drift + here.drift)
        b = exp(-self.gain * h)
        L = self._spread_of(twice, now, squares / (h * h), (1.0 - b) / (1.0 + b) * 4.0 / h)
        rows = np.empty((twice.shape[1], 5), order="F")
        columns = payload_columns(a.tolist(), (last.w + here.w).tolist(), self.length)
        rows[:, :4] = J.dot(twice).T.dot(columns)
        rows[:, 4] = impulse * (-2.0 / h)
        rows = lapack.dtrtrs(L, rows, lower=1, overwrite_b=1)[0]
        rows -= self._rows
        rows *= 1.0 - b
        rows += self._rows
        square = rows.T.dot(rows)
        if self.forgetting_time is None:
            information = self._information + square
            omega = information[:4, :4]
        else:
            f = exp(-h / self.forgetting_time)
            information = f * self._information + square
            omega = f * f * self._omega + square[:4, :4]
        if not finite(information.reshape(-1)):
            raise InputError(f"{self.mech.name}: u or v is out of range for the payload")
        self._rows, self._information, self._omega, self._found = rows, information, omega, None

    def _spread_of(self, twice: Array, now: ReducedMotion, share: float, passed: float) -> Array:
        """L of the noise of twice tau."""
        root = (share**0.5 * twice).T.dot(self._spread)
        R = root.dot(root.T)
        if self.rate_noise > 0.0:
            W = (passed * self.rate_noise) * now.gamma.T.dot(now.M.dot(now.gamma))
            R += W.dot(W)
        L, info = lapack.dpotrf(R, lower=1)
        if info != 0:
            raise SingularityError(
                f"{self.mech.name}: the motors do not act on some motion here, so the noise of its "
                "equation is not known; give rate_noise",
                names=self.observer.coordinates,
            )
        return L  # type: ignore[no-any-return]

    def _solved(self) -> tuple[Vector, Array, Any]:
        """Parameters, their covariance, and which are known."""
        if self._found is None:
            x, C, known = solved_payload(self._information, self._omega)
            unit = self._unit
            self._found = x * unit, C * unit * unit[:, None], known
        return self._found


def _noise(mech: Mechanism, given: Any) -> Vector:
    x = numbers("noise", given, "N m or N")
    x = vector("noise", np.full(mech.nu, x) if x.ndim == 0 else x, mech.nu, "N m or N")
    if not (x > 0.0).all():
        raise InputError(
            f"noise must be above zero: standard deviations of the efforts; got {str(given)[:60]}"
        )
    return x
