"""The sentences of a report: what each finding means, and what to do about it.

One function for each finding; each yields paragraphs. A paragraph states the verdict first, then
the reason.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from holoctl.base.checks import counted, joined, named, verb
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
    "redundancy",
    "rounded",
    "sensors",
    "size",
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
        word = verb(found.contradictions, "cannot be satisfied", "contradict each other")
        yield (
            "Contradiction: the mechanism closes neither near the given configuration nor from "
            f"starts around it: {_rows(found.contradictions)} {word}. The smallest error found is "
            f"{found.error:.2g} ({_SCALED}), and no small motion reduces it."
        )
        if found.opposite:
            yield (
                f"Opposite axes: at this configuration the axes of {named(found.opposite)} have "
                f"opposite directions, and the error is that of rounded geometry. {_ROTATE}"
            )
        yield (
            "Likely causes: a bar that is too long or too short, a frame at a wrong position, a "
            "joint with a wrong axis, or couplings that contradict each other."
        )
    else:
        yield f"Not closed: {found.message}"
        yield "This does not prove that it cannot close: give a guess nearer to a closed one."
    yield (
        f"Counts: the open tree has {counted(c.open_dof, 'degree')} of freedom and "
        f"{counted(c.rows, 'constraint row')}."
    )


def closes(found: ClosingResult, c: Counts) -> Iterator[str]:
    """How accurately the mechanism closes, and how far from the given configuration."""
    if found.opposite:
        yield (
            f"Opposite axes: the mechanism closes only with the axes of {named(found.opposite)} "
            f"in opposite directions. {_ROTATE} The rest of this report describes the closed "
            "configuration with opposite axes."
        )
    if c.rows:
        yield f"It closes: the largest error is {found.error:.0e} ({_SCALED})."
        if found.far:
            yield (
                "Far from the given configuration: closing the mechanism moved "
                f"{named(found.far)} far. Check the given configuration and the directions of the "
                "joint axes."
            )
    else:
        yield "It has no constraints: it is an open tree."


_ROTATE = (
    "Rotate one of the two frames by half a turn about an axis perpendicular to the joint axis."
)
_SCALED = "lengths divided by the size of their loop, angles in rad"


def rounded(g: Rounding, r: Redundancy, c: Counts) -> Iterator[str]:
    """Rows that are redundant within the tolerance of the geometry."""
    if not g.tolerance:
        return
    text = (
        "Rounded: the rows cannot all be satisfied exactly; together they are satisfied "
        f"to {g.off:.0e} (scaled). "
    )
    if g.off < CLOSED_ALREADY:
        text = "Rounded: all rows are satisfied here, but some are nearly dependent. "
    if r.redundant:
        text += (
            f"{_rows(r.redundant)} {verb(r.redundant)} redundant to within "
            f"{max(g.repeats, g.off):.0e}, less than the tolerance of {g.tolerance:g}, and "
            f"{verb(r.redundant)} left out. The mechanism then has "
            f"{counted(c.finite_dof, 'motion')}."
        )
    yield text.rstrip()
    if g.off < CLOSED_ALREADY:
        yield (
            f"If a row with a singular value below {g.tolerance:g} is an intended constraint, give "
            "a smaller tolerance."
        )
        return
    yield (
        "To repair the geometry, give axes and points with more digits, or call "
        "hc.repaired_geometry, which moves them by the smallest amount that makes these rows "
        "consistent."
    )


def wanted(g: Rounding) -> Iterator[str]:
    """The tolerance that would make the mechanism move."""
    if g.wanted:
        exact = g.off < CLOSED_ALREADY
        met = "are satisfied" if exact else f"can be satisfied to {g.off:.0e} (scaled)"
        yield (
            f"Rounded? Near the given configuration all rows {met}, and some are "
            f"redundant to within {g.repeats:.0e}. If rounding is the cause, set tolerance="
            f"{g.wanted:g} (of hc.load, hc.Mechanism, or in the YAML file): the mechanism then "
            f"closes there and has {counted(g.motions, 'motion')}."
        )


def crossed(axes: Sequence[CrossedAxis]) -> Iterator[str]:
    """Closures whose axis is not parallel to the hinges of their loop."""
    for c in axes:
        text = (
            f"Crossed axis: the hinges of the loop of '{c.closure}' are parallel to axis "
            f"{c.hinges} of its frames, but the closure rotates about {c.turns}. If its axis "
            f"should be parallel to the hinges, rotate both frames until {c.turns} is parallel to "
            "them"
        )
        yield text + (f', or give axes "{c.axes}".' if c.axes else ".")


def size(d: Dimensions) -> str:
    """Size and mass, and whether their units look wrong."""
    sizes = d.loop_sizes or (d.size,)
    least, most = f"{min(sizes):.3g} m", f"{max(sizes):.3g} m"
    several = verb(sizes, "its loops measure", "the groups of coupled loops measure")
    what = several if d.loop_sizes else "the mechanism measures"
    span = least if least == most else f"{least} to {most}"
    text = f"Size: {what} {span}; the mass of the moving bodies is {d.mass:.3g} kg."
    if max(d.size, *sizes) > _LARGE:
        text += " Lengths must be in metres: check whether the file has millimetres."
    elif d.width > _WIDE * max(d.size, *sizes) > 0.0:
        text += (
            f" The body on {d.widest!r} has the inertia of a ring {d.width:.2g} m wide: check "
            "that moments of inertia are in kg m^2 and about the centre of mass."
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
        rows = f"{counted(c.rows, 'constraint row')} {verb(c.rows, 'has', 'have')}"
        text += f"; the {rows} rank {c.generic_rank} in general"
        text += f", which leaves {c.open_dof - c.generic_rank}"
    yield text + "."
    if c.finite_dof == 0 and not c.shaky:
        yield "It is rigid: a locked structure, not a mechanism."
    if c.shaky:
        also = "also " if c.finite_dof else ""
        yield (
            f"Shaky: the mechanism is {also}infinitesimally mobile in "
            f"{counted(c.shaky, 'direction')}: the constraints do not resist this motion to first "
            "order, but it cannot continue. Examples are a chain of bars stretched flat and a "
            "plane framework whose bars meet in a point. Constraint forces are very large there, "
            "and no torque can be computed from them. Change the dimensions."
            + ("" if c.finite_dof else " For finite motions it is rigid.")
        )
    if c.active < c.generic_rank:
        yield (
            f"Bifurcation: the constraint rows have rank {c.active} here and {c.generic_rank} at "
            "configurations nearby. Motion paths cross or end here, and motor torques do not "
            f"determine which path the mechanism takes. {_KEEP_AWAY}"
        )
    elif c.crossing:
        yield (
            f"Bifurcation: motion paths cross here. To first order there are {c.dof} independent "
            f"motions, but at most {c.finite_dof} can continue together. Motor torques do not "
            f"determine which path the mechanism takes. {_KEEP_AWAY}"
        )
    if c.gruebler == c.dof:
        if c.rows:
            yield f"Counting joints and rows (Gruebler-Kutzbach) also gives {c.gruebler}."
    else:
        yield (
            f"Counting joints and rows (Gruebler-Kutzbach) gives {c.open_dof} - {c.rows} = "
            f"{c.gruebler}, not {c.dof}: {c.reason}."
        )


_KEEP_AWAY = "Avoid this configuration, or add a constraint that leaves one path."


def redundancy(r: Redundancy, c: Counts) -> Iterator[str]:
    """Redundant, weak and latent rows."""
    if not c.rows:
        return
    if not r.redundant:
        all_act = c.rows == c.active
        yield f"Redundant rows: none{'; all rows are independent' if all_act else ''}."
    else:
        yield (
            f"Redundant rows: {len(r.redundant)} of {c.rows} can be left out without changing the "
            "motion. Constraint forces along them are statically indeterminate: they depend on the "
            "stiffness of the parts."
        )
        by_themselves = [row for g in r.groups if g.kind == "trivial" for row in g.redundant]
        if by_themselves:
            yield f"  - {_trivial(by_themselves)}"
        for group in r.groups:
            if group.kind != "trivial":
                yield f"  - {_group(group)}"
    if r.weak:
        yield (
            f"Nearly redundant: {_rows(r.weak)} {verb(r.weak)} ill-conditioned; the smallest "
            f"singular value of the scaled rows is {r.strength:.1g}. A usual cause is geometry "
            "that is slightly wrong, such as parallel axes that were rounded in a file. With exact "
            "geometry there may be more motions, and joints that are locked now may move."
        )
    if r.latent:
        yield (
            f"Dependent to first order, but not redundant: {_rows(r.latent)}. Without "
            f"{verb(r.latent, 'it', 'them')} the mechanism would move."
        )


def _trivial(rows: Sequence[str]) -> str:
    means = []
    for said, group in _row_groups(rows):
        of = [_MEANINGS.get(row.rsplit(".", 1)[-1], "a row without effect") for row in group]
        means.append(f"{said} ({joined(list(dict.fromkeys(of)))})")
    return f"{joined(means)} {verb(rows)} satisfied by the joints of the tree alone."


def _group(g: RowGroup) -> str:
    rows, among = _rows(g.redundant), _rows(g.among)
    if g.kind == "duplicate":
        return f"{rows} {verb(g.redundant, 'is a duplicate', 'are duplicates')} of {among}."
    word = verb(g.redundant, "is a linear combination", "are linear combinations")
    return f"{rows} {word} of {among}."


_MEANINGS = {
    **{axis: f"no displacement along {axis}" for axis in "xyz"},
    **{f"r{axis}": f"no rotation about {axis}" for axis in "xyz"},
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
            f"{verb(m.locked_joints, 'it', 'they')} can be replaced by "
            f"{verb(m.locked_joints, 'a fixed joint', 'fixed joints')}."
        )
    if m.idle:
        loaded = _loaded(m.idle, m.idle_names)
        yield (
            f"Idle: {verb(m.idle, 'the motion', 'the motions')} of {named(m.idle_names)} "
            f"{verb(m.idle, 'moves', 'move')} no other body, like the rotation of a rod between "
            f"two ball joints about its own axis.{loaded}"
        )


def _loaded(motions: Sequence[Motion], names: Sequence[str]) -> str:
    """The sentence on the motions that gravity loads."""
    loaded = [name for motion, name in zip(motions, names, strict=True) if motion.loaded]
    if not loaded:
        return ""
    of, them = verb(loaded, "motion", "motions"), verb(loaded, "it", "them")
    return f" Gravity acts on the {of} of {named(loaded)} here, and no motor can hold {them}."


def actuation(m: Motions, c: Counts, motors: Sequence[str], margin: float) -> Iterator[str]:
    """The actuation of the motions."""
    if m.actuation == "none":
        yield "Motors: none."
        return
    yield f"Motors: {_verdict(m, c, len(motors))}."
    if m.coupled:
        yield (
            f"  - {named(m.coupled)} {verb(m.coupled, 'adds', 'add')} no motion: couplings "
            "connect the driven coordinates to those of other motors, for example where a mimic "
            "joint has a motor too. Leave such motors out unless they are intended."
        )
    single = [x.rates[0][0] for x in m.undriven if len(x.rates) == 1]
    if single:
        yield f"  - No motor moves {named(single)}."
    for motion in m.undriven:
        if len(motion.rates) > 1:
            yield f"  - No motor drives {_motion(motion)}."
    loaded = _loaded(m.undriven, [x.rates[0][0] for x in m.undriven])
    if loaded:
        yield f"  -{loaded}"
    if m.actuation_rank < m.generic_actuation_rank:
        yield (
            "Actuation singularity: this is a type-2 (parallel) singularity, also called dead "
            f"point. The motors drive {counted(m.generic_actuation_rank, 'motion')} in general and "
            f"{m.actuation_rank} here. Motor torques have no effect on the other "
            f"{verb(m.generic_actuation_rank - m.actuation_rank, 'motion', 'motions')}, and the "
            "torques that hold a load grow without bound nearby."
        )
    elif margin < 0.02:
        yield (
            "Close to a type-2 (parallel) singularity, also called dead point: the smallest "
            f"singular value of gamma' B is {margin:.1g} (scaled), so some torques are very large."
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
        return f"{n}, but the mechanism has no motion that they could drive"
    if m.actuation == "fully":
        return f"fully actuated{', except for idle motions' if idle else ''}; {counts}"
    free, spare = k - driven, n - driven
    unactuated = f"{counted(free, 'motion')} {verb(free)} unactuated"
    redundant = f"{counted(spare, 'motor')} {verb(spare)} redundant"
    if m.actuation == "under":
        return f"underactuated; {counts}, so {unactuated}"
    if m.actuation == "redundantly":
        return f"redundantly actuated; {counts}, so {redundant}"
    return f"{counts}; together they drive {driven}, so {unactuated} and {redundant}"


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
        who = joined([*(f"'{name}'" for name in rest), driven])
    they = verb(s.measured, "it observes", "they observe")
    idle = f" ({s.idle} more {verb(s.idle)} idle)" if s.idle else ""
    if s.unseen:
        yield (
            f"Sensors: {who} {verb(s.measured)} not sufficient; {they} {s.seen} of "
            f"{counted(count, 'motion')}{idle}, not {_unseen(s.unseen, own)}."
        )
        if s.more:
            gain = f", at a noise gain of {_gain(s.more_gain, s.more_nearby_gain)}"
            yield f"  - All are observed {more}{gain if s.more_nearby_gain < INF else ''}."
        else:
            yield (
                "  - Sensors of joints with one coordinate do not observe all of them: measure all "
                "coordinates of other joints."
            )
        return
    seen = {1: "the one motion", 2: "both motions"}.get(count, f"all {count} motions")
    yield f"Sensors: {who} {verb(s.measured)} sufficient; {they} {seen}{idle}."
    then = _gain(s.more_gain, s.more_nearby_gain)
    if s.gain == INF and not bifurcation:
        one = "the sensor: it does not determine"
        them = verb(s.measured, one, "the sensors: they do not determine")
        text = f"  - This is a singularity (dead point) of {them} the direction of motion"
        text += f". It is determined {more}, at a noise gain of {then}" if s.more else ""
        yield f"{text}."
        return
    text = f"  - Noise gain of the worst coordinate: {_gain(s.gain, s.nearby_gain)}; "
    if s.more:
        text += f"it is {then} {more}, the best choice."
    else:
        text += "no additional sensor lowers it by a tenth or more."
    if GAIN_LIMIT < s.gain < INF:
        text += (
            f" hc.ClosedStateEstimator refuses more than {GAIN_LIMIT:g}: this is close to a "
            "singularity of the sensors."
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
            f"  - Joints without motor and without friction: {_share(f.smooth, f.joints)}. Joints "
            "with a motor have friction: check whether it is missing here."
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
        text = f"the smallest nonzero singular value of the scaled rows is {g.margin:.2g}"
        if g.gap < INF:
            text += f", {g.gap:.0e} times the largest one that counts as zero"
        parts.append(text)
    if g.actuation_margin < INF:
        parts.append(f"the smallest singular value of gamma' B is {g.actuation_margin:.2g}")
    text = (
        "Margins: " + "; ".join(parts) + "."
        if parts
        else "Margins: none, without constraint rows and motors."
    )
    if g.margin < min(0.02, 0.3 * g.usual_margin):
        text += (
            " This is close to a singular configuration: the first value is up to "
            f"{g.usual_margin:.2g} at configurations nearby."
        )
    if g.uncertain:
        text += (
            " The rank is uncertain because this ratio is small: close the mechanism more "
            "accurately."
        )
    return text


def _rows(names: Sequence[str]) -> str:
    """Names of rows in a sentence: of many, those with the same labels together."""
    return joined([said for said, _ in _row_groups(names)])


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
            f"{joined(found)} of {_range(constraints)}",
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


def _number(x: float) -> str:
    """Two digits, and no exponent for hundreds."""
    return f"{x:.2g}" if x < 100.0 or x >= 1e5 else f"{x:.0f}"
