"""The report of the doctor: all results by name, and as sentences (report_sentences.py)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any

from holoctl.base.checks import Vector, counted
from holoctl.base.html_table import Cells, folded, html_table, named
from holoctl.doctor import report_sentences
from holoctl.doctor.acting_forces import ActingForces
from holoctl.doctor.contradiction import ClosingResult
from holoctl.doctor.coordinate_choice import CoordinateChoice
from holoctl.doctor.crossed_axes import CrossedAxis
from holoctl.doctor.mobility_count import Counts
from holoctl.doctor.motion_types import Motion, Motions
from holoctl.doctor.rank_margins import Margins
from holoctl.doctor.redundancy import Redundancy, RowGroup
from holoctl.doctor.rounding import Rounding
from holoctl.doctor.sensors import SensorReport
from holoctl.doctor.size_and_mass import Dimensions

__all__ = ["MobilityReport", "plain"]

NAMES = (
    "name", "q", "closed", "error", "open_dof", "rows", "active", "dof", "generic_rank",
    "finite_dof", "gruebler", "gruebler_reason", "redundant", "latent", "weak", "strength",
    "essential", "groups", "locked_joints", "idle", "idle_motions", "undriven", "independent",
    "independent_condition", "actuated_condition", "best_independent", "best_condition",
    "actuation", "motors", "actuation_rank", "generic_actuation_rank", "margin", "usual_margin",
    "gap", "uncertain", "actuation_margin", "singular", "contradictions", "opposite", "crossed",
    "size", "loop_sizes", "mass", "far", "tolerance", "wanted_tolerance", "rounding", "forces",
    "sensors", "coupled_motors", "beyond_limits", "message",
)  # fmt: skip
"""The keys of `MobilityReport.to_dict`, in this order, before ``"ok"``."""


@dataclass(frozen=True, eq=False)
class MobilityReport:
    """The result of `mobility`. ``str()`` explains it in sentences, `to_dict` is for programs.

    Attributes
    ----------
    name : str
        The name of the mechanism.
    motors : list of str
        The names of its motors.
    closing : ClosingResult
        The closed configuration, or why the mechanism does not close.
    counts : Counts
        Coordinates, rows, ranks, motions.
    dimensions : Dimensions
        Size and mass.
    crossed : list of CrossedAxis
        Closures that turn about another axis than the hinges of their otherwise planar loop.
    redundancy : Redundancy
        Redundant rows. This and all following fields are empty if the mechanism does not close.
    motions : Motions
        Locked joints, motions, and their actuation.
    sensors : SensorReport
        The motions that the sensors observe, and the additional sensor that would help most.
    choice : CoordinateChoice
        Which coordinates to use as independent.
    margins : Margins
        The distance from another rank.
    rounding : Rounding
        The rounding of the geometry.
    forces : ActingForces
        Friction in joints, springs, other forces.
    beyond_limits : list of str
        Joints that are outside ``hc.limits_of(mech)`` at q, each in a sentence.

    See Also
    --------
    mobility : returns it.
    results.Motion : one motion.
    results.RowGroup : rows that depend on each other.

    Notes
    -----
    The fields of these values are also properties of the report: ``report.dof`` is
    ``report.counts.dof``; except those of `forces` and `sensors`, and of `rounding` all but the
    tolerances.

    Examples
    --------
    >>> import holoctl as hc
    >>> report = hc.mobility(hc.load(hc.robot_file("five_bar")))
    >>> report.dof, report.actuation, round(report.margins.actuation_margin, 2)
    (2, 'fully', 0.48)
    """

    name: str
    motors: list[str]
    closing: ClosingResult
    counts: Counts
    dimensions: Dimensions
    crossed: list[CrossedAxis]
    redundancy: Redundancy = field(default_factory=Redundancy)
    motions: Motions = field(default_factory=Motions)
    sensors: SensorReport = field(default_factory=SensorReport)
    choice: CoordinateChoice = field(default_factory=CoordinateChoice)
    margins: Margins = field(default_factory=Margins)
    rounding: Rounding = field(default_factory=Rounding)
    forces: ActingForces = field(default_factory=ActingForces)
    beyond_limits: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether it closes, with no axes in opposite directions."""
        return self.closed and not self.opposite

    @property
    def singular(self) -> list[str]:
        """``"bifurcation"``, ``"actuation singularity"``, ``"shaky"``."""
        c, m = self.counts, self.motions
        kinds = {
            "bifurcation": c.active < c.generic_rank or c.crossing,
            "actuation singularity": m.actuation_rank < m.generic_actuation_rank,
            "shaky": c.shaky > 0,
        }
        return [kind for kind, so in kinds.items() if so and self.closed]

    def to_dict(self) -> dict[str, Any]:
        """Everything as lists, texts and numbers, for JSON; infinite numbers become None."""
        return {name: plain(getattr(self, name)) for name in (*NAMES, "ok")}

    def __str__(self) -> str:
        return "\n".join([self.name, "", *map(report_sentences.wrapped, _paragraphs(self))])

    def _repr_html_(self) -> str:
        return html_table(f"Mobility of {self.name!r}", lambda: _parts(self))

    # ------------------------------------------------------------------------------ how it closes

    @property
    def q(self) -> Vector:
        """The configuration (nq,) of the report: closed, or nearest to closing."""
        return self.closing.q

    @property
    def closed(self) -> bool:
        """Whether it closes."""
        return self.closing.closed

    @property
    def error(self) -> float:
        """Largest constraint error there, lengths divided by the size of their loop."""
        return self.closing.error

    @property
    def contradictions(self) -> list[str]:
        """Rows that cannot hold together."""
        return list(self.closing.contradictions)

    @property
    def opposite(self) -> list[str]:
        """Closures that close only with their axes in opposite directions, also those of rounded
        geometry with a contradiction."""
        return list(self.closing.opposite)

    @property
    def far(self) -> list[str]:
        """Coordinates that had to move far from the configuration given to close it."""
        return list(self.closing.far)

    @property
    def message(self) -> str:
        """The message of `assemble` if the mechanism did not close."""
        return self.closing.message

    @property
    def tolerance(self) -> float:
        """The tolerance of the rows if the geometry is rounded; else 0."""
        return self.rounding.tolerance

    @property
    def wanted_tolerance(self) -> float:
        """A tolerance with which it would close at the given configuration and move; 0 for none."""
        return self.rounding.wanted

    # --------------------------------------------------------------------------- counts and ranks

    @property
    def open_dof(self) -> int:
        """Coordinates of the tree."""
        return self.counts.open_dof

    @property
    def rows(self) -> int:
        """Constraint rows."""
        return self.counts.rows

    @property
    def active(self) -> int:
        """Rank of the rows at this configuration."""
        return self.counts.active

    @property
    def dof(self) -> int:
        """The motions that are possible at this instant, ``open_dof - active``."""
        return self.counts.dof

    @property
    def generic_rank(self) -> int:
        """The general rank: at closed configurations nearby, on the path of largest dimension."""
        return self.counts.generic_rank

    @property
    def finite_dof(self) -> int:
        """Finite motions, in general: ``open_dof - generic_rank`` less the shaky ones."""
        return self.counts.finite_dof

    @property
    def gruebler(self) -> int:
        """Gruebler-Kutzbach count, ``open_dof - rows``."""
        return self.counts.gruebler

    @property
    def gruebler_reason(self) -> str:
        """Why `gruebler` differs from `dof`; empty if it does not."""
        return self.counts.reason

    # ------------------------------------------------------------------------------ size and mass

    @property
    def size(self) -> float:
        """The diagonal of the box around the joints and centres of mass of the tree, at the
        reference, m."""
        return self.dimensions.size

    @property
    def loop_sizes(self) -> list[float]:
        """The size of each group of coupled loops, with the frames of closures, m."""
        return list(self.dimensions.loop_sizes)

    @property
    def mass(self) -> float:
        """The mass of all moving bodies, kg."""
        return self.dimensions.mass

    # ---------------------------------------------------------------------------- redundant rows

    @property
    def redundant(self) -> list[str]:
        """Rows that may be left out, all of them together, without a change."""
        return list(self.redundancy.redundant)

    @property
    def latent(self) -> list[str]:
        """Rows without first-order effect that nevertheless constrain a shaky mechanism."""
        return list(self.redundancy.latent)

    @property
    def weak(self) -> list[str]:
        """Nearly redundant rows: less than 1/200 of full strength, here and nearby."""
        return list(self.redundancy.weak)

    @property
    def strength(self) -> float:
        """The smallest active singular value of the scaled rows, in general; inf without rows."""
        return self.redundancy.strength

    @property
    def essential(self) -> list[str]:
        """Rows in no dependency: without any one of them there is, in general, one motion more."""
        return list(self.redundancy.essential)

    @property
    def groups(self) -> list[RowGroup]:
        """Dependent rows: trivial, duplicate, combination."""
        return list(self.redundancy.groups)

    # -------------------------------------------------------------------- motions and actuation

    @property
    def locked_joints(self) -> list[str]:
        """Joints that cannot move."""
        return list(self.motions.locked_joints)

    @property
    def idle(self) -> list[str]:
        """For each idle motion the bodies that make it, joined by " + "."""
        return list(self.motions.idle_names)

    @property
    def idle_motions(self) -> list[Motion]:
        """The idle motions in detail."""
        return list(self.motions.idle)

    @property
    def undriven(self) -> list[Motion]:
        """The other motions that no motor drives, in detail."""
        return list(self.motions.undriven)

    @property
    def actuation(self) -> str:
        """``"none"``, ``"fully"``, ``"under"``, ``"redundantly"`` actuated, or ``"both"``.

        ``"both"``: some motions have no motor, and some motors are redundant. Idle motions need no
        motor. ``"unknown"`` if the mechanism does not close.
        """
        return self.motions.actuation

    @property
    def actuation_rank(self) -> int:
        """Rank of gamma' B at this configuration."""
        return self.motions.actuation_rank

    @property
    def generic_actuation_rank(self) -> int:
        """Rank of gamma' B in general."""
        return self.motions.generic_actuation_rank

    @property
    def coupled_motors(self) -> list[str]:
        """Motors that add no motion: couplings tie their joints to those of other motors."""
        return list(self.motions.coupled)

    # ------------------------------------------------------------------- which coordinates to use

    @property
    def independent(self) -> list[str]:
        """Coordinates to use as independent, motors first."""
        return list(self.choice.independent)

    @property
    def independent_condition(self) -> float:
        """Condition number of the scaled rows by the dependent coordinates."""
        return self.choice.independent_condition

    @property
    def actuated_condition(self) -> float | None:
        """The condition number with the actuated coordinates as independent ones.

        Inf if they do not determine the others; None if there are not as many motors as motions.
        """
        return self.choice.actuated_condition

    @property
    def best_independent(self) -> list[str]:
        """A well-conditioned choice by pivoting, not always the best one."""
        return list(self.choice.best_independent)

    @property
    def best_condition(self) -> float:
        """The condition number of `best_independent`."""
        return self.choice.best_condition

    # ------------------------------------------------------------------ how far from another rank

    @property
    def margin(self) -> float:
        """Smallest active singular value of the scaled rows here; inf if there is none."""
        return self.margins.margin

    @property
    def usual_margin(self) -> float:
        """The largest `margin` of configurations nearby."""
        return self.margins.usual_margin

    @property
    def gap(self) -> float:
        """Ratio of the smallest active singular value to the largest inactive one, or inf."""
        return self.margins.gap

    @property
    def uncertain(self) -> bool:
        """Whether `gap` is so small that the rank is uncertain."""
        return self.margins.uncertain

    @property
    def actuation_margin(self) -> float:
        """The smallest singular value of gamma' B (scaled) within the rank that the motors should
        have; inf without motors."""
        return self.margins.actuation_margin


