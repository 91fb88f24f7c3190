"""Two groups of options of a simulation: the plant, and the integration of its motion."""

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
"""load(t, q, v): external forces, or efforts on the coordinates."""

AT_SINGULAR = ("raise", "cross")
AT_ACTUATION_SINGULARITY = ("raise", "record")

FINEST, COARSEST = 1e-14, 1e-2
"""The smallest and the largest tolerance of a simulation."""


@dataclass(frozen=True, eq=False)
class Plant:
    """What is simulated: a mechanism, the effort limits of its motors and external loads.

    Parameters
    ----------
    mech : Mechanism, optional
        With the same coordinates and motors as the controller's model. Default: that model.
    dynamics : Compiled, optional
        Compiled forward dynamics of `mech`, for speed: with held efforts whole steps are compiled
        code, and so are the rows that are evaluated after each step.
    limits : "model", Limits or None, optional
        ``"model"``: those of the mechanism, ``hc.limits_of(mech)``; a `Limits`; None: no limits.
        Of its motors: the controller's command is clipped to `effort`, and to `speed_torque` at
        the rates that the motors have at each instant. Positions, velocities and accelerations of
        joints are not limited: a plant has no end stops.
    f_ext : callable, optional
        ``f_ext(t, q, v)``: external forces at any instant, as `inverse_dynamics` takes them. The
        controller does not know them.
    efforts : callable, optional
        ``efforts(t, q, v)``: (nv,) efforts on the coordinates, N m or N, likewise.

    Raises
    ------
    InputError
        If `mech` is not a mechanism, or a load is not a function; `simulate` refuses values that do
        not match each other.

    See Also
    --------
    simulate : takes it as ``plant=``.
    results.Compiled : compiled dynamics, for speed.
    Limits : limits of the motors.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> u = hc.inverse_dynamics(mech, q, v, [0.0, 0.0]).u
    >>> weak = hc.Plant(limits=hc.Limits(effort=2.0))
    >>> hc.simulate(mech, lambda t, q, v: u, q, v, 0.002, plant=weak).u[0].tolist()
    [-2.0, 2.0]
    """

    mech: Mechanism | None = None
    dynamics: Compiled | None = None
    limits: Limits | str | None = None
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
    """The mechanism, by default `mech`, and the `Plant` of a caller's argument in any form.

    Raises
    ------
    InputError
        If the argument is neither a mechanism, nor compiled dynamics, nor a `Plant`.
    """
    if isinstance(given, Compiled):
        given = Plant(given.mech, given)
    plant = given if isinstance(given, Plant) else Plant(given)
    return mech if plant.mech is None else plant.mech, plant


def check_dynamics(dynamics: Any, plant: Mechanism) -> None:
    """Raise `InputError` unless `dynamics` is compiled forward dynamics of this plant object."""
    if not isinstance(dynamics, Compiled):
        raise InputError(
            f"dynamics must be compiled forward dynamics; got {type(dynamics).__name__}; "
            'hc.compile(plant, ["forward_dynamics"]) makes them'
        )
    if "forward_dynamics" not in dynamics.functions:
        raise InputError(
            f"dynamics has {', '.join(dynamics.functions)}; "
            'hc.compile(plant, ["forward_dynamics"]) makes the function that is needed'
        )
    if dynamics.mech is not plant:
        raise InputError(
            f"dynamics was compiled for {dynamics.mech.name!r}, which is a different object from "
            f"the plant being simulated, {plant.name!r}; compile dynamics of that object"
        )


@dataclass(frozen=True)
class Integrator:
    """How the motion of a simulation is integrated.

    Parameters
    ----------
    method : str, optional
        ``"DOP853"`` or ``"RK45"`` (explicit), ``"LSODA"``, ``"Radau"`` or ``"BDF"`` (for stiff
        forces; scipy's). ``"auto"``: DOP853, or RK45 with one step for each tick if efforts are
        held; once forces are found to be stiff, LSODA or Radau.
    rtol, atol : float, optional
        Tolerances of a step: of rates relative and absolute, of positions per rad, or per size of
        the mechanism.
    at_singular : str, optional
        At a configuration in which the constraints lose rank and paths branch: ``"raise"`` stops
        before it, ``"cross"`` follows the smooth path through it and records the instant.
    hold : bool, optional
        False: evaluate the controller continuously, as an ideal analog controller.
    at_actuation_singularity : str, optional
        Where a mechanism under a controller goes through a type-2 (actuation) singularity, to the
        side on which its motors act the other way round: ``"raise"`` ends the run there,
        ``"record"`` continues, and `Run.type_2_at` has the instant. Without a controller, or with a
        function that returned the same efforts at every call so far, all are recorded only.

    Raises
    ------
    InputError
        For an unknown method or option, or a tolerance out of range.

    See Also
    --------
    simulate : takes it as ``integrator=``.
    Plant : what is integrated.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> stiff = hc.Integrator("Radau", rtol=1e-6)
    >>> run = hc.simulate(mech, None, *hc.assemble(mech), 0.05, integrator=stiff)
    >>> run.ended, bool(run.closure.max() < 1e-9)
    ('', True)
    """

    method: str = "auto"
    rtol: float = 1e-9
    atol: float = 1e-11
    at_singular: str = "raise"
    hold: bool = True
    at_actuation_singularity: str = "raise"

    def __post_init__(self) -> None:
        one_of("method", self.method, METHODS)
        one_of("at_singular", self.at_singular, AT_SINGULAR)
        one_of("at_actuation_singularity", self.at_actuation_singularity, AT_ACTUATION_SINGULARITY)
        for name in ("rtol", "atol"):
            given = positive(name, getattr(self, name))
            if not FINEST <= given <= COARSEST:
                raise InputError(f"{name} must be from {FINEST:g} to {COARSEST:g}; got {given:g}")
            object.__setattr__(self, name, given)
        object.__setattr__(self, "hold", flag("hold", self.hold))


def integrator_of(given: Any) -> Integrator:
    """The `Integrator` of a caller's argument; the default one for None.

    Raises
    ------
    InputError
        If the argument is not an `Integrator`.
    """
    if given is None:
        return Integrator()
    if not isinstance(given, Integrator):
        raise InputError(
            f"integrator must be an hc.Integrator, such as hc.Integrator(rtol=1e-6); got "
            f"{type(given).__name__}"
        )
    return given
