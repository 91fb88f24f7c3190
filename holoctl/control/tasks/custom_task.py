"""A user-defined task, from a function of q."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from holoctl.base.checks import Vector, finite, numbers, quoted, read_only
from holoctl.base.errors import InputError
from holoctl.constraints.callbacks import Callbacks, check_callables, check_derivatives, scale_of
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.control.tasks.task_protocol import TaskMotion, TaskTick
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.tick.fast_rows import MoreRows
from holoctl.tree.kinematics import Kinematics
from holoctl.tree.live_motion import LiveMotion

__all__ = ["BoundCustomTask", "CustomTask"]


@dataclass(frozen=True, eq=False)
class CustomTask:
    """The value of a function of the configuration, as a task.

    Derivatives that are not given are computed numerically, as by `Custom`: about ten digits, at
    6 nv + 8 calls of `function` a tick.

    Parameters
    ----------
    function : callable
        ``function(q)``: the value (rows,), of the same kind as a reference. It must be smooth: an
        angle must not jump at half a turn.
    jacobian : callable, optional
        ``jacobian(q)``: (rows, nv), the derivative along v: d/dt function = jacobian v.
    drift : callable, optional
        ``drift(q, v)``: (rows,), the second time derivative at zero acceleration.
    rows : int
        The number of rows, one or more.
    scale : float or (rows,) array_like, optional
        The unit of the rows: they are divided by it in condition numbers, and in least squares of
        several tasks. For lengths, the size of the mechanism in m. Default: 1.
    name : str, optional
        Default: the name of `function`.

    Raises
    ------
    InputError
        For callbacks that are not callable, and a scale that is not above zero. By `bind`, and at
        every tick, for callbacks that return the wrong shape or numbers that are not finite; by
        `bind`, for derivatives that are not those of `function`.

    See Also
    --------
    FrameTask : the pose of a frame.
    protocols.Task : a class of your own, which compiles.

    Notes
    -----
    Rows along v, and the check of given derivatives, are as in `Custom`. To pickle a controller its
    callbacks must be named functions of a module.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> sum_of_motors = hc.CustomTask(lambda q: [mech.motor_positions(q).sum()], name="sum")
    >>> P = hc.project(mech, *hc.assemble(mech))
    >>> hc.task_terms(P, sum_of_motors).jacobian.round(6).tolist()
    [[1.0, 1.0]]
    """

    function: Callable[..., Any]
    jacobian: Callable[..., Any] | None = None
    drift: Callable[..., Any] | None = None
    rows: int = 1
    scale: Any = 1.0
    name: str | None = None

    def __post_init__(self) -> None:
        owner = self._owner
        others = {"jacobian": self.jacobian, "drift": self.drift}
        check_callables(owner, {"function": self.function}, others)
        if self.name is not None and not (isinstance(self.name, str) and self.name):
            raise InputError(f"CustomTask: name must be a word; got {quoted(self.name)}")
        object.__setattr__(self, "scale", scale_of(owner, self.scale, self.rows))

    @property
    def default_name(self) -> str:
        """The name as given, or that of `function`."""
        return self.name if self.name is not None else getattr(self.function, "__name__", "custom")

    @property
    def _owner(self) -> str:
        return f"CustomTask {quoted(self.default_name)}"

    def bind(self, mech: Mechanism) -> BoundCustomTask:
        """The task on a mechanism; the callbacks are tested at its reference.

        Parameters
        ----------
        mech : Mechanism

        Returns
        -------
        BoundCustomTask

        Raises
        ------
        InputError
            For callbacks that return the wrong shape, numbers that are not finite, or derivatives
            that are not those of the function.
        """
        check_mechanism(mech)
        functions = Callbacks(
            self._owner, mech.model, self.rows, "function", self.function, self.jacobian, self.drift
        )
        functions.evaluate(mech.reference, np.zeros(mech.nv), 0.0)
        check_derivatives(functions, mech.reference)
        labels = tuple(f"{self.default_name}.{i}" for i in range(self.rows))
        scale = np.full(self.rows, 1.0) / np.asarray(self.scale, dtype=float)
        return BoundCustomTask(functions, labels, read_only(scale))


@dataclass(frozen=True, eq=False)
class BoundCustomTask:
    """A `CustomTask` of one mechanism; see `BoundTask`.

    Attributes
    ----------
    functions : Callbacks
    labels : tuple of str
    scale : (rows,) array
    """

    functions: Callbacks
    labels: tuple[str, ...]
    scale: Vector

    @property
    def rows(self) -> WrenchRows | None:
        """None: the rates are no rows between two bodies."""
        return None

    @property
    def opaque(self) -> str:
        """Why there is no expression."""
        return f"the functions of {self.functions.owner} are Python"

    def at(self, kin: Kinematics) -> TaskMotion:
        """Value, Jacobian and drift from the callbacks."""
        found = self.functions.evaluate(kin.q, kin.v, kin.t)
        return TaskMotion(found.error, found.jacobian, found.drift)

    def wanted(self, value: Any) -> Vector:
        """Values of the function."""
        x = numbers("reference", value)
        if x.shape == () and self.scale.size == 1:
            x = x.reshape(1)
        if x.shape != self.scale.shape:
            raise InputError(
                f"{self.functions.owner}: the reference must have shape {self.scale.shape}, as "
                f"its function returns; got shape {x.shape}"
            )
        if not finite(x):
            raise InputError(f"{self.functions.owner}: the reference is not finite")
        return x

    def error(self, value: Any, wanted: Vector) -> Vector:
        """The reference value less the value."""
        e: Vector = wanted - value
        return e

    def tick(self, motion: LiveMotion, beside: MoreRows | None) -> TaskTick:
        """The task in a tick, from the callbacks."""
        functions, rows = self.functions, self.scale.size
        J, right, value = np.zeros((rows, motion.J.shape[1])), np.zeros(rows), np.zeros(rows)

        def evaluate(q: Vector, v: Vector, t: float) -> None:
            found = functions.evaluate(q, v, t)
            J[:], right[:], value[:] = found.jacobian, -found.drift, found.error

        return TaskTick(evaluate, J, right, lambda q, wanted: wanted - value)
