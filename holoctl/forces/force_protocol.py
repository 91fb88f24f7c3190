"""What a force is: the contract between forces and the rest of the library.

A force is described by a small frozen value (`hc.JointFriction`, `hc.Spring`, ...) that knows no
model. `bind` looks its names up in one model and returns a *bound force*, which is evaluated at
the kinematics of a state and gives efforts on the coordinates, in three parts by what becomes of
their work:

    springs     -dV/dq of an energy V(q) that is stored
    losses      power ``losses . v <= 0``, which is lost
    external    everything else: work from outside

    M a + h = B u + J' f + F + G' lambda        F = springs + losses + external

How to write your own
---------------------
First see whether `hc.CustomForce` will do: it takes F as a function. A class is worth it for
stored energy, for speed, or for joints that are cut.

1. Describe: a frozen dataclass with `name`, `default_name` and what the force needs, as names and
   numbers. It knows no model; check here what can be checked without one.
2. Bind: look up every name in the model, raise `InputError` for an unknown one. Return an object
   with indices in place of names.
3. Evaluate: `at(kin)` gives `Efforts`, `energy(kin)` what is stored, `by_velocity(kin)` the
   derivative of the efforts by v, from `kin` alone; `stores` and `friction` say what it is. No
   state may be kept between calls: mechanisms are shared by threads. A state at which there is no
   answer raises a `SingularityError`.
4. Offer more, or leave it: with `tick` it is fast in a control loop, with `expression` it compiles.
   Without the first, loops evaluate `at`; without the second, `hc.compile` and `hc.export_c` refuse
   the force by its name. What is offered is compared with `at`, and refused where it differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import pinocchio as pin

from holoctl.base.checks import Array, Vector
from holoctl.constraints.joint_coordinates import Closures
from holoctl.tree.frames import Frame
from holoctl.tree.kinematics import Kinematics

__all__ = ["Between", "BoundForce", "Efforts", "Force", "RelativeMotion", "Tick", "column"]


@dataclass(frozen=True, eq=False)
class Efforts:
    """Efforts on the coordinates at one state, N m or N, by what becomes of their work.

    Attributes
    ----------
    springs : (nv,) array
        Of stored energy: ``springs . v`` is minus its rate.
    losses : (nv,) array
        Of friction and dampers: ``losses . v <= 0``.
    external : (nv,) array
        Everything else.
    """

    springs: Vector
    losses: Vector
    external: Vector

    @property
    def total(self) -> Vector:
        """(nv,) their sum, F."""
        return self.springs + self.losses + self.external


Tick = Callable[[Vector, Vector, float], Vector]
"""tick(q, v, t) -> (nv,) the efforts of a force: the same array at every call, written anew."""


class RelativeMotion(NamedTuple):
    """Frames a and b as expressions, and how b moves against a, all in axes of one body.

    Attributes
    ----------
    Ra, pa, Rb, pb : `casadi.SX`, (3, 3) and (3, 1)
        Axes and origins of the frames.
    turns : tuple of (int, `casadi.SX`)
        Coordinate and angular velocity of b against a at its unit rate; what is not there is zero.
    moves : tuple of (int, `casadi.SX`)
        Likewise, the velocity of the origin of b, and of what is at the origin of b on the body
        of a: the difference.
    """

    Ra: Any
    pa: Any
    Rb: Any
    pb: Any
    turns: tuple[tuple[int, Any], ...]
    moves: tuple[tuple[int, Any], ...]


Between = Callable[[Frame, Frame], RelativeMotion]
"""between(a, b): how frame b moves against frame a."""


class BoundForce(Protocol):
    """A force tied to a model.

    Attributes
    ----------
    stores : bool
        Whether it stores energy; else `energy` is not asked.
    friction : bool
        Whether a controller may compensate it at the reference: what depends on the rates alone,
        and is lost.

    Notes
    -----
    It may also have

    ``tick(motion) -> efforts`` : motion a `LiveMotion`
        The same in a control loop: a function (q, v, t) that gives the efforts (nv,), in an array
        of its own that is the same at every call; or None, where there is no faster way than `at`.
        It is made once for each thread. `motion` shows the placements and the Jacobian of all
        bodies at q; v is that of the argument. Where there is no answer it gives nan, and the loop
        asks `at`.
    ``expression(q, v, t, between) -> efforts`` : q (nq, 1), v (nv, 1), t symbols
        The efforts as a `casadi.SX` column of nv entries.
    ``guard(q, v, t, between) -> list``
        Expressions that are below one where that may be trusted; others are left to `at`.
    ``opaque`` : str
        Why there is no `expression`, for those who ask.
    """

    @property
    def stores(self) -> bool:
        """Whether it stores energy."""
        ...

    @property
    def friction(self) -> bool:
        """Whether a controller may compensate it at the reference."""
        ...

    def at(self, kin: Kinematics) -> Efforts:
        """The efforts at a state."""
        ...

    def energy(self, kin: Kinematics) -> float:
        """What is stored at a configuration, J."""
        ...

    def by_velocity(self, kin: Kinematics) -> Array:
        """(nv, nv): the derivative of the efforts by v."""
        ...


class Force(Protocol):
    """The description of a force, before it meets a model.

    Notes
    -----
    It may also have ``joints``, a tuple of the names of joints that it acts on: closures among
    them cannot be taken away from a mechanism without it.
    """

    @property
    def name(self) -> str | None:
        """As given; None for the default."""
        ...

    @property
    def default_name(self) -> str:
        """The name as given, or one made of what the force holds."""
        ...

    def bind(
        self, model: pin.Model, name: str, reference: Vector, closures: Closures
    ) -> BoundForce:
        """Look up all names in a model.

        Parameters
        ----------
        model : pin.Model
        name : str
            The name of the force, for errors.
        reference : (nq,) array
            The mechanism's reference configuration.
        closures : mapping of str to Closure or None
            The closures of the mechanism by name; None where one is switched off: then a force on
            it rests.

        Returns
        -------
        BoundForce

        Raises
        ------
        InputError
            Where a name is unknown.
        """
        ...


def column(v: Any, efforts: Mapping[int, Any]) -> Any:
    """The column (nv, 1) of expressions that are given by their coordinates; v is one like it."""
    found = type(v).zeros(v.numel())
    for k, x in efforts.items():
        found[k] = x
    return found
