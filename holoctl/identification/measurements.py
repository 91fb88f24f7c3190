"""Measurements of a motion: times, positions of measured joints, and motor efforts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from holoctl.base.checks import (
    Array,
    Indices,
    Vector,
    counted,
    freeze,
    known_name,
    listing,
    name_list,
    numbers,
    quiet,
    vector,
)
from holoctl.base.errors import InputError
from holoctl.identification.measurement_files import columns_of

__all__ = ["Measurements"]

FEWEST = 4
"""The fewest samples."""

JUMP = 10.0
"""A longer pause, in sampling steps, in which the joints went on by one step is a clock that
jumped."""


@dataclass(frozen=True, eq=False)
class Measurements:
    """A measured motion.

    A row with an entry that is nan is missing. `regression` interpolates over short gaps only.

    Parameters
    ----------
    t : (n,) array_like
        Times, s, increasing; intervals need not be equal.
    positions : (n, m) array_like
        Of the measured joints, rad or m, in the order of `measured`.
    efforts : (n, nu) array_like
        Of the motors, N m or N, or what `gain` converts to that; in the order of `motors`. With
        `t_efforts` they have a row for each of those times.
    measured : iterable of str, optional
        The names of the measured joints, as in `ClosedStateEstimator`: motors, all joints, or more
        sensors than motions. Default: the motors.
    motors : iterable of str, optional
        The names of the motors, in any order. Default: the order of u.
    rates : (n, m) array_like, optional
        Measured rates, rad/s or m/s. Default: from the positions.
    t_efforts : (n',) array_like, optional
        Times of the efforts, s, on the same clock. Default: t.
    gain : float, (nu,) array_like or mapping of str to float, optional
        The efforts are multiplied by it: the torque constant times the gear ratio, N m/A, for
        motor currents.
    effort_limits : float, (nu,) array_like or mapping of str to float, optional
        Efforts at which the drives saturate, N m or N. Default: those of the mechanism.
        Equations with efforts at a limit are left out.

    Attributes
    ----------
    t, positions, efforts, measured, motors, rates, t_efforts, effort_limits
        As above, efforts in N m or N.

    Raises
    ------
    InputError
        For shapes that do not fit, infinite numbers, times that repeat or go back, and a clock that
        jumped while the joints moved on; it names the sample and the likely cause.

    See Also
    --------
    regression : the equations along them.
    measurement_diagnosis : what is wrong with them.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> t = np.linspace(0.0, 1.0, 101)
    >>> hc.Measurements(t, np.sin(t)[:, None], np.cos(t)[:, None])
    <Measurements: 101 samples in 1 s, 1 measured joint, 1 motor>
    """

    t: Any
    positions: Any
    efforts: Any
    measured: Any = None
    motors: Any = None
    rates: Any = None
    t_efforts: Any = None
    gain: Any = None
    effort_limits: Any = None

    @quiet
    def __post_init__(self) -> None:
        """Check the arguments, once."""

        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        for name in ("measured", "motors"):
            if getattr(self, name) is not None:
                put(name, tuple(name_list(f"Measurements: {name}", getattr(self, name))))
        put("t", _clock("t", self.t))
        put("t_efforts", self.t if self.t_efforts is None else _clock("t_efforts", self.t_efforts))
        put("positions", _table("positions", self.positions, self.t, self.measured))
        put("efforts", _table("efforts", self.efforts, self.t_efforts, self.motors))
        if self.rates is not None:
            put("rates", _table("rates", self.rates, self.t, self.measured))
            if self.rates.shape != self.positions.shape:
                raise InputError(
                    f"Measurements: rates must have the shape of positions, "
                    f"{self.positions.shape}; got {self.rates.shape}"
                )
        if self.gain is not None:
            put("efforts", self.efforts * self._of_motors("gain", self.gain))
            put("gain", None)  # a variant of these measurements must not apply it again
        if self.effort_limits is not None:
            put("effort_limits", self._of_motors("effort_limits", self.effort_limits))
            if not (self.effort_limits > 0.0).all():
                raise InputError(
                    f"Measurements: effort_limits must be above zero; got {self.effort_limits}"
                )
        _check_jumps(self.t, self.positions)
        freeze(self)

    @classmethod
    def load(
        cls,
        path: Any,
        measured: Iterable[str] | None = None,
        motors: Iterable[str] | None = None,
        *,
        columns: Mapping[str, str] | None = None,
        gain: Any = None,
        effort_limits: Any = None,
    ) -> Measurements:
        """Measurements from a CSV, Parquet or npz file, its columns by name.

        The names are ``t`` and, for each joint and motor, ``NAME.q`` (position, rad or m),
        ``NAME.v`` (rate, optional) and ``NAME.u`` (effort, or current with `gain`). A unit may
        follow in brackets, ``NAME.q [rad]``, as `Run.save_table` writes it; one that is not SI is
        refused. In a CSV file the names are the first line. An empty cell is missing. Efforts at
        another rate: a file with
        ``t_efforts``, or a row for every time with empty cells.

        Parameters
        ----------
        path : str or path
            ``.csv``, ``.parquet`` (with pyarrow installed) or ``.npz`` with an array per column.
        measured, motors : iterable of str, optional
            The joints and motors that are read. Default: all that have such columns.
        columns : mapping of str to str, optional
            The file's names of columns that are called otherwise: ``{"t": "stamp", "hip.q":
            "enc_1"}``.
        gain, effort_limits
            As above.

        Returns
        -------
        Measurements

        Raises
        ------
        LoadError
            For a file that cannot be read, with the line, and for columns that it does not have.
        InputError
            As above.
        """
        found = columns_of(path, measured, motors, columns)
        return cls(gain=gain, effort_limits=effort_limits, **found)

    def __repr__(self) -> str:
        return (
            f"<Measurements: {counted(self.t.size, 'sample')} in {np.ptp(self.t):.4g} s, "
            f"{counted(self.positions.shape[1], 'measured joint')}, "
            f"{counted(self.efforts.shape[1], 'motor')}>"
        )

    @property
    def resolution(self) -> Vector:
        """(m,) the increments of the position sensors, rad or m: the smallest differences in
        the data; zero where they are below 1e-9 of the motion."""
        found = np.zeros(self.positions.shape[1])
        for i, x in enumerate(self.positions.T):
            steps = np.abs(np.diff(np.unique(x[np.isfinite(x)])))
            steps = steps[steps > 1e-9 * np.ptp(x[np.isfinite(x)])] if steps.size else steps
            found[i] = steps.min(initial=np.inf) if steps.size else 0.0
        return found

    def order_of(self, names: tuple[str, ...]) -> Indices:
        """The columns of `efforts` of motors in this order, or an `InputError`."""
        n = self.efforts.shape[1]
        if self.motors is None:
            if n != len(names):
                raise InputError(
                    f"Measurements: efforts must have a column for each of the "
                    f"{counted(len(names), 'motor')}, {listing(names)}; got {n}"
                )
            return np.arange(n)
        for name in names:
            known_name(name, self.motors, "effort of motor", "Measurements: motors")
        for name in self.motors:
            known_name(name, names, "motor", "Measurements: motors")
        return np.array([self.motors.index(name) for name in names])

    def _of_motors(self, what: str, value: Any) -> Vector:
        """A number for each motor."""
        n = self.efforts.shape[1]
        if isinstance(value, Mapping):
            if self.motors is None:
                raise InputError(f"Measurements: {what} by name requires motors=")
            for name in value:
                known_name(name, self.motors, "motor", f"Measurements: {what}")
            if missing := [x for x in self.motors if x not in value]:
                raise InputError(f"Measurements: {what} has no entry for {listing(missing)}")
            value = [value[name] for name in self.motors]
        elif np.ndim(value) == 0:
            value = [value] * n
        return vector(f"Measurements: {what}", value, n, "one for each motor")


def _clock(what: str, value: Any) -> Vector:
    """Times that increase, or an `InputError` with the place."""
    t = numbers(f"Measurements: {what}", value)
    if t.ndim != 1 or t.size < FEWEST:
        raise InputError(
            f"Measurements: {what} must be {FEWEST} times or more; got shape {t.shape}"
        )
    if not np.isfinite(t).all():
        i = int(np.flatnonzero(~np.isfinite(t))[0])
        raise InputError(f"Measurements: {what}[{i}] is {t[i]}; every sample needs its time")
    step = np.diff(t)
    if not (step > 0.0).all():
        i = 1 + int(np.flatnonzero(step <= 0.0)[0])
        many = int(np.count_nonzero(step <= 0.0))
        cause = (
            "repeats the time before: a sample that was logged twice, or times of too few digits"
            if t[i] == t[i - 1]
            else f"is earlier than the time before, {t[i - 1]:.9g}: two logs in one, or a clock "
            "that was set; give the parts as measurements of their own"
        )
        raise InputError(
            f"Measurements: {what}[{i}] = {t[i]:.9g} {cause} ({counted(many, 'such place')})"
        )
    return t


def _table(what: str, value: Any, t: Vector, names: tuple[str, ...] | None) -> Array:
    """A row for each time; entries may be nan."""
    x = numbers(f"Measurements: {what}", value)
    x = x[:, None] if x.ndim == 1 else x
    if x.ndim != 2 or len(x) != t.size:
        raise InputError(
            f"Measurements: {what} must have a row for each of {t.size} times; got shape {x.shape}"
        )
    if names is not None and len(names) != x.shape[1] and what != "positions":
        raise InputError(
            f"Measurements: {what} must have a column for each of {listing(names)}; "
            f"got {x.shape[1]}"
        )
    if np.isinf(x).any():
        i, j = (int(k) for k in np.argwhere(np.isinf(x))[0])
        raise InputError(f"Measurements: {what}[{i}, {j}] is {x[i, j]}; nan means missing")
    if np.isfinite(x).all(axis=1).sum() < FEWEST:
        raise InputError(f"Measurements: {what} has fewer than {FEWEST} rows without nan")
    return x


def _check_jumps(t: Vector, x: Array) -> None:
    """Refuse a clock that jumped ahead: the joints moved on as if one step had passed."""
    there = np.isfinite(x).all(axis=1)
    t, x, at = t[there], x[there], np.flatnonzero(there)
    step = float(np.median(np.diff(t)))
    for i in np.flatnonzero(np.diff(t) > JUMP * step):
        if i < 1 or i + 2 >= t.size or t[i] - t[i - 1] > 2 * step or t[i + 2] - t[i + 1] > 2 * step:
            continue
        before, gap, after = x[i] - x[i - 1], x[i + 1] - x[i], x[i + 2] - x[i + 1]
        moves = np.abs(before).max()
        same = np.abs(gap - 0.5 * (before + after)).max()
        if moves > 0.0 and same < 0.5 * moves and np.abs(after - before).max() < 0.5 * moves:
            raise InputError(
                f"Measurements: t jumps by {t[i + 1] - t[i]:.4g} s at sample {at[i + 1]}, but the "
                "joints moved on by one step: a clock that was set; correct the times after it"
            )
