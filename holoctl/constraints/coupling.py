"""Gears, belts, differentials, mimic joints: linear rows on joint coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import (
    Array,
    Vector,
    known_name,
    made_again,
    number,
    positive,
    quoted,
    read_only,
)
from holoctl.base.errors import InputError
from holoctl.constraints.constraint_protocol import Evaluate, FramePlacement, Rows
from holoctl.tree.coordinates import coordinate_names, joint_of_coordinate
from holoctl.tree.frames import Frame
from holoctl.tree.frozen_model import plain
from holoctl.tree.kinematics import Kinematics
from holoctl.tree.live_motion import LiveMotion

__all__ = ["Coupling"]


@dataclass(frozen=True, eq=False)
class Coupling:
    """A linear constraint ``sum of c_i q_i = offset``: a gear, belt, differential or mimic joint.

    Parameters
    ----------
    coefficients : mapping of str to float
        Coordinate name to its coefficient. Rad for revolute, m for prismatic coordinates;
        coefficients may have mixed units (a rack: m per rad).
    offset : float, optional
        Right-hand side, in the units of the sum.
    name : str, optional
        Name for messages, multipliers and reports. Default: the coordinates, joined by "-".
    t_stab : float, optional
        Time constant of Baumgarte's stabilisation, s. Default: none.

    Raises
    ------
    InputError
        For an empty mapping, coefficients that are zero or not finite, a time constant that is not
        above zero. Unknown coordinates, and coordinates whose value is not a number on a line
        (continuous, spherical, free-flyer joints), are refused by `Mechanism`.

    See Also
    --------
    Closure : a joint between two frames.
    Custom : a relation of coordinates that is not linear.

    Examples
    --------
    A wheel that turns twice as fast as the crank, 0.1 rad ahead:

    >>> import holoctl as hc
    >>> gear = hc.Coupling({"wheel": 1.0, "crank": -2.0}, offset=0.1)
    >>> gear.default_name
    'wheel-crank'
    """

    coefficients: Mapping[str, float]
    offset: float = 0.0
    name: str | None = None
    t_stab: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.coefficients, Mapping) or not self.coefficients:
            raise InputError(
                "Coupling: coefficients must be a mapping of coordinate names to numbers, "
                f"with one entry or more; got {quoted(self.coefficients)}"
            )
        object.__setattr__(self, "coefficients", MappingProxyType(dict(self.coefficients)))
        for name, c in self.coefficients.items():
            if abs(number(f"Coupling: coefficient of {quoted(name)}", c)) < 1e-100:
                raise InputError(
                    f"Coupling: the coefficient of {name!r} is zero, or almost zero; leave it out"
                )
        number("Coupling: offset", self.offset)
        if self.t_stab is not None:
            positive("Coupling: t_stab", self.t_stab, "s")

    def __reduce__(self) -> tuple[Any, ...]:  # a mapping that is read-only does not pickle
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        return made_again, (type(self), given | {"coefficients": dict(self.coefficients)})

    @property
    def default_name(self) -> str:
        """The name as given, or the coordinates joined by "-"."""
        return self.name if self.name is not None else "-".join(map(str, self.coefficients))

    def bind(self, model: pin.Model, name: str, reference: Vector) -> BoundCoupling:
        """The row of this coupling on `model`."""
        model = plain(model)
        owner = f"Coupling {name!r}"
        names = coordinate_names(model)
        jacobian = np.zeros((1, model.nv))
        of_q = np.zeros(model.nq)
        for coordinate, c in self.coefficients.items():
            i = names.index(known_name(coordinate, names, "coordinate", owner))
            joint = int(joint_of_coordinate(model)[i])
            if model.nqs[joint] != model.nvs[joint]:
                raise InputError(
                    f"{owner}: {coordinate!r} belongs to a {model.joints[joint].shortname()}, "
                    "whose position is not a number on a line (an angle modulo 2 pi, or a "
                    "rotation), so a linear coupling of it is ill-defined; make a continuous "
                    "joint a revolute one"
                )
            jacobian[0, i] = float(c)
            of_q[model.idx_qs[joint] + i - model.idx_vs[joint]] = float(c)
        return BoundCoupling((f"{name}.sum",), of_q, float(self.offset), jacobian)


@dataclass(frozen=True)
class BoundCoupling:
    """A coupling tied to a model: ``of_q . q - offset``, with constant Jacobian."""

    linear: ClassVar[bool] = True

    labels: tuple[str, ...]
    of_q: Vector
    offset: float
    jacobian: Array

    def __post_init__(self) -> None:
        read_only(self.of_q)
        read_only(self.jacobian)

    @property
    def support(self) -> NDArray[np.bool_]:
        return np.asarray(self.jacobian != 0.0)

    @property
    def anchors(self) -> tuple[Frame, ...]:
        return ()

    def scale(self, length: Vector, columns: Vector) -> Vector:
        """The largest scaled coefficient becomes 1: the unit of the sum is arbitrary."""
        return np.array([1.0 / np.abs(self.jacobian[0] * columns).max()])

    def rows(self, kin: Kinematics) -> Rows:
        """error c . q - offset; constant Jacobian, no drift."""
        return Rows(
            error=np.array([self.of_q @ kin.q - self.offset]),
            rate=self.jacobian @ kin.v,
            jacobian=self.jacobian.copy(),
            drift=np.zeros(1),
        )

    def tick(self, motion: LiveMotion, rows: Rows) -> Evaluate:
        """The Jacobian is constant; error and rate are one product each."""
        of_q, of_v, offset, error, rate = (
            self.of_q, self.jacobian[0], self.offset, rows.error, rows.rate,
        )  # fmt: skip
        rows.jacobian[:] = self.jacobian

        def evaluate(q: Vector, v: Vector, t: float) -> None:
            error[0] = of_q.dot(q) - offset
            rate[0] = of_v.dot(v)

        return evaluate

    def expression(self, q: Any, t: Any, place: FramePlacement) -> Any:
        """``c . q - offset``."""
        terms = [float(c) * q[k] for k, c in enumerate(self.of_q) if c]
        return sum(terms[1:], terms[0]) - self.offset
