"""A closed mechanism as the transmission between motors and serial joints.

    q_m = s(y)            J = dq_m / dy = B' gamma        Jdot yd = B' bias
    tau = J' u            tau + linkage = J' u            linkage = gamma' (M a + h - F)

y are the serial joints, such as pitch and roll of an ankle, and the independent coordinates of
gamma; q_m the motors. Derivation: docs/derivations-transmissions.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from holoctl.base.angles import wrapped
from holoctl.base.checks import (
    Array,
    Vector,
    counted,
    freeze,
    known_name,
    listing,
    name_list,
    numbers,
    positive,
    quiet,
    read_only,
    unpickled,
    vector,
)
from holoctl.base.errors import (
    BranchError,
    InputError,
    LimitError,
    NotActuatedError,
)
from holoctl.base.linalg import PivotedQR, largest, pivoted_qr
from holoctl.base.single_threaded_blas import one_thread
from holoctl.closing.assembly import assemble
from holoctl.control.effort_bounds import effort_bounds
from holoctl.dynamics.actuation import effort_scales
from holoctl.mechanism.bound_limits import BoundLimits, bound_limits
from holoctl.mechanism.checks import check_configuration, check_mechanism
from holoctl.mechanism.default_limits import requested_limits
from holoctl.mechanism.limited_coordinates import coordinates_at
from holoctl.mechanism.limits import MODEL, Limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.motors import position_reader
from holoctl.projector.partition import Partition
from holoctl.rows.evaluate import may_depend_on_time
from holoctl.transmission.block import block_of
from holoctl.transmission.branch import JointBranch, control_lost, named_positions
from holoctl.transmission.check import TransmissionCheck, checked_readings
from holoctl.transmission.linkage import BaseMotion, LinkageDynamics, linkage_of
from holoctl.transmission.polytope import Polytope, between, zonotope
from holoctl.transmission.report import TransmissionReport, transmission_report
from holoctl.transmission.table import TransmissionTable, chebyshev_table

__all__ = ["JointGains", "MotorEfforts", "Transmission"]

SAME_POSITION = 1e-9  # rad, m
"""Largest difference of motor positions that belong to the same posture."""

IDLE = 1e-6
"""Rate of a motor in an idle motion from which it is one of its motors."""

CONTROL_LOST = 1e3
"""Motors do not control the joints where the condition number of J (scaled) is larger."""


@dataclass(frozen=True, eq=False)
class MotorEfforts:
    """Motor efforts for given joint efforts: the result of `Transmission.motor_efforts`.

    Attributes
    ----------
    u : (nu,) array
        N m or N, in the order of the motors.
    residual : (p,) array
        Joint efforts that no motor efforts give, ``tau - J' u``; zero (to rounding) where the
        motors drive all joints.

    See Also
    --------
    Transmission : its ``motor_efforts`` returns it.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("ankle"))
    >>> ankle = hc.Transmission(mech, ["ankle_pitch", "ankle_roll"])
    >>> found = ankle.motor_efforts([10.0, 0.0], [-0.3, 0.1])
    >>> found.u.round(2).tolist(), float(abs(found.residual).max()) < 1e-12
    ([4.63, 4.43], True)
    """

    u: Vector
    residual: Vector

    def __post_init__(self) -> None:
        freeze(self)

    __setstate__ = unpickled

    def __repr__(self) -> str:
        return (
            f"<MotorEfforts: {counted(self.u.size, 'effort')} up to {largest(self.u):.3g} N m or "
            f"N, joint efforts missed by {largest(self.residual):.2g}>"
        )


@dataclass(frozen=True, eq=False)
class JointGains:
    """Stiffness and damping on the other side of a transmission, at one posture.

    Attributes
    ----------
    stiffness, damping : (n, n) arrays
        Of joints (n = p) or of motors (n = nu), N m/rad and N m s/rad, or N/m and N s/m.
    misfit : float
        For motors, the relative error (Frobenius norm) of the joint stiffness if drives can only
        take the diagonal of `stiffness`; 0 for joints.

    See Also
    --------
    Transmission : its ``joint_gains`` and ``motor_gains`` return it.
    ComputedTorque : a controller that needs no gains at the joints.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("ankle"))
    >>> ankle = hc.Transmission(mech, ["ankle_pitch", "ankle_roll"])
    >>> gains = ankle.motor_gains([-0.3, 0.1], stiffness=[80.0, 40.0], damping=2.0)
    >>> gains.stiffness.round(1).tolist(), round(gains.misfit, 2)
    ([[41.7, -7.9], [-7.9, 39.9]], 0.23)
    """

    stiffness: Array
    damping: Array
    misfit: float

    def __post_init__(self) -> None:
        freeze(self)

    __setstate__ = unpickled

    def __repr__(self) -> str:
        return (
            f"<JointGains: stiffness up to {largest(self.stiffness):.3g}, damping up to "
            f"{largest(self.damping):.3g}, misfit of the diagonal {self.misfit:.2g}>"
        )


class _AtJoints(NamedTuple):
    """State of the mechanism at joint positions y.

    Attributes
    ----------
    q : (nq,) array
    gamma : (nv, p) array
        Velocity by the rates of the joints, in their order.
    J : (nu, p) array
    factors : PivotedQR
        Of J scaled, or of its transpose if there are fewer motors than joints.
    """

    q: Vector
    gamma: Array
    J: Array
    factors: PivotedQR


class Transmission:
    """The motors of a closed mechanism, seen from serial joints, and the joints from the motors.

    For an ankle, knee or waist whose motors act through rods: a whole-body controller plans with
    the serial joints, and this value translates its positions, rates and efforts for the motors,
    and back. All results belong to the branch (assembly mode) of `start`: to the postures that the
    straight line from the start leads to, of joint positions or of motor positions, which is proved
    for each of them. They do not depend on earlier calls. It has workspaces: use one for each
    thread.

    Parameters
    ----------
    mech : Mechanism
        The closed mechanism, or a whole robot: then the loops that contain the joints are taken,
        by structure, and all other joints are locked at the reference of the robot. Contacts are
        left out.
    joints : iterable of str
        The serial joints, coordinates of the tree that determine the motors, in the order of y.
    start : (nq,) array_like, optional
        A closed configuration of `mech` on the wanted branch. Default: assembled from
        ``mech.reference``.

    Attributes
    ----------
    mech : Mechanism
        The closed mechanism alone.
    joints, motors : tuple of str
        The order of y (p,), and of q_m and u (nu,).
    base : str
        The joint of the robot that carries the mechanism; ``"universe"`` for the ground.
    y_start, motor_start : (p,) and (nu,) arrays
        Positions at the start, rad or m.

    Raises
    ------
    InputError
        For names that are no joints of one coordinate, for joints that do not determine all
        motions (the message names those that are missing), or belong to no loop or to several
        mechanisms; for constraints that depend on time, motors without positions, continuous motors
        of screws, and motors of idle motions, such as the spin of a rod, which no joints determine.
    NotActuatedError
        If the mechanism has no motors.
    InconsistentError
        For a start that is not closed.
    BranchError, SingularityError
        For a start at or near a singular configuration of the joints.
    AssemblyError
        If no start is given and the reference cannot be assembled.

    See Also
    --------
    transmissions : finds those of a whole robot.
    results.TransmissionReport : reach, singular curves and errors of approximations.
    ClosedStateEstimator : the state from encoders, tick by tick, with time and noise.

    Examples
    --------
    >>> import holoctl as hc
    >>> leg = hc.load(hc.robot_file("leg"))
    >>> knee = hc.Transmission(leg, ["knee"])
    >>> knee.motors
    ('knee_motor',)
    >>> knee.jacobian([-0.8]).round(3).tolist()
    [[1.237]]
    >>> knee.motor_efforts([20.0], [-0.8]).u.round(2).tolist()
    [16.16]
    """

    mech: Mechanism
    joints: tuple[str, ...]
    motors: tuple[str, ...]
    base: str
    y_start: Vector
    motor_start: Vector

    @quiet
    def __init__(self, mech: Mechanism, joints: Iterable[str], start: Any = None) -> None:
        check_mechanism(mech)
        names = tuple(name_list("joints", joints))
        owner = f"{mech.name}: transmission"
        if not names:
            raise InputError(f"{owner}: name one serial joint or more; got none")
        for name in names:
            known_name(name, mech.coordinate_names, "coordinate", owner)
        if len(set(names)) < len(names):
            raise InputError(f"{owner}: a joint is named twice: {listing(names)}")
        if may_depend_on_time(mech):
            raise InputError(f"{owner}: some constraint depends on time, so positions alone do not "
                             "determine the motors")  # fmt: skip
        q = assemble(mech)[0] if start is None else check_configuration(mech, start, "start")
        columns = [mech.coordinate_names.index(name) for name in names]
        self._given = mech, names, read_only(q.copy())
        self._block = block_of(mech, columns, owner)
        self.mech, self.base = self._block.mech, self._block.base
        if not self.mech.nu:
            raise NotActuatedError(f"{owner}: no motor acts on the loops of {listing(names)}")
        self.joints, self.motors = names, self.mech.actuator_names
        own = self._own_part(mech, q)
        self.mech.motor_positions(own)  # motors without positions are refused
        self._check_turning(owner)
        self._by_joints = JointBranch(self.mech, names, own)
        self._columns = np.array([self.mech.coordinate_names.index(n) for n in names])
        self._own = self._by_joints.start
        self._here: _AtJoints | None = None
        self._read = position_reader(self.mech.motors)
        self._by_motors: JointBranch | None = None  # made when first needed
        self._linkage: LinkageDynamics | None = None
        self.y_start = read_only(self._by_joints.first.copy())
        self.motor_start = read_only(self.mech.motor_positions(self._own))
        self._turning = self.mech.motors.turning
        self._of_joints = f"positions of {listing(names)}"
        scale, _ = effort_scales(self.mech)
        self._u_scale, self._y_scale = scale, self.mech.column_scale[self._columns]
        self._to_motors, self._unit = self.mech.B.T.copy(), np.outer(scale, self._y_scale)
        self._at(self.y_start)  # the motors control the joints at the start
        spun = np.abs(self.mech.B.T @ self._by_joints.idle()).max(axis=1, initial=0.0) > IDLE
        if spun.any():
            raise InputError(
                f"{owner}: {listing(np.array(self.motors)[spun].tolist())} moves while "
                f"{listing(names)} are at rest, as a rod that spins about its own axis: leave it "
                "out of the motors, actuated="
            )

    def __repr__(self) -> str:
        return (
            f"<Transmission of {self.mech.name!r}: {listing(self.joints, 6)} by "
            f"{listing(self.motors, 6)}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._given

    # ------------------------------------------------------------------------------- kinematics

    @quiet
    def configuration(self, y: Any) -> Vector:
        """The closed configuration (nq,) of `mech` at joint positions y (p,), rad or m.

        Raises
        ------
        InputError
            For a wrong shape, or numbers that are not finite.
        BranchError
            For positions that the straight line from the start does not reach, and if det J is
            zero there or on the way.
        """
        return self._checked(y).q.copy()

    @quiet
    def motor_positions(self, y: Any) -> Vector:
        """The motor positions (nu,) at joint positions y (p,), rad or m.

        Those of continuous motors are the ones closest to `motor_start`.

        Raises
        ------
        InputError, BranchError
            As `configuration`.
        """
        return self._motors_at(self._checked(y).q)

    @quiet
    def joint_positions(self, q_m: Any) -> Vector:
        """The joint positions (p,) at motor positions q_m (nu,), rad or m.

        Positions of continuous motors count up to full turns.

        Raises
        ------
        InputError
            For a wrong shape, or numbers that are not finite; if the motors do not determine the
            joints.
        BranchError
            For motor positions that are not reached on the branch of the start, or contradict each
            other.
        """
        x = vector("q_m", q_m, len(self.motors), f"positions of {listing(self.motors)}")
        if self._by_motors is None:
            self._by_motors = JointBranch(self.mech, self.motors, self._own, self._by_joints.part)
        y = self._by_joints.positions(self._by_motors.at(x).q)
        missed = self._motors_at(self._at(y).q) - x  # there and back
        missed[self._turning] = wrapped(missed[self._turning])
        if not largest(missed) <= SAME_POSITION:
            raise BranchError(
                f"{self.mech.name}: {named_positions(self.motors, x)} is reached on another branch "
                "than that of the start, past a singular configuration of the joints, or these "
                f"positions of {counted(x.size, 'motor')} for {counted(y.size, 'joint')} "
                f"contradict each other; the nearest ones differ by {largest(missed):.2g} rad or m",
                why="dead point",
            )
        return y

    @quiet
    def jacobian(self, y: Any) -> Array:
        """J (nu, p) = dq_m / dy: rates of the motors by those of the joints.

        Raises
        ------
        InputError, BranchError
            As `configuration`.
        """
        return self._checked(y).J.copy()

    @quiet
    def noise_gain(self, y: Any) -> float:
        """The largest rate of a coordinate of the linkage by a rate of the joints, both scaled.

        It is not bounded near a singular configuration of the linkage, such as a stretched crank.

        Raises
        ------
        InputError, BranchError
            As `configuration`.
        """
        scaled = self._checked(y).gamma * self._y_scale / self.mech.column_scale[:, None]
        return float(np.sqrt((scaled * scaled).sum(axis=1).max()))

    @quiet
    def motor_rates(self, y: Any, yd: Any) -> Vector:
        """The motor rates (nu,) at joint positions y and rates yd (p,): ``J yd``, rad/s or m/s.

        Raises
        ------
        InputError, BranchError
            As `configuration`.
        """
        rates: Vector = self._checked(y).J @ self._rates("yd", yd)
        return rates

    @quiet
    def joint_rates(self, y: Any, v_m: Any) -> Vector:
        """The joint rates (p,) at joint positions y for motor rates v_m (nu,): least squares in
        ``J yd = v_m`` for more motors than joints.

        Raises
        ------
        InputError, BranchError
            As `configuration`; InputError also if the motors do not determine the joints.
        """
        here = self._checked(y)
        v = vector("v_m", v_m, len(self.motors), f"rates of {listing(self.motors)}")
        if len(self.motors) < len(self.joints):
            raise InputError(
                f"{self.mech.name}: {counted(len(self.motors), 'motor')} do not determine the "
                f"rates of {listing(self.joints)}"
            )
        rates: Vector = self._y_scale * here.factors.fitted(self._u_scale * v)
        return rates

    @quiet
    def curvature(self, y: Any, yd: Any) -> Vector:
        """``Jdot yd`` (nu,): motor accelerations at joint accelerations of zero, rad/s^2 or m/s^2.

        So ``J ydd + curvature`` are the motor accelerations.

        Raises
        ------
        InputError, BranchError
            As `configuration`.
        """
        here = self._checked(y)
        return self._curvature(here, self._rates("yd", yd))

    # ---------------------------------------------------------------------------------- efforts

    @quiet
    def joint_efforts(self, u: Any, y: Any) -> Vector:
        """``J' u`` (p,): the joint efforts of motor efforts u (nu,), N m or N.

        Raises
        ------
        InputError, BranchError
            As `configuration`.
        """
        efforts: Vector = self._checked(y).J.T @ self._efforts("u", u)
        return efforts

    @quiet
    def motor_efforts(self, tau: Any, y: Any, preload: Any = None) -> MotorEfforts:
        """The motor efforts for joint efforts tau (p,), N m or N: ``J' u = tau``.

        For more motors than joints those of least ``|u - preload|``, forces times the size of
        their loop; for fewer the least squares, with the residual.

        Parameters
        ----------
        tau, y : (p,) array_like
        preload : (nu,) array_like, optional
            N m or N. Default: zero.

        Returns
        -------
        MotorEfforts

        Raises
        ------
        InputError, BranchError
            As `configuration`.
        """
        here, few = self._checked(y), len(self.motors) < len(self.joints)
        wanted = vector("tau", tau, len(self.joints), f"efforts of {listing(self.joints)}")
        u = np.zeros(len(self.motors)) if preload is None else self._efforts("preload", preload)
        missing = self._y_scale * (wanted - here.J.T @ u)
        solved = here.factors.fitted if few else here.factors.shortest
        u = u + self._u_scale * solved(missing)
        return MotorEfforts(u, wanted - here.J.T @ u)

    @quiet
    def linkage_efforts(self, y: Any, yd: Any, ydd: Any, base: Any = None) -> Vector:
        """The joint efforts (p,) that the linkage needs, N m or N: what rods, cranks, rotors,
        springs and friction add to those of the serial robot.

            J' u = serial + linkage        linkage = gamma' (M a + h - F)

        with the serial bodies weightless. Idle motions follow the dynamics. A `CustomForce` acts as
        at t = 0 with the base at rest.

        Parameters
        ----------
        y, yd, ydd : (p,) array_like
            Positions, rates and accelerations of the joints.
        base : (twist, acceleration, gravity), optional
            Motion of the body that carries the mechanism, in the axes of its joint and at its
            origin: twist (6,) and spatial acceleration (6,), linear part first, as Pinocchio's v
            and a of a free-flyer; gravity (3,), m/s^2. Default: at rest, at the reference of the
            robot.

        Returns
        -------
        efforts : (p,) array

        Raises
        ------
        InputError, BranchError
            As `configuration`; InputError also if the serial joints do not hang on each other in
            the tree.
        """
        return self._linkage_efforts(y, yd, ydd, base)[0]

    @quiet
    def linkage_wrench(self, y: Any, yd: Any, ydd: Any, base: Any = None) -> Vector:
        """The wrench (6,) that the base exerts on the linkage, force and moment in the axes of the
        base at its origin, N and N m; its inertia is to be added to that of the serial robot.

        Parameters
        ----------
        y, yd, ydd, base
            As `linkage_efforts`.

        Returns
        -------
        wrench : (6,) array

        Raises
        ------
        InputError, BranchError
            As `linkage_efforts`.
        """
        return self._linkage_efforts(y, yd, ydd, base)[1]

    @quiet
    def reflected_inertia(self, y: Any, rotors: bool = False) -> Array:
        """The inertia (p, p) that the linkage adds at the joints, ``gamma' M gamma``, kg m^2 or kg.

        Parameters
        ----------
        y : (p,) array_like
        rotors : bool, optional
            That of the rotors of the motors alone: ``J' I J``.

        Returns
        -------
        inertia : (p, p) array
            Symmetric; in general its off-diagonal entries are not zero.

        Raises
        ------
        InputError, BranchError
            As `linkage_efforts`.
        """
        here = self._checked(y)
        if rotors:
            inertia: Array = here.J.T @ (self.rotor_inertias[:, None] * here.J)
            return inertia
        rest = np.zeros(self.mech.nv)
        found: Array = np.array([self._inertial_efforts(here, rest, g) for g in here.gamma.T])
        return 0.5 * (found + found.T)

    @property
    def rotor_inertias(self) -> Vector:
        """The rotor inertias of the motors (nu,), at their coordinates, kg m^2 or kg."""
        inertias: Vector = self.mech.B.T @ np.asarray(self.mech.model.armature)
        return inertias

    @quiet
    def velocity_effort(self, y: Any, yd: Any) -> Vector:
        """The joint efforts (p,) of the linkage that are quadratic in its rates, N m or N:
        Coriolis and centrifugal efforts, and those of ``Jdot yd``.

        Raises
        ------
        InputError, BranchError
            As `linkage_efforts`.
        """
        here, rates = self._checked(y), self._rates("yd", yd)
        v = here.gamma @ rates
        return self._inertial_efforts(here, v, self._by_joints.bias(here.q, v))

    # ------------------------------------------------------------------------------------ gains

    @quiet
    def joint_gains(self, y: Any, stiffness: Any, damping: Any = 0.0, u: Any = None) -> JointGains:
        """The stiffness and damping at the joints of given gains of the motors.

            K_y = J' K_m J - sum_i u_i d2 q_mi / dy2        D_y = J' D_m J

        Parameters
        ----------
        y : (p,) array_like
        stiffness, damping : float, (nu,) or (nu, nu) array_like
            Gains of the drives: numbers, or matrices.
        u : (nu,) array_like, optional
            Motor efforts at this posture, for the geometric stiffness. Default: zero.

        Returns
        -------
        JointGains
            Of the joints, (p, p).

        Raises
        ------
        InputError, BranchError
            As `configuration`.
        """
        here = self._checked(y)
        K, D = (
            self._gain("stiffness", stiffness, self.motors),
            self._gain("damping", damping, self.motors),
        )
        geometric = self._geometric(here, u)
        return JointGains(here.J.T @ K @ here.J - geometric, here.J.T @ D @ here.J, 0.0)

    @quiet
    def motor_gains(self, y: Any, stiffness: Any, damping: Any = 0.0, u: Any = None) -> JointGains:
        """The gains of the motors that give a stiffness and damping at the joints.

            K_m = J^-T (K_y + sum_i u_i d2 q_mi / dy2) J^-1        D_m = J^-T D_y J^-1

        They are full matrices; the misfit tells what is lost if drives take the diagonal alone.

        Parameters
        ----------
        y : (p,) array_like
        stiffness, damping : float, (p,) or (p, p) array_like
        u : (nu,) array_like, optional
            Motor efforts at this posture. Default: zero.

        Returns
        -------
        JointGains
            Of the motors, (nu, nu).

        Raises
        ------
        InputError, BranchError
            As `configuration`; InputError also unless there are as many motors as joints.
        """
        here = self._checked(y)
        if len(self.motors) != len(self.joints):
            raise InputError(
                f"{self.mech.name}: gains of {counted(len(self.motors), 'motor')} do not follow "
                f"from those of {counted(len(self.joints), 'joint')}"
            )
        wanted = self._gain("stiffness", stiffness, self.joints)
        geometric = self._geometric(here, u)
        K = _congruent(here.J, wanted + geometric)
        D = _congruent(here.J, self._gain("damping", damping, self.joints))
        diagonal = here.J.T @ (np.diag(K)[:, None] * here.J) - geometric
        size = float(np.linalg.norm(wanted))
        misfit = float(np.linalg.norm(diagonal - wanted)) / size if size else 0.0
        return JointGains(K, D, misfit)

    # --------------------------------------------------------------------------------- polytopes

    @quiet
    def effort_polytope(self, y: Any, yd: Any = None, limits: Any = MODEL) -> Polytope:
        """The joint efforts that the motors can give: a zonotope.

        Parameters
        ----------
        y : (p,) array_like
        yd : (p,) array_like, optional
            Rates, at which speed-torque curves limit the motors. Default: zero.
        limits : "model", Limits or None, optional
            ``"model"``: those of the mechanism, ``hc.limits_of(mech)``; a `Limits`; None: no
            limits.

        Returns
        -------
        Polytope

        Raises
        ------
        LimitError
            If a motor has no effort limit.
        InputError, BranchError
            As `configuration`.
        """
        here = self._checked(y)
        rates = here.J @ (np.zeros(len(self.joints)) if yd is None else self._rates("yd", yd))
        return zonotope(self.joints, here.J, *self.effort_box(rates, limits))

    def effort_box(self, rates: Any = None, limits: Any = MODEL) -> tuple[Vector, Vector]:
        """Lower and upper limits of the motor efforts (nu,) at rates of the motors, N m or N.

        Parameters
        ----------
        rates : (nu,) array_like, optional
            Default: zero.
        limits : "model", Limits or None, optional
            ``"model"``: those of the mechanism, ``hc.limits_of(mech)``; a `Limits`; None: no
            limits.

        Raises
        ------
        LimitError
            If a motor has no effort limit.
        InputError
            For a wrong shape, or limits of other motors.
        """
        n = len(self.motors)
        v = np.zeros(n) if rates is None else vector("rates", rates, n, "of the motors")
        lower, upper = effort_bounds(self._limits(limits), v)
        self._check_limited(np.isfinite(lower) & np.isfinite(upper), "effort")
        return lower, upper

    @quiet
    def rate_polytope(self, y: Any, limits: Any = MODEL) -> Polytope:
        """The joint rates at which motors and joints are within their velocity limits.

        Parameters
        ----------
        y : (p,) array_like
        limits : "model", Limits or None, optional
            ``"model"``: those of the mechanism, ``hc.limits_of(mech)``; a `Limits`; None: no
            limits.

        Returns
        -------
        Polytope

        Raises
        ------
        LimitError
            If no motor and no joint has a velocity limit; for limits of rates that the joints do
            not determine, such as those of a rod that spins between two balls.
        InputError, BranchError
            As `configuration`.
        """
        here, bound = self._checked(y), self._limits(limits)
        moving = coordinates_at(self.mech, bound, here.q, np.zeros(self.mech.nv), 0.0).J
        limited = np.isfinite(bound.velocity).any(axis=0)
        spun = limited & (np.abs(moving @ self._by_joints.idle()).max(axis=1, initial=0.0) > IDLE)
        if spun.any():
            names = np.array(bound.names)[spun].tolist()
            raise LimitError(
                f"{self.mech.name}: {listing(self.joints)} do not determine the rates of "
                f"{listing(names)}, which move while the joints are at rest, as a rod that spins "
                "between two balls: leave out their velocity limits",
                names=names,
            )
        found = between(self.joints, (moving @ here.gamma)[limited], *bound.velocity[:, limited])
        self._check_limited(np.full(len(self.motors), found.b.size > 0), "velocity")
        return found

    @quiet
    def table(self, error: float = 1e-6, lower: Any = None, upper: Any = None) -> TransmissionTable:
        """A table of positions, Jacobian and curvature over a box of joint positions.

        Parameters
        ----------
        error : float, optional
            Bound of the error of motor positions, rad or m, at least 1e-12.
        lower, upper : (p,) array_like, optional
            The domain, rad or m. Default: the position limits of the joints.

        Returns
        -------
        TransmissionTable

        Raises
        ------
        InputError
            For joints without position limits if no domain is given, an empty domain, more than
            three joints; if the series does not converge to the error.
        BranchError
            If the domain leaves the reach of the mechanism on this branch.
        """
        if not positive("error", error, "of motor positions, rad or m") >= 1e-12:
            raise InputError(f"error must be at least 1e-12; got {error:g}")
        box = self.domain(lower, upper)
        with one_thread():
            return chebyshev_table(
                self.mech.name, self.joints, self.motors, self.motor_positions, *box, error
            )

    @quiet
    def report(
        self, lower: Any = None, upper: Any = None, samples: int = 300, seed: int = 0
    ) -> TransmissionReport:
        """Reach, singular curves, polytopes, and the errors of the usual approximations, over a box
        of joint positions.

        Parameters
        ----------
        lower, upper : (p,) array_like, optional
            The box, rad or m. Default: the position limits of the joints.
        samples : int, optional
            The number of postures for the errors.
        seed : int, optional
            Of these postures.

        Returns
        -------
        TransmissionReport

        Raises
        ------
        InputError
            For more than three joints, a box that is empty or not given, or if nothing in it is
            reached.
        """
        return transmission_report(self, lower, upper, samples, seed)

    @quiet
    def check(self, y: Any, q_m: Any) -> TransmissionCheck:
        """Compare with readings of the real mechanism, and explain what differs.

        Usual errors are tried: the order of two joints, such as pitch and roll, exchanged in the
        tree; readings exchanged; axes reversed; constant offsets; joints at another place.
        Explanations are judged by the 30 readings that fit worst.

        Parameters
        ----------
        y : (n, p) array_like
            Measured joint positions, rad or m: a few postures, at large angles too.
        q_m : (n, nu) array_like
            Measured motor positions at the same postures, rad or m.

        Returns
        -------
        TransmissionCheck
            ``print`` shows it.

        Raises
        ------
        InputError
            For a wrong shape, or numbers that are not finite.
        BranchError
            If the model does not reach a posture.
        """
        with one_thread():
            return checked_readings(self, y, q_m)

    @quiet
    def domain(self, lower: Any = None, upper: Any = None) -> tuple[Vector, Vector]:
        """A box of joint positions: the given one, or the position limits of the joints, rad or m.

        Raises
        ------
        InputError
            For joints without position limits if no box is given, and for an empty one.
        """
        bound, p = self._limits(MODEL), len(self.joints)
        found = np.repeat([[-np.inf], [np.inf]], self.mech.nv, axis=1)
        found[:, bound.columns] = bound.position[:, : bound.columns.size]
        own = found[:, self._columns]
        low = own[0] if lower is None else vector("lower", lower, p, "rad or m")
        high = own[1] if upper is None else vector("upper", upper, p, "rad or m")
        if not (np.isfinite(low) & np.isfinite(high)).all():
            raise InputError(
                f"{self.mech.name}: {listing(self.joints)} have no position limits: give lower= "
                "and upper= (on the command line --range), or limits in the YAML file"
            )
        if not (low < high).all():
            raise InputError(f"lower must be below upper; got {low} and {high}")
        return low, high

    # ----------------------------------------------------------------- for exports of the library

    @property
    def start(self) -> Vector:
        """The configuration (nq,) of `mech` at the start; read-only."""
        return self._own

    @property
    def partition(self) -> Partition:
        """The rows of the constraints that are kept, chosen at the start."""
        return self._by_joints.part

    @property
    def scales(self) -> tuple[Vector, Vector]:
        """The factors that make ``J * y_scale * u_scale[:, None]`` dimensionless: of motors (nu,)
        and of joints (p,)."""
        return self._u_scale, self._y_scale

    @property
    def det_sign(self) -> float:
        """The sign of det J on this branch; 1 unless there are as many motors as joints."""
        J = self._at(self.y_start).J
        return float(np.sign(np.linalg.det(J))) if J.shape[0] == J.shape[1] else 1.0

    # --------------------------------------------------------------------------------- internals

    def _check_turning(self, owner: str) -> None:
        """Raise `InputError` for continuous motors whose turns count, since they move a screw."""
        turning, mech = set(np.array(self.motors)[self.mech.motors.turning].tolist()), self.mech
        screws = [c.default_name for c in mech.constraints if getattr(c, "joint", "") == "screw"]
        if turning and screws:
            raise InputError(
                f"{owner}: {listing(sorted(turning))} of a continuous joint and the screw "
                f"{listing(screws)} are in one mechanism: a screw is elsewhere after a full turn, "
                "but the position of a continuous joint does not count turns; make it a revolute "
                "joint, with limits of several turns"
            )

    def _own_part(self, mech: Mechanism, q: Vector) -> Vector:
        """The entries of a configuration of the robot that belong to the block."""
        if self._block.mech is mech:
            return q
        names, model = set(self.mech.model.names), mech.model
        return np.concatenate([
            q[model.idx_qs[j] : model.idx_qs[j] + model.nqs[j]]
            for j in range(1, model.njoints) if model.names[j] in names
        ])  # fmt: skip

    def _at(self, y: Vector) -> _AtJoints:
        """The state at y, in which the motors control the joints. On the way from the start det J
        keeps its sign (branch.py)."""
        place = self._by_joints.at(y)
        if self._here is not None and self._here.q is place.q:
            return self._here
        J = self._to_motors.dot(place.gamma)
        scaled = J * self._unit
        factors = pivoted_qr(scaled if J.shape[0] >= J.shape[1] else scaled.T, min(J.shape))
        if not factors.condition < CONTROL_LOST:
            raise control_lost(self.mech, self.joints, y)
        self._here = _AtJoints(place.q, place.gamma, J, factors)
        return self._here

    def _checked(self, y: Any) -> _AtJoints:
        return self._at(vector("y", y, len(self.joints), self._of_joints))

    def _motors_at(self, q: Vector) -> Vector:
        found, i = self._read(q), self._turning
        if i.size:
            found[i] = self.motor_start[i] + wrapped(found[i] - self.motor_start[i])
        return found

    def _curvature(self, here: _AtJoints, rates: Vector) -> Vector:
        found: Vector = self.mech.B.T @ self._by_joints.bias(here.q, here.gamma @ rates)
        return found

    def _geometric(self, here: _AtJoints, u: Any) -> Array:
        """``sum_i u_i d2 q_mi / dy2`` (p, p), by polarisation of the curvature, which is quadratic
        in the rates."""
        p = len(self.joints)
        if u is None:
            return np.zeros((p, p))
        efforts, unit = self._efforts("u", u), np.eye(p)

        def power(rates: Vector) -> float:
            return float(efforts @ self._curvature(here, rates))

        along = [power(e) for e in unit]
        found = np.diag(along)
        for i, j in combinations(range(p), 2):
            both = power(unit[i] + unit[j])
            found[i, j] = found[j, i] = 0.5 * (both - along[i] - along[j])
        return found

    def _made_linkage(self) -> LinkageDynamics:
        if self._linkage is None:
            self._linkage = linkage_of(self._block, self._columns)
        return self._linkage

    def _linkage_efforts(self, y: Any, yd: Any, ydd: Any, base: Any) -> tuple[Vector, Vector]:
        here, link = self._checked(y), self._made_linkage()
        rates, wanted = self._rates("yd", yd), self._rates("ydd", ydd)
        motion = link.at_rest if base is None else _base_motion(base)
        v = here.gamma @ rates
        a = here.gamma @ wanted + self._by_joints.bias(here.q, v)
        a = link.with_idle(here.q, v, a, motion, self._by_joints.idle())
        found = link.needed(here.q, v, a, motion)
        return here.gamma.T @ (found[6:] - link.forces(here.q, v)), found[:6]

    def _inertial_efforts(self, here: _AtJoints, v: Vector, a: Vector) -> Vector:
        """Joint efforts (p,) of the linkage on a base at rest, without gravity and forces."""
        link = self._made_linkage()
        weightless = link.at_rest._replace(gravity=np.zeros(3))
        a = link.with_idle(here.q, v, a, weightless, self._by_joints.idle(), forces=False)
        efforts: Vector = here.gamma.T @ link.needed(here.q, v, a, weightless)[6:]
        return efforts

    def _limits(self, given: Any) -> BoundLimits:
        asked = requested_limits(self.mech, given, f"{self.mech.name}: transmission")
        return bound_limits(self.mech, asked or Limits())

    def _check_limited(self, limited: Any, what: str) -> None:
        if not limited.all():
            names = [n for n, yes in zip(self.motors, limited, strict=False) if not yes]
            has = "has" if len(names) == 1 else "have"
            raise LimitError(
                f"{self.mech.name}: {listing(names)} {has} no {what} limit, so the set is not "
                f"bounded: give limits=hc.Limits({what}=...)",
                names=names,
            )

    def _rates(self, name: str, x: Any) -> Vector:
        return vector(name, x, len(self.joints), f"of {listing(self.joints)}")

    def _efforts(self, name: str, x: Any) -> Vector:
        return vector(name, x, len(self.motors), f"efforts of {listing(self.motors)}")

    def _gain(self, name: str, x: Any, names: tuple[str, ...]) -> Array:
        """A gain as a symmetric matrix."""
        given, n = numbers(name, x), len(names)
        if given.shape not in ((), (n,), (n, n)) or not np.isfinite(given).all():
            raise InputError(
                f"{name} must be a number, ({n},) or ({n}, {n}), for {listing(names)}, and finite; "
                f"got {given.shape}"
            )
        return given if given.ndim == 2 else np.diag(np.broadcast_to(given, n))


def _congruent(J: Array, K: Array) -> Array:
    """``J^-T K J^-1``."""
    half = np.linalg.solve(J.T, K)
    found: Array = np.linalg.solve(J.T, half.T).T
    return found


def _base_motion(given: Any) -> BaseMotion:
    try:
        twist, acceleration, gravity = given
    except (TypeError, ValueError):
        raise InputError(
            "base must be (twist, acceleration, gravity), of 6, 6 and 3 numbers"
        ) from None
    return BaseMotion(
        vector("base: twist", twist, 6, "m/s and rad/s"),
        vector("base: acceleration", acceleration, 6, "m/s^2 and rad/s^2"),
        vector("base: gravity", gravity, 3, "m/s^2"),
    )
