"""The interface of forces: the methods by which the library evaluates them.

A force is described by a small frozen value (`hc.JointFriction`, `hc.Spring`, ...) that does not
depend on a model. `bind` looks its names up in one model and returns a *bound force*, which is
evaluated at the kinematics of a state and returns efforts on the coordinates, in three parts
according to their work:

    springs     -dV/dq of an energy V(q) that is stored
    losses      power ``losses . v <= 0``, which is lost
    external    everything else: external work

    M a + h = B u + J' f + F + G' lambda        F = springs + losses + external

How to write your own
---------------------
`hc.CustomForce`, which takes F as a function, is often enough. A class of your own is needed for
stored energy, for speed, or for joints that are cut.

1. Describe: a frozen dataclass with `name`, `default_name` and what the force needs, as names and
   numbers. It does not depend on a model; check here what can be checked without one.
2. Bind: look up every name in the model, raise `InputError` for an unknown one. Return an object
   with indices in place of names.
3. Evaluate: `at(kin)` returns `Efforts`, `energy(kin)` the stored energy, `by_velocity(kin)` the
   derivative of the efforts by v, from `kin` alone; `stores` and `friction` state its kind. No
   state may be kept between calls: mechanisms are shared by threads. A state at which the force is
   not defined raises a `SingularityError`.
4. Optional methods: with `tick` the force is fast in a control loop, with `expression` it compiles.
   Without the first, loops evaluate `at`; without the second, `hc.compile` and `hc.export_c` raise
   an error that names the force. Both are compared with `at`, and refused if they differ.
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
    """Efforts on the coordinates at one state, N m or N, according to their work.

    Attributes
    ----------
    springs : (nv,) array
        From stored energy: ``springs . v`` is minus its rate.
    losses : (nv,) array
        From friction and dampers: ``losses . v <= 0``.
    external : (nv,) array
        Everything else.

    See Also
    --------
    protocols.BoundForce : returns them.
    results.Terms : has the sum of all forces.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> mech = mech.with_forces([hc.JointSpring("crank", stiffness=2.0)])
    >>> hc.terms(mech, mech.reference, [0.0, 0.0, 0.0]).applied.springs.tolist()
    [-2.0, 0.0, 0.0]
    """

    springs: Vector
    losses: Vector
    external: Vector

    @property
    def total(self) -> Vector:
        """(nv,) their sum, F."""
        return self.springs + self.losses + self.external


Tick = Callable[[Vector, Vector, float], Vector]
"""tick(q, v, t) -> (nv,) the efforts of a force; every call overwrites the same array."""


class RelativeMotion(NamedTuple):
    """Frames a and b as expressions, and the motion of b relative to a, in the axes of one body.

    Attributes
    ----------
    Ra, pa, Rb, pb : `casadi.SX`, (3, 3) and (3, 1)
        Axes and origins of the frames.
    turns : tuple of (int, `casadi.SX`)
        Coordinate and angular velocity of b relative to a at its unit rate; zero for other
        coordinates.
    moves : tuple of (int, `casadi.SX`)
        Likewise, the velocity of the origin of b minus that of the point of a's body which is
        there.
    """

    Ra: Any
    pa: Any
    Rb: Any
    pb: Any
    turns: tuple[tuple[int, Any], ...]
    moves: tuple[tuple[int, Any], ...]


Between = Callable[[Frame, Frame], RelativeMotion]
"""between(a, b): the motion of frame b relative to frame a."""


class BoundForce(Protocol):
    """A force tied to a model.

    Attributes
    ----------
    stores : bool
        Whether it stores energy; otherwise `energy` is not called.
    friction : bool
        Whether a controller may compensate it at the reference: efforts that are dissipated and
        depend on the rates alone.

    See Also
    --------
    protocols.Force : its description.
    protocols.Efforts : what `at` returns.

    Notes
    -----
    It may also have

    ``tick(motion) -> efforts`` : motion a `LiveMotion`
        The same for a control loop: a function (q, v, t) that writes the efforts (nv,) to its own
        array and returns it; or None if there is no faster evaluation than `at`. It is made once
        for each thread. `motion` has the placements and the Jacobian of all bodies at q; v is the
        argument. At a state at which the force is not defined it returns nan, and the loop calls
        `at`.
    ``expression(q, v, t, between) -> efforts`` : q (nq, 1), v (nv, 1), t symbols
        The efforts as a `casadi.SX` column of nv entries.
    ``guard(q, v, t, between) -> list``
        Expressions that are below one where the result of `expression` is accurate; otherwise `at`
        is evaluated.
    ``opaque`` : str
        Why there is no `expression`, for error messages.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> mech = mech.with_forces([hc.JointSpring("crank", stiffness=2.0)])
    >>> mech.bound_forces[0].stores, mech.bound_forces[0].friction
    (True, False)
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
        """The stored energy at a configuration, J."""
        ...

    def by_velocity(self, kin: Kinematics) -> Array:
        """(nv, nv): the derivative of the efforts by v."""
        ...


class Force(Protocol):
    """The description of a force, independent of a model.

    See Also
    --------
    protocols.BoundForce : what `bind` returns.
    CustomForce : efforts from a function, without a class.

    Notes
    -----
    It may also have ``joints``, a tuple of the names of joints that it acts on: a closure among
    them can be removed from a mechanism only together with the force.

    Examples
    --------
    A force that is its own bound force:

    >>> import numpy as np, holoctl as hc
    >>> class Wind:
    ...     name, default_name, stores, friction = None, "wind", False, False
    ...     def bind(self, model, name, reference, closures):
    ...         return self
    ...     def at(self, kin):
    ...         none = np.zeros(kin.v.size)
    ...         return hc.protocols.Efforts(none, none, np.array([0.3, 0.0, 0.0]))
    ...     def energy(self, kin):
    ...         return 0.0
    ...     def by_velocity(self, kin):
    ...         return np.zeros((kin.v.size, kin.v.size))
    >>> mech = hc.load(hc.robot_file("four_bar")).with_forces([Wind()])
    >>> hc.terms(mech, *hc.assemble(mech)).F.tolist()
    [0.3, 0.0, 0.0]
    """

    @property
    def name(self) -> str | None:
        """The given name; None for the default."""
        ...

    @property
    def default_name(self) -> str:
        """The given name, or one made from the parameters of the force."""
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
            The closures of the mechanism by name; None for one that is switched off: a force on it
            is zero.

        Returns
        -------
        BoundForce

        Raises
        ------
        InputError
            If a name is unknown.
        """
        ...


def column(v: Any, efforts: Mapping[int, Any]) -> Any:
    """The column (nv, 1) of expressions given by coordinate; v is a column of the same type."""
    found = type(v).zeros(v.numel())
    for k, x in efforts.items():
        found[k] = x
    return found
