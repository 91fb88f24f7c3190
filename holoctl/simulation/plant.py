"""What a caller asks of a simulation, together: the plant, and how its motion is integrated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holoctl.base.checks import Vector, flag, one_of, positive
from holoctl.base.errors import InputError
from holoctl.codegen.compiled.compiled import Compiled
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.limits import Limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.simulation.stepping import METHODS

__all__ = ["Integrator", "Load", "Plant", "check_dynamics", "integrator_of", "plant_of"]

Load = Callable[[float, Vector, Vector], Any]
"""load(t, q, v): forces from outside, or efforts on the coordinates."""

AT_SINGULAR = ("raise", "cross")

FINEST, COARSEST = 1e-14, 1e-2
"""Tolerances of a simulation are between these."""


@dataclass(frozen=True, eq=False)
class Plant:
    """What is simulated: a mechanism, with what its motors can give and what acts from outside.

    Parameters
    ----------
    mech : Mechanism, optional
        With the same coordinates and motors as the controller's model. Default: that model.
    dynamics : Compiled, optional
        Compiled forward dynamics of it, to be quicker: whole steps, where efforts are held, and the
        rows that are looked at after them, are machine code too.
    limits : Limits, optional
        Of its motors: what a controller asks for is clipped to `effort`, and to `speed_torque` at
        the rates that the motors have at each instant. Positions, velocities and accelerations of
        joints are not limited: a plant has no end stops. Default: none; ``hc.limits_of(mech)`` are
        those of its description.
    f_ext : callable, optional
        ``f_ext(t, q, v)``: external forces at any instant, as `inverse_dynamics` takes them. The
        controller is not told.
    efforts : callable, optional
        ``efforts(t, q, v)``: (nv,) efforts on the coordinates, N m or N, likewise.

    Raises
    ------
    InputError
        For what is no mechanism or no function; what does not match is refused by `simulate`.

    Examples
    --------
    >>> import holoctl as hc
    >>> weak = hc.Plant(limits=hc.Limits(effort=2.0))
    >>> windy = hc.Plant(f_ext=lambda t, q, v: {"tip_right": [0, 0, 0, 0.1, 0, 0]})
    """

    mech: Mechanism | None = None
    dynamics: Compiled | None = None
    limits: Limits | None = None
    f_ext: Load | None = None
    efforts: Load | None = None

    def __post_init__(self) -> None:
        if self.mech is not None:
            check_mechanism(self.mech, "plant")
        for name in ("f_ext", "efforts"):
            given = getattr(self, name)
            if given is not None and not callable(given):
                raise InputError(
                    f"{name} must be a function (t, q, v); got {type(given).__name__}; a constant "
                    "load is lambda t, q, v: load"
                )


def plant_of(given: Any, mech: Mechanism) -> tuple[Mechanism, Plant]:
    """The plant that a caller gave, in any form, and its mechanism; by default `mech`.

    Raises
    ------
    InputError
        For what is none.
    """
    if isinstance(given, Compiled):
        given = Plant(given.mech, given)
    plant = given if isinstance(given, Plant) else Plant(given)
    return mech if plant.mech is None else plant.mech, plant


def check_dynamics(dynamics: Any, plant: Mechanism) -> None:
    """Raise `InputError` unless it is compiled forward dynamics of this very plant."""
    if not isinstance(dynamics, Compiled):
        raise InputError(
            f"dynamics must be compiled forward dynamics; got {type(dynamics).__name__}; "
            'hc.compile(plant, ["forward_dynamics"]) makes them'
        )
    if "forward_dynamics" not in dynamics.functions:
        raise InputError(
            f"dynamics has {', '.join(dynamics.functions)}; "
            'hc.compile(plant, ["forward_dynamics"]) makes what is needed'
        )
    if dynamics.mech is not plant:
        raise InputError(
            f"dynamics was compiled for {dynamics.mech.name!r}, which is not the very plant, "
            f"{plant.name!r}"
        )


@dataclass(frozen=True)
class Integrator:
    """How the motion of a simulation is integrated.

    Parameters
    ----------
    method : str, optional
        ``"DOP853"`` or ``"RK45"`` (explicit), ``"LSODA"``, ``"Radau"`` or ``"BDF"`` (for stiff
        forces; scipy's). ``"auto"``: DOP853, or RK45 with one step for each tick; where forces
        turn out to be stiff, LSODA or Radau from there on.
    rtol, atol : float, optional
        Tolerances of a step: of rates relative and absolute, of positions per rad, or per size of
        the mechanism.
    at_singular : str, optional
        At a configuration where the constraints lose rank and paths branch: ``"raise"`` stops
        before it, ``"cross"`` follows the smooth path over it and records the instant.
    hold : bool, optional
        False: evaluate the controller continuously, as an ideal analog controller.

    Raises
    ------
    InputError
        For unknown words, and numbers that make no sense.

    Examples
    --------
    >>> import holoctl as hc
    >>> fine = hc.Integrator(rtol=1e-12, atol=1e-13)
    """

    method: str = "auto"
    rtol: float = 1e-9
    atol: float = 1e-11
    at_singular: str = "raise"
    hold: bool = True

    def __post_init__(self) -> None:
        one_of("method", self.method, METHODS)
        one_of("at_singular", self.at_singular, AT_SINGULAR)
        for name in ("rtol", "atol"):
            given = positive(name, getattr(self, name))
            if not FINEST <= given <= COARSEST:
                raise InputError(f"{name} must be from {FINEST:g} to {COARSEST:g}; got {given:g}")
            object.__setattr__(self, name, given)
        object.__setattr__(self, "hold", flag("hold", self.hold))


def integrator_of(given: Any) -> Integrator:
    """How a caller wants it integrated.

    Raises
    ------
    InputError
        For what is no `Integrator`.
    """
    if given is None:
        return Integrator()
    if not isinstance(given, Integrator):
        raise InputError(
            f"integrator must be an hc.Integrator, such as hc.Integrator(rtol=1e-6); got "
            f"{type(given).__name__}"
        )
    return given
