"""The sentences of a report: what each finding means, and what to do about it.

One function for each finding; each yields paragraphs. A paragraph states the verdict first, then
the reason.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from holoctl.base.checks import counted
from holoctl.base.tolerances import CLOSED_ALREADY, GAIN_LIMIT
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

__all__ = [
    "actuation",
    "closes",
    "coordinates",
    "crossed",
    "does_not_close",
    "forces",
    "joints",
    "margins",
    "mobility",
    "named",
    "redundancy",
    "rounded",
    "sensors",
    "size",
    "verb",
    "wanted",
    "wrapped",
]


INF = float("inf")


def wrapped(paragraph: str) -> str:
    """A paragraph in lines of 88 characters, items indented."""
    indent = "    " if paragraph.startswith("  - ") else "  "
    return textwrap.fill(
        paragraph, 88, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def does_not_close(found: ClosingResult, c: Counts) -> Iterator[str]:
    """Why the mechanism does not close, as far as it is known."""
    if found.contradictions:
        word = verb(found.contradictions, "cannot be met", "pull against each other")
        yield (
            f"Contradiction: the mechanism cannot be closed, not near the configuration given nor "
            f"from starts around it: {_rows(found.contradictions)} {word}. At best the error is "
            f"{found.error:.2g} (lengths in units of the size of their loop, angles in rad), and "
            "no small motion makes it less."
        )
        yield (
            "Likely causes: a bar too long or too short, a frame in the wrong place, a joint "
            "whose axis points elsewhere, or couplings that demand different things."
        )
    else:
        yield f"Not closed: {found.message}"
        yield "It is not proved that it cannot close: give a configuration nearer to a closed one."
    yield (
        f"Counted: {counted(c.open_dof, 'degree')} of freedom in the open tree, "
        f"{counted(c.rows, 'constraint row')}."
    )


def closes(found: ClosingResult, c: Counts) -> Iterator[str]:
    """How accurately the mechanism closes, and how far from the given configuration."""
    if found.opposite:
        yield (
            f"Frames the wrong way round: it closes only with the axes of {named(found.opposite)} "
            "in opposite directions. Turn one of the two frames by half a turn about an axis "
            "across it. What follows is about the closed configuration with opposite axes."
        )
    if c.rows:
        yield f"It closes: the largest error is {found.error:.0e} of the size of its loop."
        if found.far:
            yield (
                f"That is far from the configuration given: {named(found.far)} had to move a long "
                "way. Is it the posture that was meant, and are its axes the right way round?"
            )
    else:
        yield "It has no constraints: an open tree."


def rounded(g: Rounding, r: Redundancy, c: Counts) -> Iterator[str]:
    """Rows that repeat others within the tolerance of the geometry."""
    if not g.tolerance:
        return
    text = f"Rounded: not all rows can be met together, but all are to {g.off:.0e}. "
    if g.off < CLOSED_ALREADY:
        text = "Rounded: all rows are met here, but some hardly act. "
    if r.redundant:
        repeat = verb(r.redundant, "repeats", "repeat")
        text += (
            f"It looks like rounding: {_rows(r.redundant)} {repeat} others to "
            f"{max(g.repeats, g.off):.0e}, within the tolerance of {g.tolerance:g}, and "
            f"{verb(r.redundant)} left out; the mechanism then has "
            f"{counted(c.finite_dof, 'motion')}."
        )
    yield text.rstrip()
    if g.off < CLOSED_ALREADY:
        yield (
            f"If a row is meant that acts with less than {g.tolerance:g} of full strength, give a "
            "smaller tolerance."
        )
        return
    yield (
        "To mend it, give axes and points with more digits, or let hc.repaired_geometry move them "
        "by the least amount that makes these rows consistent."
    )


def wanted(g: Rounding) -> Iterator[str]:
    """The tolerance that would make the mechanism move."""
    if g.wanted:
        met = "are met" if g.off < CLOSED_ALREADY else f"can be met to {g.off:.0e}"
        yield (
            f"Rounded? Near the configuration given all rows {met}, and some "
            f"repeat others to {g.repeats:.0e}. If that is rounding, say so: with tolerance="
            f"{g.wanted:g} (of hc.load, hc.Mechanism, or the YAML file) it closes there and has "
            f"{counted(g.motions, 'motion')}."
        )


def crossed(axes: Sequence[CrossedAxis]) -> Iterator[str]:
    """Closures whose axis is across the hinges of their loop."""
    for c in axes:
        text = (
            f"Crossed axis: the hinges of the loop of '{c.closure}' are parallel to {c.hinges} of "
            f"its frames, the closure turns about {c.turns}. If it is to turn as they do, turn "
            f"both frames until {c.turns} is along the hinges"
        )
        yield text + (f', or give axes "{c.axes}".' if c.axes else ".")


def size(d: Dimensions) -> str:
    """Size and mass, and whether their units look wrong."""
    sizes = d.loop_sizes or (d.size,)
    least, most = f"{min(sizes):.3g} m", f"{max(sizes):.3g} m"
    several = verb(sizes, "its loops measure", "the groups of coupled loops measure")
    what = several if d.loop_sizes else "it measures"
    span = least if least == most else f"{least} to {most}"
    text = f"Size: {what} {span}, and all that moves weighs {d.mass:.3g} kg."
    if max(d.size, *sizes) > _LARGE:
        text += " Lengths are in metres: is it drawn in millimetres?"
    elif d.width > _WIDE * max(d.size, *sizes) > 0.0:
        text += (
            f" The body on {d.widest!r} has the inertia of a ring {d.width:.2g} m wide: are "
            "moments of inertia in kg m^2, and about the centre of mass?"
        )
    return text


_LARGE = 20.0  # m: larger than robots are, and than a hand is in millimetres
_WIDE = 3.0  # of the size of the mechanism: wider bodies are rare in robots, usual in wrong units


def mobility(c: Counts) -> Iterator[str]:
    """The number of motions, and whether the configuration is singular."""
    head = {0: "It cannot move.", 1: "It has one motion."}.get(
        c.finite_dof, f"It has {c.finite_dof} independent motions."
    )
    text = f"Mobility: {head} The open tree has {counted(c.open_dof, 'degree')} of freedom"
    if c.rows:
        act = verb(c.generic_rank, "acts", "act")
        text += f"; of {counted(c.rows, 'constraint row')} {c.generic_rank} {act} in general"
        text += f", which leaves {c.open_dof - c.generic_rank}"
    yield text + "."
    if c.finite_dof == 0 and not c.shaky:
        yield "It is rigid: a locked structure, not a mechanism."
    if c.shaky:
        also = "also " if c.finite_dof else ""
        yield (
            f"Shaky: it is {also}shaky, infinitesimally mobile in "
            f"{counted(c.shaky, 'direction')}, which the constraints do not resist to first order, "
            "yet cannot move on: a chain of bars stretched flat, or a plane framework whose bars "
            "meet in a point. Forces there are very large, and no torque can be computed from "
            "them. Change the dimensions."
            + ("" if c.finite_dof else " For finite motions it is rigid.")
        )
    if c.active < c.generic_rank:
        extra = counted(c.generic_rank - c.active, "row loses", "rows lose")
        yield (
            f"Bifurcation: here {extra} effect, which nearby configurations do not share: the "
            f"rank is {c.active} here and {c.generic_rank} nearby. Paths of the mechanism cross or "
            f"end here, and torques do not decide which one it takes. {_KEEP_AWAY}"
        )
    elif c.crossing:
        yield (
            f"Bifurcation: paths of the mechanism cross here. Each of {c.dof} motions may start, "
            f"but no more than {c.finite_dof} go on together; torques do not decide which. "
            f"{_KEEP_AWAY}"
        )
    if c.gruebler == c.dof:
        if c.rows:
            yield f"Counting joints and rows (Gruebler-Kutzbach) gives {c.gruebler} as well."
    else:
        yield (
            f"Counting joints and rows (Gruebler-Kutzbach) gives {c.open_dof} - {c.rows} = "
            f"{c.gruebler}, not {c.dof}: {c.reason}."
        )


_KEEP_AWAY = "Keep away from it, or add a constraint that leaves one path."


def redundancy(r: Redundancy, c: Counts) -> Iterator[str]:
    """Redundant, weak and latent rows."""
    if not c.rows:
        return
    if not r.redundant:
        all_act = c.rows == c.active
        yield f"Redundant rows: none{'; every row takes a motion away' if all_act else ''}."
    else:
        yield (
            f"Redundant rows: {len(r.redundant)} of {c.rows} may be left out without a change of "
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
            f"Nearly redundant: {_rows(r.weak)} act in part with only {r.strength:.1g} of full "
            "strength. Often dimensions are a little off what was meant, such as axes that should "
            "be parallel and were rounded in a file. With them exact there may be more motions, "
            "and joints that are locked now may move."
        )
    if r.latent:
        yield (
            f"Not redundant, though without first-order effect here: {_rows(r.latent)}; without "
            f"{verb(r.latent, 'it', 'them')} the mechanism would move."
        )


def _trivial(rows: Sequence[str]) -> str:
    means = []
    for said, group in _row_groups(rows):
        of = [_MEANINGS.get(row.rsplit(".", 1)[-1], "always satisfied") for row in group]
        means.append(f"{said} ({_joined(list(dict.fromkeys(of)))})")
    return f"{_joined(means)} {verb(rows, 'holds by itself', 'hold by themselves')}."


def _group(g: RowGroup) -> str:
    rows, among = _rows(g.redundant), _rows(g.among)
    if g.kind == "duplicate":
        return f"{rows} {verb(g.redundant, 'repeats', 'repeat')} {among}."
    return f"{rows} {verb(g.redundant, 'follows', 'follow')} from {among} together."


_MEANINGS = {
    **{axis: f"no displacement along {axis}" for axis in "xyz"},
    **{f"r{axis}": f"no tilt about {axis}" for axis in "xyz"},
    "sum": "the sum of a coupling",
    "length": "the length of a rod",
    "normal": "no motion along the normal",
    "tangent1": "no slip",
    "tangent2": "no slip",
}


def joints(m: Motions) -> Iterator[str]:
    """Locked joints and idle motions."""
    if m.locked_joints:
        yield (
            f"Locked joints: {named(m.locked_joints)} cannot move; "
            f"{verb(m.locked_joints, 'it', 'they')} might as well be fixed."
        )
    if m.idle:
        loaded = _loaded(m.idle, [f"'{name}'" for name in m.idle_names])
        yield (
            f"Idle: {verb(m.idle, 'the motion', 'the motions')} of {named(m.idle_names)} "
            f"{verb(m.idle, 'moves', 'move')} no other body, as the spin of a rod between two "
            f"ball joints.{loaded}"
        )


def _loaded(motions: Sequence[Motion], names: Sequence[str]) -> str:
    """The sentence on the motions that gravity loads."""
    loaded = [name for motion, name in zip(motions, names, strict=True) if motion.loaded]
    if not loaded:
        return ""
    them = verb(loaded, "it", "them")
    return f" Gravity works on {_joined(loaded)} here: no motor can hold {them} at rest."


def actuation(m: Motions, c: Counts, motors: Sequence[str], margin: float) -> Iterator[str]:
    """The actuation of the motions."""
    if m.actuation == "none":
        yield "Motors: none."
        return
    yield f"Motors: {_verdict(m, c, len(motors))}."
    if m.coupled:
        yield (
            f"  - {named(m.coupled)} {verb(m.coupled, 'adds', 'add')} no motion: "
            "couplings tie what it drives to what other motors drive, as where a joint that mimics "
            "another one has a motor too. Leave it out of the motors, unless it is meant."
        )
    single = [x.rates[0][0] for x in m.undriven if len(x.rates) == 1]
    if single:
        yield f"  - No motor moves {named(single)}."
    for motion in m.undriven:
        if len(motion.rates) > 1:
            yield f"  - No motor drives {_motion(motion)}."
    loaded = _loaded(m.undriven, [f"that of '{x.rates[0][0]}'" for x in m.undriven])
    if loaded:
        yield f"  -{loaded}"
    if m.actuation_rank < m.generic_actuation_rank:
        yield (
            "Actuation singularity: this is a dead point, a type-2 (parallel) singularity. Motors "
            f"that drive {counted(m.generic_actuation_rank, 'motion')} in general drive "
            f"{m.actuation_rank} here; no motor torque has an effect along the rest, and nearby a "
            "load would take a torque without bound."
        )
    elif margin < 0.02:
        yield (
            "Close to a dead point, a type-2 (parallel) singularity: the smallest singular value "
            f"of gamma' B is {margin:.1g} (1 is strong), so some torques are very large."
        )


def beyond(limits: Sequence[str]) -> Iterator[str]:
    """Joints that are outside their limits."""
    if limits:
        yield f"Outside the limits of its joints: {'; '.join(limits)}."


def _verdict(m: Motions, c: Counts, n: int) -> str:
    driven, idle = m.generic_actuation_rank, len(m.idle)
    k = c.finite_dof - idle
    counts = f"{counted(n, 'motor')} for {counted(k, 'motion')}"
    counts += f" (and {idle} idle)" if idle else ""
    if k == 0:
        return f"{n}, and nothing that they could move"
    if m.actuation == "fully":
        return f"fully actuated{' but for idle motions' if idle else ''}; {counts}"
    if m.actuation == "under":
        return f"under-actuated; {counts}, so {k - driven} {verb(k - driven)} missing"
    if m.actuation == "redundantly":
        spare = n - driven
        return f"redundantly actuated; {counts}, so {spare} can only work against the others"
    return f"{counts}; together they drive {driven}, so there are both too many and too few"


def _motion(motion: Motion) -> str:
    name, *others = [name for name, _ in motion.rates]
    return f"the motion of '{name}'" + (f", with {named(others, 3, 'other')}" if others else "")


def sensors(s: SensorReport, motors: Sequence[str], bifurcation: bool) -> Iterator[str]:
    """The motions that the sensors observe, and the additional sensor that would help most."""
    count = s.seen + len(s.unseen)
    if not count:
        return
    more = _with_more(s.more)
    rest = s.measured[: len(s.measured) - len(motors)]
    own = [*rest, *motors] == list(s.measured) and len(rest) <= 1 <= len(motors)
    who = named(s.measured)
    if own:
        driven = verb(motors, "the motor", "the motors")
        who = _joined([*(f"'{name}'" for name in rest), driven])
    they = verb(s.measured, "it sees", "they see")
    idle = f" ({s.idle} more {verb(s.idle)} idle)" if s.idle else ""
    if s.unseen:
        yield (
            f"Sensors: {who} {verb(s.measured, 'does', 'do')} not suffice; {they} {s.seen} of "
            f"{counted(count, 'motion')}{idle}, not {_unseen(s.unseen, own)}."
        )
        if s.more:
            gain = f", at a noise gain of {_gain(s.more_gain, s.more_nearby_gain)}"
            yield f"  - All are seen {more}{gain if s.more_nearby_gain < INF else ''}."
        else:
            yield "  - Joints of one coordinate do not show all of that: measure others whole."
        return
    seen = {1: "the one motion", 2: "both motions"}.get(count, f"all {count} motions")
    yield f"Sensors: {who} {verb(s.measured, 'suffices', 'suffice')}; {they} {seen}{idle}."
    then = _gain(s.more_gain, s.more_nearby_gain)
    if s.gain == INF and not bifurcation:
        one = "the sensor: it does not determine"
        them = verb(s.measured, one, "the sensors: they do not determine")
        text = f"  - This is a dead point of {them} the direction of motion"
        yield f"{text}; {more} they do, at a noise gain of {then}." if s.more else f"{text}."
        return
    text = f"  - Noise gain of the worst coordinate: {_gain(s.gain, s.nearby_gain)}; "
    text += f"{then} {more}, which helps most." if s.more else "no sensor lowers it by a tenth."
    if GAIN_LIMIT < s.gain < INF:
        text += (
            f" hc.ClosedStateEstimator refuses more than {GAIN_LIMIT:g}: it is nearly a dead point."
        )
    yield text


def _with_more(names: Sequence[str]) -> str:
    if not names:
        return ""
    return f"with {named(names)} as {counted(len(names), 'more sensor')}".replace(" 1 ", " one ")


def _unseen(motions: Sequence[Motion], brief: bool) -> str:
    """Motions by their own coordinates; a single motion also by its others, unless `brief`."""
    if len(motions) == 1:
        return f"that of '{motions[0].rates[0][0]}'" if brief else _motion(motions[0])
    return f"those of {named([motion.rates[0][0] for motion in motions])}"


def _gain(here: float, nearby: float) -> str:
    """A noise gain, and the largest nearby if that is more than twice as large."""
    if here == INF:
        return f"{_number(nearby)} nearby"
    far = nearby > 2.0 * here
    return f"{_number(here)}{f' ({_number(nearby)} nearby)' if far and nearby < INF else ''}"


def forces(f: ActingForces) -> Iterator[str]:
    """Friction, springs and other forces, if there are any."""
    kinds = {"viscous": f.viscous, "Coulomb": f.coulomb}
    found = [f"{kind} in {_share(names, f.joints)}" for kind, names in kinds.items() if names]
    if found:
        yield f"Friction: {', '.join(found)}."
    elif f.springs or f.others:
        yield "Friction: none in joints."
    if f.smooth:
        yield (
            f"  - None in {_share(f.smooth, f.joints)}, without a motor, while joints with one "
            "have some: is it missing?"
        )
    if f.springs:
        yield f"Springs: {named(f.springs)}."
    if f.others:
        yield f"Other forces: {named(f.others)}."


def _share(names: Sequence[str], all_joints: int) -> str:
    """Joints by name if they are few, and their number of all joints."""
    if len(names) == all_joints > 1:
        return f"all {all_joints} joints"
    share = f"{len(names)} of {counted(all_joints, 'joint')}"
    return share if len(names) > _FEW else f"{named(names)} ({share})"


_FEW = 4


def coordinates(chosen: CoordinateChoice, c: Counts, motors: Sequence[str]) -> Iterator[str]:
    """Which coordinates to use as independent."""
    if not c.rows or not chosen.independent:
        return
    names, condition = named(chosen.independent), chosen.independent_condition
    if chosen.actuated_condition is None:
        first = ", motors first" if set(motors) & set(chosen.independent) else ""
        text = f"{names}{first} (condition number {_number(condition)})"
    elif chosen.actuated_condition < INF:
        condition, word = chosen.actuated_condition, verb(motors, "determines", "determine")
        text = f"{named(motors)}, which the motors move, {word} all others with condition number "
        text += _number(condition)
    else:
        text = f"not {named(motors)}, which the motors move and which do not determine the others, "
        text += f"but {names} (condition number {_number(condition)})"
    if condition >= 100.0 and chosen.best_condition <= condition / 3.0:
        best = f"{named(chosen.best_independent)} ({_number(chosen.best_condition)})"
        text += f"; a better choice is {best}"
    yield f"Independent coordinates: {text}."


def margins(g: Margins) -> str:
    """The distance from another rank."""
    parts = []
    if g.margin < INF:
        text = f"the weakest active row combination has size {g.margin:.2g} (1 is strong)"
        if g.gap < INF:
            text += f", the strongest that does not count is {g.gap:.0e} times weaker"
        parts.append(text)
    if g.actuation_margin < INF:
        parts.append(f"the smallest singular value of gamma' B is {g.actuation_margin:.2g}")
    text = "Margins: " + "; ".join(parts) + "." if parts else "Margins: nothing to measure."
    if g.margin < min(0.02, 0.3 * g.usual_margin):
        text += f" This is close to a singular configuration: nearby it is {g.usual_margin:.2g}."
    if g.uncertain:
        text += " The rank is uncertain: that gap is small; close the mechanism more exactly."
    return text


def _rows(names: Sequence[str]) -> str:
    """Names of rows in a sentence: of many, those with the same labels together."""
    return _joined([said for said, _ in _row_groups(names)])


def _row_groups(names: Sequence[str]) -> list[tuple[str, list[str]]]:
    """The words for each group of rows, ``z and ry of 'pin0' ... 'pin7'``, and the rows."""
    if len(names) < _MANY_ROWS:
        return [(f"'{name}'", [name]) for name in names]
    labels: dict[str, list[str]] = {}
    for name in names:
        constraint, _, label = name.rpartition(".")
        labels.setdefault(constraint, []).append(label)
    alike: dict[tuple[str, ...], list[str]] = {}
    for constraint, found in labels.items():
        alike.setdefault(tuple(found), []).append(constraint)
    return [
        (
            f"{_joined(found)} of {_range(constraints)}",
            [f"{c}.{label}" for c in constraints for label in found],
        )
        for found, constraints in alike.items()
    ]


_MANY_ROWS = 5


def _range(names: Sequence[str]) -> str:
    """Names in a sentence; of three or more with consecutive numbers only the first and last."""
    parts = [re.fullmatch(r"(.*?)(\d+)(\D*)", name) for name in names]
    if len(names) > 2 and all(parts):
        found = [(m[1], m[3], int(m[2])) for m in parts if m]
        same = {(before, after) for before, after, _ in found}
        numbers = [number for *_, number in found]
        if len(same) == 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
            return f"'{names[0]}' ... '{names[-1]}'"
    return named(names)


def named(names: Sequence[str], most: int = 12, rest: str = "more") -> str:
    """Names in a sentence; of many the first ones, and the number of the others."""
    return _joined([f"'{name}'" for name in names], most, rest)


def _joined(parts: Sequence[str], most: int = 12, rest: str = "more") -> str:
    """a, b and c."""
    left = len(parts) - most
    shown = list(parts[:most])
    if left > 0:
        shown.append(counted(left, rest, "more" if rest == "more" else None))
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def verb(of: int | Sequence[object], one: str = "is", many: str = "are") -> str:
    """The singular or the plural word."""
    return one if (of if isinstance(of, int) else len(of)) == 1 else many


def _number(x: float) -> str:
    """Two digits, and no exponent for hundreds."""
    return f"{x:.2g}" if x < 100.0 or x >= 1e5 else f"{x:.0f}"
