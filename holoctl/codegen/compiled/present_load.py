"""Payload and gravity of a compiled law at run time.

They are one input of the machine code, `load`, which each `Compiled` binds to numbers of its own:
laws with different loads share their code. In Python they are in the mechanism.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, number, quiet, vector
from holoctl.codegen.compiled.estimator import not_compiled
from holoctl.codegen.compiled.extension_source import Law
from holoctl.codegen.compiled.interpreted import Interpreted
from holoctl.codegen.expressions import Expressions, symbolic
from holoctl.codegen.law_options import Subject
from holoctl.codegen.may_change import payload_frame
from holoctl.codegen.parameters import (
    INERTIA,
    PAYLOAD,
    load_numbers,
    mechanism_with,
    usual_values,
)
from holoctl.codegen.task_law_options import TaskSubject
from holoctl.control.loop import hand_over
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frames import Frame
from holoctl.tree.inertia_checks import check_mass, check_moments

__all__ = [
    "PresentLoad",
    "carrying",
    "expressions_of",
    "loaded",
    "other_controller",
    "present_load",
]


@dataclass(frozen=True, eq=False)
class PresentLoad:
    """What a compiled law carries.

    Attributes
    ----------
    frame : Frame or None
        Where the payload is mounted; None if there cannot be one.
    values : mapping of str to array
        As those of `LawParameters`, whose order they have.
    """

    frame: Frame | None
    values: Mapping[str, Array]

    def numbers(self, mech: Mechanism) -> Vector:
        """The input of machine code, of the mechanism with this load."""
        return load_numbers(mech, self.frame, "gravity" in self.values)

    def empty(self, mech: Mechanism) -> PresentLoad:
        """No payload, and gravity of the model."""
        gravity = np.array(mech.model.gravity.linear) if "gravity" in self.values else None
        return replace(self, values=usual_values(self.frame, gravity))

    def same(self, other: PresentLoad | None) -> bool:
        """Whether both have the same values."""
        return other is not None and all(
            np.array_equal(x, other.values[name]) for name, x in self.values.items()
        )

    def changed(self, payload: Any, gravity: Any) -> PresentLoad:
        """Another payload or gravity, checked; None leaves them.

        Raises
        ------
        InputError
            For what no body has, for numbers that are not finite, and for what was not compiled.
        """
        values = dict(self.values)
        if payload is not None:
            if self.frame is None:
                raise not_compiled("payload", "hc.compile(..., payload='the name of a frame')")
            values |= _payload(payload)
        if gravity is not None:
            if "gravity" not in values:
                raise not_compiled("gravity", "hc.compile(..., gravity=True)")
            values["gravity"] = vector("gravity", gravity, 3, "m/s^2")
        return replace(self, values=values)

    def mechanism(self, mech: Mechanism) -> Mechanism:
        """The mechanism with this load."""
        return mechanism_with(mech, self.frame, self.values)


def present_load(
    what: Any, subject: Subject | TaskSubject, payload: Any, gravity: Any
) -> PresentLoad | None:
    """The load of a law that is to be compiled: no payload, gravity of the model; None where
    neither may change.

    Raises
    ------
    InputError
        As `payload_frame`.
    """
    mech = subject.mech
    frame = payload_frame(what, mech, payload, gravity, subject.keeping)
    values = usual_values(frame, np.array(mech.model.gravity.linear) if gravity else None)
    return PresentLoad(frame, values) if values else None


def expressions_of(subject: Subject | TaskSubject, load: PresentLoad | None) -> Expressions:
    """The expressions of a subject, with its load as one input."""
    if load is None:
        return symbolic(subject.mech, subject.partition)
    return symbolic(
        subject.mech, subject.partition, payload=load.frame, gravity="gravity" in load.values,
        together=True,
    )  # fmt: skip


def carrying(code: tuple[Any, Law], load: PresentLoad | None, mech: Mechanism) -> tuple[Any, Law]:
    """The machine code of a law, bound to the load of `mech`, whatever it was bound to; the same
    where it has no such input."""
    module, law = code
    if load is None or not law.load:
        return code
    numbers = load.numbers(mech)
    if isinstance(module, Interpreted):
        return replace(module, load=numbers), law
    module = module.module if isinstance(module, _LoadedModule) else module
    return _LoadedModule(module, numbers), law


def other_controller(controller: Any, mech: Mechanism) -> Any:
    """A controller of the same mechanism with another load; None for None."""
    if controller is None:
        return None
    estimator = controller.estimator
    return replace(
        controller, mech=mech, estimator=None if estimator is None else estimator.of_other(mech)
    )


@quiet
def loaded(self: Any, payload: Any = None, gravity: Any = None) -> Any:
    """The same law with another payload or gravity, which shares the machine code.

    Needs `payload=` or `gravity=` of `compile`. Its mechanism, its controller and what Python
    computes have this load too. It takes some milliseconds, so do it outside a loop. Loops and
    trackings that exist keep the law that they were made from. ``loop(after=loop)`` of the result
    continues a loop, with which it shares state and integral; that of this thread is continued so,
    too. `fallbacks` counts for all loads together.

    Parameters
    ----------
    payload : float or pin.Inertia, optional
        What the frame carries: a mass at its origin, kg, or an inertia in its axes, such as
        ``pin.Inertia(mass, centre, inertia)``; 0.0: nothing. Default: as here.
    gravity : (3,) array_like, optional
        Its acceleration in the axes of the world, m/s^2. Default: as here.

    Returns
    -------
    Compiled or CompiledTasks

    Raises
    ------
    InputError
        For a negative mass, moments that no body has, numbers that are not finite, or a load that
        was not compiled.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> fast = hc.compile(mech, ["inverse_dynamics"], machine="vm", payload="tip_right")
    >>> q, v = hc.assemble(mech)
    >>> heavy = fast.loaded(2.0)
    >>> heavy.inverse_dynamics(q, v, np.zeros(2)).round(2).tolist()
    [-5.72, 5.72]
    """
    load = None if self._load is None else self._load.changed(payload, gravity)
    if load is None:
        raise not_compiled("payload or gravity", "hc.compile(..., payload=frame, gravity=True)")
    found = self._carrying(load)
    hand_over(self, found)
    return found


def _payload(given: Any) -> dict[str, Array]:
    """The numbers of a payload: a mass, kg, at the origin of its frame, or a `pin.Inertia`."""
    if isinstance(given, pin.Inertia):
        mass, centre, inertia = float(given.mass), given.lever, np.array(given.inertia)
    else:
        mass = number("payload", given, "its mass, kg, or a pin.Inertia in the axes of its frame")
        centre, inertia = np.zeros(3), np.zeros((3, 3))
    check_mass("payload", mass)
    centre = vector("payload: centre of mass", centre, 3, "m")
    check_moments("payload: inertia", inertia, mass * float(centre @ centre))
    six = np.zeros(6)
    six[np.array(INERTIA)] = inertia
    return dict(zip(PAYLOAD, (np.array([mass]), centre, six), strict=True))


@dataclass(frozen=True, eq=False)
class _LoadedModule:
    """The functions of an extension module, with a load as their last argument."""

    module: Any
    load: Vector

    def raw(self, *given: Any) -> None:
        """As extension.c.in has it; so are the others."""
        self.module.raw(*given, self.load)

    def bind(self, *given: Any) -> Any:
        return self.module.bind(*given, self.load)

    def batch(self, *given: Any) -> None:
        self.module.batch(*given, self.load)

    def step(self, *given: Any) -> bool:
        return bool(self.module.step(*given, self.load))

    def pointer(self) -> Any:
        return self.module.pointer()
