"""The result of a simulation, and how it is printed and saved."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from holoctl.base.checks import Array, Vector, counted, file_path
from holoctl.base.errors import InputError
from holoctl.base.html_table import Cells, html_table, named
from holoctl.base.linalg import largest
from holoctl.simulation.contact_motion import no_contact_events

__all__ = ["KINDS", "Run", "versions"]


KINDS = ("kinetic", "gravity", "springs")
"""Kinds of energy that a run records."""


MOST_MOTORS = 8
"""Largest number of motors in the table of a run."""


@dataclass(frozen=True, eq=False)
class Run:
    """The result of `simulate`: a motion at N + 1 instants.

    Attributes
    ----------
    t : (N + 1,) array
        Instants, s: those of `output`, or the ticks, the end included.
    q : (N + 1, nq) array
        Configurations of the plant.
    v : (N + 1, nv) array
        Velocities of the plant.
    u : (N + 1, nu) array
        Motor efforts that act from each instant on: held from tick to tick, or evaluated at the
        instant if the controller is continuous; zero without a controller. With `limits`, the
        efforts that the saturated motors produce at that instant. If an error or Ctrl-C ended a run
        with a continuous controller, the last row is nan: the controller was not called there.
    closure : (N + 1,) array
        Largest scaled error of all rows; if the geometry is rounded, it includes the error of rows
        that were left out.
    energy : dict of str to (N + 1,) array
        Energy stored in the plant, J: ``"kinetic"``, ``"gravity"`` and ``"springs"``; see `energy`.
    tick_time : (N + 1,) array
        Wall-clock time of the call of the controller that returned u, s.
    repartitions : (k,) array
        Instants at which other rows and coordinates were selected, s.
    crossings : (k,) array
        Instants at which the motion passed a singular configuration, s: one at which the
        constraints lose rank, on the smooth branch, which is a choice of the model; or one of type
        2, of `type_2_at`.
    type_2_at : (n,) array
        Those at which it went through a type-2 (actuation) singularity, to the side on which the
        motors act the other way round, s. Only with as many motors as motions, all driven.
    smallest_singular_value : (N + 1,) array
        The smallest singular value of gamma' B, scaled as in a `Trajectory`: 0 at a type-2
        singularity; inf without motors or motions.
    least_singular_value, smallest_at : float
        Its least value along the run, between the instants too, and where that is, s.
    saturated : (n, 3) array
        Motors at their limits, of the plant or of a controller of the library: the index of the
        motor, from when, and until when, s, as seen at the ticks, or with a continuous controller
        at the instants.
    events : (k, 2) array
        Instants of events, s, and the index of each event.
    steps, evaluations : int
        Number of steps of the integrator, those not accepted included, and of evaluations of the
        dynamics.
    ended : str
        Why the run ended before the duration was over; empty if it did not.
    contact_forces : dict of str to (N + 1, points, 3) array
        Forces of the ground on the points of each contact of `contacts`, by its name, world axes,
        N. Where points are redundant, as the corners of a foot, only their resultant is determined:
        the smallest forces are given, or others that are in the friction cones.
    contact_events : (k,) structured array
        What the points do: instant ``t``, s, ``contact``, ``point``, ``what``, and ``impulse``,
        world axes, N s. A point ``"lands"`` or ``"bounces"``, is ``"struck"`` in the impact of
        another, ``"touches"`` without an impact, ``"slides"``, ``"sticks"`` or ``"leaves"``;
        ``"less restitution"``: Newton's law would have increased the energy of this impact.
    sensors : str
        The sensors of the controller, as `Sensors` prints them; empty: the exact state.
    seed : int
        Seed of the noise of the sensors.
    versions : str
        Versions of Python and of the packages that the run was made with.

    See Also
    --------
    simulate : returns it.
    plot_run : draws one.
    animate : a film.
    view : plays one in the browser.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> run = hc.simulate(mech, None, *hc.assemble(mech), 0.05)
    >>> run.q.shape, bool(run.closure.max() < 1e-9)
    ((51, 3), True)
    """

    t: Vector
    q: Array
    v: Array
    u: Array
    closure: Vector
    energy: dict[str, Vector]
    tick_time: Vector
    repartitions: Vector
    crossings: Vector
    type_2_at: Vector
    smallest_singular_value: Vector
    least_singular_value: float
    smallest_at: float
    saturated: Array
    events: Array
    steps: int
    evaluations: int
    ended: str
    sensors: str
    seed: int
    versions: str
    contact_forces: dict[str, Array] = field(default_factory=dict)
    contact_events: Array = field(default_factory=no_contact_events)

    def __repr__(self) -> str:
        last = f"{self.t[-1]:g} s" if self.t.size else "no time"
        marks = (
            (len(self.crossings) - len(self.type_2_at), "singular configuration", " crossed"),
            (len(self.type_2_at), "type-2 crossing", ""),
            (len(self.repartitions), "time", " rows selected again"),
            (len(self.events), "event", ""),
            (len(self.contact_events), "event", " of contacts"),
            (len({int(i) for i in self.saturated[:, 0]}), "motor", " saturated"),
        )
        more = [f"{counted(n, what)}{done}" for n, what, done in marks if n]
        ended = [f"ended by {self.ended}"] if self.ended else []
        return ", ".join(
            [
                f"<Run: {counted(self.v.shape[1], 'coordinate')} and "
                f"{counted(self.u.shape[1], 'motor')} over {last}",
                f"{counted(self.t.size, 'instant')}",
                *more,
                *ended,
                f"largest closure error {largest(self.closure):.1e} (scaled)>",
            ]
        )

    def _repr_html_(self) -> str:
        return html_table(self, lambda: _parts(self))

    def save(self, path: str | Path) -> Path:
        """Write all of it to a ``.npz`` file (the suffix is added), and return the path."""
        path = file_path("path", path)
        path = path if path.suffix == ".npz" else path.with_name(path.name + ".npz")
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values["energy"] = np.array([self.energy[kind] for kind in KINDS])
        forces = values.pop("contact_forces")
        values["contact_names"] = np.array([*forces], dtype=str)
        values |= {f"contact_forces_{i}": x for i, x in enumerate(forces.values())}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(path, **values)
        except (OSError, ValueError) as error:
            raise InputError(f"{str(path)!r} cannot be written: {error}") from None
        return path

    @classmethod
    def read(cls, path: str | Path) -> Run:
        """Read what `save` wrote."""
        path = file_path("path", path)
        try:
            with np.load(path, allow_pickle=False) as data:
                names = [str(name) for name in data.get("contact_names", ())]
                forces = {name: data[f"contact_forces_{i}"] for i, name in enumerate(names)}
                of_contacts = {"contact_forces", "contact_events"}  # files before had none
                values: dict[str, Any] = {
                    f.name: data[f.name] for f in fields(cls) if f.name not in of_contacts
                }
                if "contact_events" in data:
                    values |= {"contact_forces": forces, "contact_events": data["contact_events"]}
            values["energy"] = dict(zip(KINDS, values["energy"], strict=True))
        except (OSError, EOFError, BadZipFile, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path} is not a saved run: {error}") from None
        for name in ("seed", "steps", "evaluations"):
            values[name] = int(values[name])
        for name in ("least_singular_value", "smallest_at"):
            values[name] = float(values[name])
        for name in ("versions", "ended", "sensors"):
            values[name] = str(values[name])
        return cls(**values)


def _parts(run: Run) -> Iterator[Cells]:
    """The lines of the table that a notebook shows for a run."""
    if not run.t.size:
        return
    yield "time", f"{run.t[0]:g} to {run.t[-1]:g} s", counted(run.t.size, "instant")
    if run.ended:
        yield "ended by", run.ended
    for i, u in enumerate(np.atleast_2d(run.u.T)):
        if i < MOST_MOTORS and np.isfinite(u).any():
            yield f"u[{i}]", f"{np.nanmin(u):.4g} to {np.nanmax(u):.4g}", "N m or N"
    for kind in KINDS:
        E = run.energy[kind]
        if E.any():
            yield f"{kind} energy", f"{E[0]:.4g} to {E[-1]:.4g} J"
    yield "off the constraints", f"at most {largest(run.closure):.1e}", "scaled"
    if np.isfinite(run.least_singular_value):
        least = f"at least {run.least_singular_value:.3g}, at {run.smallest_at:.4g} s"
        yield "singular value of gamma' B", least, "scaled"
    for i in sorted({int(i) for i in run.saturated[:, 0]}):
        spans = run.saturated[run.saturated[:, 0] == i, 1:]
        share = float((spans[:, 1] - spans[:, 0]).sum() / max(run.t[-1] - run.t[0], 1e-300))
        yield (
            f"u[{i}] saturated", named([f"{a:.4g} to {b:.4g}" for a, b in spans]) + " s",
            f"{share:.0%} of the time",
        )  # fmt: skip
    for x, what in (
        (run.crossings, "crossed"), (run.type_2_at, "of these of type 2"),
        (run.repartitions, "rows selected again"),
    ):  # fmt: skip
        if len(x):
            yield what, named([f"{t:.4g}" for t in x]) + " s"
    if len(run.events):
        yield "events", named([f"{int(k)} at {t:.4g} s" for t, k in run.events])
    took = run.tick_time[np.isfinite(run.tick_time)]
    if run.u.shape[1] and took.any():
        median, p99 = np.percentile(took, [50, 99]) * 1e6
        yield "time of the controller", f"{median:.0f} us", f"99 %: {p99:.0f} us"
    yield "steps", run.steps, f"{run.evaluations} evaluations"


@cache
def versions() -> str:
    """Versions of Python and of the packages that a run depends on."""
    packages = ("holoctl", "pin", "numpy", "scipy")
    return " ".join(
        [f"python=={platform.python_version()}", *(f"{p}=={version(p)}" for p in packages)]
    )
