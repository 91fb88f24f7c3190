"""What a law may put in the place of a target of the motors: a motion that is found at the state.

A law that asks for something else than accelerations of the motors, such as that of a frame, needs
the constraints to say which motion that is. It is an `Aim`: laid out with a tick, and asked between
the constraints and the efforts; where the general path decides, it is asked there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from numpy import float64
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.dynamics.actuation import Actuation
from holoctl.dynamics.tick.bordered import NumericConstraints, NumericTree
from holoctl.laws.task import TaskResult
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.projection import Projection
from holoctl.projector.split import Split
from holoctl.rows.tick.fast_rows import Beside
from holoctl.tree.live_motion import LiveMotion

__all__ = ["Aim", "AimTick", "Aimed", "Ground"]

Array = NDArray[float64]


class Aimed(NamedTuple):
    """What is aimed at.

    Attributes
    ----------
    motion : array
        In a tick the accelerations of its independent coordinates (k,); on the general path those
        of the motors (nu,).
    rates : array or None
        Likewise the rates of the reference, which friction is taken at; None: as measured.
    push : array or None
        Efforts that the motors are to do the work of besides: in a tick on the independent
        coordinates (k,), gamma' J' f; on the general path on all (nv,), J' f.
    """

    motion: Vector
    rates: Vector | None
    push: Vector | None


class Ground(NamedTuple):
    """What is there at a state where the kept rows are factored.

    Attributes
    ----------
    split : Split
    motion : LiveMotion
    K : NumericConstraints
    tree : NumericTree
    """

    split: Split
    motion: LiveMotion
    K: NumericConstraints
    tree: NumericTree

    def inertia(self) -> Array:
        """gamma' M gamma (k, k)."""
        N = self.K.basis()
        W: Array = N.T.dot(self.tree.inertia_times(N))
        return W

    def motor_rates(self, rates: Vector) -> Vector:
        """Rates of the motors (nu,) for those of the independent coordinates."""
        found: Vector = self.K.actuation().T.dot(rates)
        return found


AimTick = Callable[[Vector, Vector, float, Any], Aimed | TaskResult | None]
"""aim(q, v, t, asked) -> what is aimed at, or None where the general path is to decide."""


class Aim(Protocol):
    """A law of motions; `asked` is what it is given at a tick, and no array."""

    @property
    def rows(self) -> Beside | None:
        """Rows that a tick is to evaluate beside those of constraints."""
        ...

    def lay_out(self, mech: Mechanism, ground: Ground) -> AimTick | None:
        """For one thread; None where only the general path serves."""
        ...

    def at(self, P: Projection, act: Actuation, asked: Any, known: Vector) -> Aimed:
        """By the general path, under known efforts; this raises what is to be raised."""
        ...
