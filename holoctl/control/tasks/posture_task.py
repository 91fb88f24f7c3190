"""The positions of motors, or of other coordinates, as a task: rows that select."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.angles import position_error, wrapped
from holoctl.base.checks import Vector, finite, name_list, numbers, read_only
from holoctl.base.errors import InputError
from holoctl.control.tasks.task_protocol import Show, TaskExpression, TaskMotion, TaskTick
from holoctl.mechanism.checks import check_configuration, check_mechanism, coordinate_indices
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.motors import MotorPlaces, motor_places, position_reader
from holoctl.rows.tick.fast_rows import MoreRows
from holoctl.tree.coordinates import translational
from holoctl.tree.kinematics import Kinematics
from holoctl.tree.live_motion import LiveMotion

__all__ = ["BoundPostureTask", "PostureTask"]


@dataclass(frozen=True)
class PostureTask:
    """The positions of the motors, or of other coordinates.

    Parameters
    ----------
    coordinates : str or sequence of str, optional
        ``"motors"``, or names of coordinates that have a position of their own.

    Raises
    ------
    InputError
        For invalid names; by `bind` for unknown names.

    See Also
    --------
    FrameTask : the pose of a frame.
    ComputedTorque : the law for positions of motors alone.

    Notes
    -----
    A reference is the positions (rows,), rad or m, or a whole configuration (nq,), which is read as
    positions if both have the same size. The error of continuous joints is wrapped to half a turn.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> P = hc.project(mech, *hc.assemble(mech))
    >>> hc.task_terms(P, hc.PostureTask()).jacobian.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    coordinates: str | tuple[str, ...] = "motors"

    def __post_init__(self) -> None:
        given: Any = self.coordinates
        if not isinstance(given, str) or given != "motors":
            names = tuple(name_list("PostureTask: coordinates", given))
            if not names:
                raise InputError("PostureTask: coordinates must name one or more, or 'motors'")
            object.__setattr__(self, "coordinates", names)

    def bind(self, mech: Mechanism) -> BoundPostureTask:
        """The task on a mechanism.

        Parameters
        ----------
        mech : Mechanism

        Returns
        -------
        BoundPostureTask

        Raises
        ------
        InputError
            For unknown names, and for coordinates or motors without a position of their own.
        """
        check_mechanism(mech)
        if self.coordinates == "motors":
            if not mech.actuated:
                raise InputError(
                    f"PostureTask: the motors of {mech.name} have no positions of their own; name "
                    "coordinates"
                )
            names = tuple(mech.actuated)
        else:
            names = tuple(self.coordinates)
        where = coordinate_indices(mech, names, "PostureTask: coordinates", joints_too=False)
        places = motor_places(mech.model, names)
        if places.missing:
            missing = places.missing.replace("drives", "is")
            raise InputError(f"PostureTask: {missing}, which has no position of its own")
        lengths = translational(mech.model)[where]
        scale = np.where(lengths, 1.0 / mech.column_scale[where], 1.0)
        J = np.zeros((where.size, mech.nv))
        J[np.arange(where.size), where] = 1.0
        return BoundPostureTask(mech, names, places, read_only(J), read_only(scale))


@dataclass(frozen=True, eq=False)
class BoundPostureTask:
    """A `PostureTask` of one mechanism; see `BoundTask`.

    Attributes
    ----------
    mech : Mechanism
    labels : tuple of str
    places : MotorPlaces
        The indices of the positions in q.
    jacobian : (rows, nv) array
    scale : (rows,) array
    """

    mech: Mechanism
    labels: tuple[str, ...]
    places: MotorPlaces
    jacobian: NDArray[np.float64]
    scale: Vector

    def at(self, kin: Kinematics) -> TaskMotion:
        """Positions; rows that select have no drift."""
        return TaskMotion(
            position_reader(self.places)(kin.q), self.jacobian, np.zeros(len(self.labels))
        )

    def wanted(self, value: Any) -> Vector:
        """The reference positions, checked; of a configuration its positions."""
        rows, x = len(self.labels), numbers("reference", value)
        if x.shape == (self.mech.nq,) and self.mech.nq != rows:
            return position_reader(self.places)(check_configuration(self.mech, x, "reference"))
        if x.shape != (rows,):
            raise InputError(
                f"the reference of a posture must have shape ({rows},), positions, or "
                f"({self.mech.nq},), a configuration; got {x.shape}"
            )
        if not finite(x):
            raise InputError("the reference of a posture is not finite")
        return x

    def error(self, value: Any, wanted: Vector) -> Vector:
        """The reference less the positions, by the shorter way round for continuous joints."""
        e: Vector = wanted - value
        if self.places.turning.size:
            e[self.places.turning] = wrapped(e[self.places.turning])
        return e

    rows: None = None

    def expression(self, q: Any, v: Any, t: Any, show: Show, value: Any) -> TaskExpression:
        """Rows that select; positions as `error` has them."""
        import casadi as ca

        columns, places = np.argmax(self.jacobian, axis=1).tolist(), self.places
        error = [
            position_error(q, int(at), i in places.turning, value[i])
            for i, at in enumerate(places.where)
        ]
        rows = [{k: ca.SX(1.0)} for k in columns]
        return TaskExpression(rows, [ca.SX(0.0)] * len(rows), [v[k] for k in columns], error, [])

    def tick(self, motion: LiveMotion, beside: MoreRows | None) -> TaskTick:
        """The task in a tick: its rows are constant."""
        at = position_reader(self.places)
        return TaskTick(
            lambda q, v, t: None, np.array(self.jacobian), np.zeros(len(self.labels)),
            lambda q, wanted: self.error(at(q), wanted),
        )  # fmt: skip