def _parts(r: MobilityReport) -> Iterator[Cells]:
    """The table of a notebook: the main results, and all sentences in a folded cell."""
    yield "closes", "yes" if r.closed else f"no: an error of {r.error:.2g} (scaled)"
    if r.contradictions:
        yield "contradictions", named(r.contradictions)
    if r.opposite:
        yield "axes in opposite directions", named(r.opposite)
    if r.closed:
        yield "motions", f"{r.dof} of {counted(r.open_dof, 'coordinate')}"
        yield "rows", f"{r.rows} of rank {r.active}"
        yield "redundant", named(r.redundant)
        yield "actuation", _ACTUATION[r.actuation].format(counted(len(r.motors), "motor"))
        yield "independent", named(r.independent)
        for what, names in (("locked", r.locked_joints), ("idle", r.idle), ("", r.singular)):
            if names:
                yield what or "singular", named(names)
    yield "", folded("in sentences", str(r))


_ACTUATION = {
    "none": "none",
    "fully": "{}: fully actuated",
    "under": "{}: underactuated",
    "redundantly": "{}: redundantly actuated",
    "both": "{}: unactuated motions and redundant motors",
    "unknown": "unknown",
}


def _paragraphs(r: MobilityReport) -> Iterator[str]:
    """The paragraphs of the report, in order."""
    if not r.closed:
        yield from report_sentences.does_not_close(r.closing, r.counts)
        yield from report_sentences.wanted(r.rounding)
        yield from report_sentences.crossed(r.crossed)
        yield report_sentences.size(r.dimensions)
        yield from report_sentences.forces(r.forces)
        return
    yield from report_sentences.closes(r.closing, r.counts)
    yield from report_sentences.rounded(r.rounding, r.redundancy, r.counts)
    yield from report_sentences.wanted(r.rounding)
    yield from report_sentences.beyond(r.beyond_limits)
    yield from report_sentences.crossed(r.crossed)
    yield report_sentences.size(r.dimensions)
    yield from report_sentences.mobility(r.counts)
    yield from report_sentences.redundancy(r.redundancy, r.counts)
    yield from report_sentences.joints(r.motions)
    yield from report_sentences.actuation(r.motions, r.counts, r.motors, r.margins.actuation_margin)
    yield from report_sentences.sensors(r.sensors, r.motors, "bifurcation" in r.singular)
    yield from report_sentences.forces(r.forces)
    yield from report_sentences.coordinates(r.choice, r.counts, r.motors)
    yield report_sentences.margins(r.margins)


def plain(x: Any) -> Any:
    """A value for JSON: arrays as lists, and None for numbers that are not finite."""
    if is_dataclass(x) and not isinstance(x, type):
        return plain(asdict(x))
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    if hasattr(x, "tolist"):
        return plain(x.tolist())
    return None if isinstance(x, float) and not abs(x) < float("inf") else x
