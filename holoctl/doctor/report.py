"""The report: numbers and names, and the sentences that explain them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from holoctl.base.checks import Vector, counted
from holoctl.doctor.crossed import CrossedAxis
from holoctl.doctor.motions import Motion
from holoctl.doctor.redundancy import RowGroup

__all__ = ["MobilityReport", "plain"]


@dataclass(frozen=True, eq=False)
class MobilityReport:
    """What `mobility` found. ``str()`` explains it in sentences, `to_dict` is for programs.

    Attributes
    ----------
    name : str
        The mechanism.
    q : (nq,) array
        The configuration that the report is about: closed, or nearest to closing.
    closed : bool
        Whether it closes.
    error : float
        Largest constraint error there, lengths divided by the size of their loop.
    open_dof, rows, active, dof : int
        Coordinates of the tree; constraint rows; their rank at this configuration; and
        ``open_dof - active``, the motions that are possible at this instant.
    generic_rank : int
        Rank in general: the largest one over closed configurations nearby.
    finite_dof : int
        Motions that go on, in general: ``open_dof - generic_rank`` less the shaky ones.
    gruebler : int
        Gruebler-Kutzbach count, ``open_dof - rows``.
    gruebler_reason : str
        Why it differs from `dof`; empty where it does not.
    redundant : list of str
        Rows that may be left out, all of them together, without a change.
    latent : list of str
        Rows without effect on velocities that nevertheless hold a shaky mechanism.
    weak : list of str
        Rows that are nearly redundant: they act with less than 1/200 of full strength, here and
        nearby.
    essential : list of str
        Rows that nothing repeats: without any one of them there is, in general, one motion more.
    groups : list of RowGroup
        Dependent rows: trivial, duplicate, combination.
    locked_joints : list of str
        Joints that cannot move.
    idle : list of str
        For each idle motion the bodies that make it, joined by " + ".
    idle_motions, undriven : list of Motion
        The idle motions, and the other motions that no motor drives, in detail.
    independent : list of str
        Coordinates to use as independent, motors first.
    independent_condition : float
        Condition number of the rows on the others (scaled).
    actuated_condition : float or None
        The same with the actuated coordinates as independent ones; inf where they do not
        determine the others; None where there are not as many motors as motions.
    best_independent, best_condition
        A well conditioned choice, by pivoting: not always the very best.
    actuation : str
        ``"none"``, ``"fully"``, ``"under"``, ``"redundantly"`` actuated, or ``"both"``: some
        motions without motor, some motors too many. Idle motions need none. ``"unknown"``
        where it does not close.
    motors, actuation_rank, generic_actuation_rank : int
        Motors; rank of gamma' B at this configuration, and in general.
    margin, usual_margin : float
        Smallest singular value of the scaled rows that counts: here, and the largest such at
        configurations nearby. Inf where there is none.
    gap : float
        Ratio of the smallest singular value that counts to the largest that does not. Inf where
        there is none.
    uncertain : bool
        Whether that gap is so small that the rank is a matter of opinion.
    actuation_margin : float
        Smallest singular value of gamma' B (scaled) that should count. Inf without motors.
    singular : list of str
        ``"bifurcation"``, ``"actuation singularity"``, ``"shaky"``.
    contradictions : list of str
        Rows that cannot hold together.
    opposite : list of str
        Closures that close only with their axes in opposite directions.
    crossed : list of CrossedAxis
        Closures that turn about another axis than the hinges of their otherwise planar loop.
    size : float
        Of the tree, m: diagonal of the box around its joints and centres of mass, at the reference.
    loop_sizes : list of float
        The same for each group of coupled loops, with the frames of closures.
    mass : float
        Of all that moves, kg.
    far : list of str
        Coordinates that had to move far from the configuration given to close it.
    message : str
        What assembly said, where the mechanism did not close.
    """

    name: str
    q: Vector
    closed: bool
    error: float
    open_dof: int
    rows: int
    active: int
    dof: int
    generic_rank: int
    finite_dof: int
    gruebler: int
    gruebler_reason: str
    redundant: list[str]
    latent: list[str]
    weak: list[str]
    essential: list[str]
    groups: list[RowGroup]
    locked_joints: list[str]
    idle: list[str]
    idle_motions: list[Motion]
    undriven: list[Motion]
    independent: list[str]
    independent_condition: float
    actuated_condition: float | None
    best_independent: list[str]
    best_condition: float
    actuation: str
    motors: list[str]
    actuation_rank: int
    generic_actuation_rank: int
    margin: float
    usual_margin: float
    gap: float
    uncertain: bool
    actuation_margin: float
    singular: list[str]
    contradictions: list[str]
    opposite: list[str]
    crossed: list[CrossedAxis]
    size: float
    loop_sizes: list[float]
    mass: float
    far: list[str]
    message: str

    @property
    def ok(self) -> bool:
        """Whether it closes, with its axes the right way round."""
        return self.closed and not self.opposite

    def to_dict(self) -> dict[str, Any]:
        """Everything as lists, texts and numbers, for JSON; infinite numbers become None."""
        found: dict[str, Any] = plain(asdict(self))
        found["ok"] = self.ok
        return found

    def __str__(self) -> str:
        return "\n".join([self.name, "", *map(_wrapped, _paragraphs(self))])


def plain(x: Any) -> Any:
    """For JSON: arrays as lists, and None for numbers that are not finite."""
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    if hasattr(x, "tolist"):
        return plain(x.tolist())
    return None if isinstance(x, float) and not abs(x) < float("inf") else x


# ------------------------------------------------------------------------------- sentences


def _wrapped(paragraph: str) -> str:
    indent = "    " if paragraph.startswith("  - ") else "  "
    return textwrap.fill(
        paragraph, 88, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _paragraphs(r: MobilityReport) -> Iterator[str]:
    if not r.closed:
        yield from _does_not_close(r)
        yield from _crossed(r)
        yield _size(r)
        return
    yield from _closes(r)
    yield from _crossed(r)
    yield _size(r)
    yield from _mobility(r)
    yield from _redundancy(r)
    yield from _joints(r)
    yield from _actuation(r)
    yield from _coordinates(r)
    yield _margins(r)


def _does_not_close(r: MobilityReport) -> Iterator[str]:
    if r.contradictions:
        one = len(r.contradictions) == 1
        rows = _names(r.contradictions)
        what = f"{rows} cannot be met" if one else f"{rows} pull against each other"
        yield (
            f"Contradiction: the mechanism cannot be closed, not near the configuration given nor "
            f"from starts around it: {what}. At best the error is {r.error:.2g} (lengths in units "
            "of the size of their loop, angles in rad), and no small motion makes it less."
        )
        yield (
            "Likely causes: a bar too long or too short, a frame in the wrong place, a joint "
            "whose axis points elsewhere, or couplings that demand different things."
        )
    else:
        yield f"Not closed: {r.message}"
        yield "It is not proved that it cannot close: give a configuration nearer to a closed one."
    yield (
        f"Counted: {counted(r.open_dof, 'degree')} of freedom in the open tree, "
        f"{counted(r.rows, 'constraint row')}."
    )


def _closes(r: MobilityReport) -> Iterator[str]:
    if r.opposite:
        yield (
            f"Frames the wrong way round: it closes only with the axes of {_names(r.opposite)} in "
            "opposite directions. Turn one of the two frames by half a turn about an axis across "
            "it. What follows is about the closed configuration with opposite axes."
        )
    if r.rows:
        yield f"It closes: the largest error is {r.error:.0e} of the size of its loop."
        if r.far:
            yield (
                f"That is far from the configuration given: {_names(r.far)} had to move a long "
                "way. Is it the posture that was meant, and are its axes the right way round?"
            )
    else:
        yield "It has no constraints: an open tree."


def _crossed(r: MobilityReport) -> Iterator[str]:
    for c in r.crossed:
        text = (
            f"Crossed axis: the hinges of the loop of '{c.closure}' are parallel to {c.hinges} of "
            f"its frames, the closure turns about {c.turns}. If it is to turn as they do, turn "
            f"both frames until {c.turns} is along the hinges"
        )
        yield text + (f', or give axes "{c.axes}".' if c.axes else ".")


def _size(r: MobilityReport) -> str:
    sizes = r.loop_sizes or [r.size]
    least, most = f"{min(sizes):.3g} m", f"{max(sizes):.3g} m"
    what = "it measures"
    if r.loop_sizes:
        several = "the groups of coupled loops measure"
        what = "its loops measure" if len(sizes) == 1 else several
    span = least if least == most else f"{least} to {most}"
    text = f"Size: {what} {span}, and all that moves weighs {r.mass:.3g} kg."
    if max(r.size, *sizes) > _LARGE:
        text += " Lengths are in metres: is it drawn in millimetres?"
    return text


_LARGE = 20.0  # m: larger than robots are, and than a hand is in millimetres


def _mobility(r: MobilityReport) -> Iterator[str]:
    head = {0: "It cannot move.", 1: "It has one motion."}.get(
        r.finite_dof, f"It has {r.finite_dof} independent motions."
    )
    text = f"Mobility: {head} The open tree has {counted(r.open_dof, 'degree')} of freedom"
    if r.rows:
        act = "acts" if r.generic_rank == 1 else "act"
        text += f"; of {counted(r.rows, 'constraint row')} {r.generic_rank} {act} in general"
        text += f", which leaves {r.open_dof - r.generic_rank}"
    yield text + "."
    if r.finite_dof == 0 and "shaky" not in r.singular:
        yield "It is rigid: a locked structure, not a mechanism."
    if "shaky" in r.singular:
        shaky = r.open_dof - r.generic_rank - r.finite_dof
        what = "is shaky and" if r.finite_dof == 0 else "also"
        yield (
            f"Shaky: it {what} gives way in {counted(shaky, 'direction')} that the constraints do "
            "not resist to first order, yet cannot move on: a chain of bars stretched flat, or a "
            "plane framework whose bars meet in a point. Forces there are very large, and no "
            "torque can be computed from them. Change the dimensions."
            + (" For finite motions it is rigid." if r.finite_dof == 0 else "")
        )
    if "bifurcation" in r.singular:
        extra = counted(r.generic_rank - r.active, "row loses", "rows lose")
        yield (
            f"Bifurcation: here {extra} effect, which nearby configurations do not share: the "
            f"rank is {r.active} here and {r.generic_rank} nearby. Paths of the mechanism cross or "
            "end here, and torques do not decide which one it takes. Keep away from it, or add a "
            "constraint that leaves one path."
        )
    if r.gruebler == r.dof:
        if r.rows:
            yield f"Counting joints and rows (Gruebler-Kutzbach) gives {r.gruebler} as well."
    else:
        yield (
            f"Counting joints and rows (Gruebler-Kutzbach) gives {r.open_dof} - {r.rows} = "
            f"{r.gruebler}, not {r.dof}: {r.gruebler_reason}."
        )


def _redundancy(r: MobilityReport) -> Iterator[str]:
    if not r.rows:
        return
    if not r.redundant:
        all_act = r.rows == r.active
        yield f"Redundant rows: none{'; every row takes a motion away' if all_act else ''}."
    else:
        yield (
            f"Redundant rows: {len(r.redundant)} of {r.rows} may be left out without a change of "
            "the motion. Forces along them depend on how stiff the parts are, not on the motion."
        )
        by_themselves = [row for g in r.groups if g.kind == "trivial" for row in g.redundant]
        if by_themselves:
            yield f"  - {_trivial(by_themselves)}"
        for group in r.groups:
            if group.kind != "trivial":
                yield f"  - {_group(group)}"
    if r.weak:
        yield (
            f"Nearly redundant: {_names(r.weak)} act in part with only {r.margin:.1g} of full "
            "strength. Often dimensions are a little off what was meant, such as axes that should "
            "be parallel and were rounded in a file. With them exact there may be more motions, "
            "and joints that are locked now may move."
        )
    if r.latent:
        yield (
            f"Not redundant, though without first-order effect here: {_names(r.latent)}; without "
            "them the mechanism would move."
        )


def _trivial(rows: Sequence[str]) -> str:
    means = [f"'{row}' ({_meaning(row)})" for row in rows]
    verb = "holds by itself" if len(rows) == 1 else "hold by themselves"
    return f"{_joined(means)} {verb}."


def _group(g: RowGroup) -> str:
    rows, among, one = _names(g.redundant), _names(g.among), len(g.redundant) == 1
    if g.kind == "duplicate":
        return f"{rows} {'repeats' if one else 'repeat'} {among}."
    return f"{rows} {'follows' if one else 'follow'} from {among} together."


_MEANINGS = {
    **{axis: f"no displacement along {axis}" for axis in "xyz"},
    **{f"r{axis}": f"no tilt about {axis}" for axis in "xyz"},
    "sum": "the sum of a coupling",
    "length": "the length of a rod",
    "normal": "no motion along the normal",
    "tangent1": "no slip",
    "tangent2": "no slip",
}


def _meaning(row: str) -> str:
    return _MEANINGS.get(row.rsplit(".", 1)[-1], "always satisfied")


def _joints(r: MobilityReport) -> Iterator[str]:
    if r.locked_joints:
        many = len(r.locked_joints) > 1
        yield (
            f"Locked joints: {_names(r.locked_joints)} cannot move; "
            f"{'they' if many else 'it'} might as well be fixed."
        )
    if r.idle:
        many = len(r.idle) > 1
        loaded = _loaded(r.idle_motions, [f"'{name}'" for name in r.idle])
        yield (
            f"Idle: {'the motions' if many else 'the motion'} of {_names(r.idle)} "
            f"{'move' if many else 'moves'} no other body, as the spin of a rod between two ball "
            f"joints.{loaded}"
        )


def _loaded(motions: Sequence[Motion], names: Sequence[str]) -> str:
    """Which of these motions gravity drives."""
    loaded = [name for motion, name in zip(motions, names, strict=True) if motion.loaded]
    if not loaded:
        return ""
    them = "it" if len(loaded) == 1 else "them"
    return f" Gravity works on {_joined(loaded)} here: no motor can hold {them} at rest."


def _actuation(r: MobilityReport) -> Iterator[str]:
    if r.actuation == "none":
        yield "Motors: none."
        return
    yield f"Motors: {_verdict(r)}."
    single = [m.rates[0][0] for m in r.undriven if len(m.rates) == 1]
    if single:
        yield f"  - No motor moves {_names(single)}."
    for motion in r.undriven:
        if len(motion.rates) > 1:
            yield f"  - No motor drives {_motion(motion)}."
    loaded = _loaded(r.undriven, [f"that of '{m.rates[0][0]}'" for m in r.undriven])
    if loaded:
        yield f"  -{loaded}"
    if "actuation singularity" in r.singular:
        yield (
            "Actuation singularity: this is a dead point. Motors that drive "
            f"{counted(r.generic_actuation_rank, 'motion')} in general drive {r.actuation_rank} "
            "here; no motor torque has an effect along the rest, and nearby a load would take a "
            "torque without bound."
        )
    elif r.actuation_margin < 0.02:
        yield (
            f"Close to a dead point: the weakest grip of the motors is {r.actuation_margin:.1g} "
            "(1 is strong), so some torques are very large."
        )


def _verdict(r: MobilityReport) -> str:
    n, driven, idle = len(r.motors), r.generic_actuation_rank, len(r.idle)
    k = r.finite_dof - idle
    counts = f"{counted(n, 'motor')} for {counted(k, 'motion')}"
    counts += f" (and {idle} idle)" if idle else ""
    if k == 0:
        return f"{n}, and nothing that they could move"
    if r.actuation == "fully":
        return f"fully actuated{' but for idle motions' if idle else ''}; {counts}"
    if r.actuation == "under":
        return f"under-actuated; {counts}, so {k - driven} {_missing(k - driven)} missing"
    if r.actuation == "redundantly":
        spare = n - driven
        return f"redundantly actuated; {counts}, so {spare} can only work against the others"
    return f"{counts}; together they drive {driven}, so there are both too many and too few"


def _missing(n: int) -> str:
    return "is" if n == 1 else "are"


def _motion(motion: Motion) -> str:
    name, *others = [name for name, _ in motion.rates]
    shown = [f"'{other}'" for other in others[:3]]
    if len(others) > 3:
        shown.append(counted(len(others) - 3, "other"))
    return f"the motion of '{name}', with {_joined(shown)}"


def _coordinates(r: MobilityReport) -> Iterator[str]:
    if not r.rows or not r.independent:
        return
    if r.actuated_condition is None:
        text = f"Independent coordinates: {_names(r.independent)}"
        text += ", motors first" if set(r.motors) & set(r.independent) else ""
        text += f" (condition number {_number(r.independent_condition)})"
    elif r.actuated_condition < float("inf"):
        verb = "determines" if len(r.motors) == 1 else "determine"
        text = f"Independent coordinates: {_names(r.motors)}, which the motors move, {verb} all "
        text += f"others with condition number {_number(r.actuated_condition)}"
    else:
        text = f"Independent coordinates: not {_names(r.motors)}, which the motors move and which "
        text += f"do not determine the others, but {_names(r.independent)} (condition number "
        text += f"{_number(r.independent_condition)})"
    told = r.actuated_condition
    if told is None or told == float("inf"):
        told = r.independent_condition
    if told < 100.0 or r.best_condition > told / 3.0:
        yield text + "."
    else:
        best = f"{_names(r.best_independent)} ({_number(r.best_condition)})"
        yield f"{text}; a better choice is {best}."


def _margins(r: MobilityReport) -> str:
    parts = []
    if r.margin < float("inf"):
        text = f"the weakest active row combination has size {r.margin:.2g} (1 is strong)"
        if r.gap < float("inf"):
            text += f", the strongest that does not count is {r.gap:.0e} times weaker"
        parts.append(text)
    if r.actuation_margin < float("inf"):
        parts.append(f"the weakest grip of the motors is {r.actuation_margin:.2g}")
    text = "Margins: " + "; ".join(parts) + "." if parts else "Margins: nothing to measure."
    if r.margin < min(0.02, 0.3 * r.usual_margin):
        text += f" This is close to a singular configuration: nearby it is {r.usual_margin:.2g}."
    if r.uncertain:
        text += " The rank is uncertain: that gap is small; close the mechanism more exactly."
    return text


def _names(names: Sequence[str]) -> str:
    """Names in a sentence."""
    return _joined([f"'{n}'" for n in names])


def _joined(parts: Sequence[str]) -> str:
    """a, b and c; the first twelve."""
    shown = list(parts[:12])
    if len(parts) > len(shown):
        shown.append(f"{len(parts) - len(shown)} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _number(x: float) -> str:
    """Two digits, and no exponent for hundreds."""
    return f"{x:.2g}" if x < 100.0 or x >= 1e5 else f"{x:.0f}"
