"""What bench.py measured, as text and as a picture; and the targets."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

import numpy as np
from columns import AGREEMENT
from figures import Batches, Figures, Simulations, Ticks, table
from methods import more_rows

PACKAGES = ("holoctl", "numpy", "scipy", "pin", "drake", "mujoco")

NOTES = """\
- A figure is the time of one call from Python, measured around the call, inside `hc.realtime()`:
  one thread, no garbage collection. Columns run in turn, in an order that changes from round to
  round, each five times over {states} closed moving states with random targets.
- The first call of a turn finds the caches full of the data of other columns, as a tick of a slow
  loop does. The main table and the targets are of the calls after it, the second table is of the
  first ones.
- On the pages of control, exported C and design, blocks of calls are timed by the clock of the
  process, which stands still while others have the processor; C, and work on two cores, by the wall
  clock.
- *unit*: `pin.rnea(model, data, q, v, a)` and `pin.computeJointJacobians(model, data, q)`.
  In brackets: ratio of medians to the unit.
- *inverse*: `PreparedInverseDynamics.torque(q, v, target, out=u)`. *controller*:
  `ComputedTorque.torque(q, v, q_ref, v_ref, a_ref, out=u)`.
- *compiled*: `hc.compile(mech, ["inverse_dynamics"]).inverse_dynamics(q, v, target, out=u)`.
- Many states at once: *loop*, `PreparedInverseDynamics.torque` called state by state; the others,
  `inverse_dynamics_batch` with `workers=1` and `2`, all in turn; medians.
- Simulation: `hc.simulate(mech, controller, q, v, 0.5)`, its beginning and end included;
  *prepared*: with `ComputedTorque.track`; *compiled dynamics*: with `plant=`; *and controller*:
  with the compiled torque too. In turn; medians. The final states agree, or nothing is written.
- *forward, certified*: `hc.forward_dynamics(mech, q, v, B u, partition=part)`, the general path:
  arguments checked, multipliers and certificate computed. It is not made for a control loop.
- *constraintDynamics*: `pin.constraintDynamics` with `RigidConstraintModel` of the same closures,
  proximal settings (1e-12, 1e-10, 10). It gives accelerations for torques, the opposite question.
  Hinges in a plane are 3D points there; their redundant row needs a proximal parameter above zero
  (with zero it gives NaN).
- *lcaba*: `pin.lcaba`, the articulated bodies of closed loops, with the same constraints, accuracy
  1e-12, at most 20 iterations, and the least of the proximal parameters 1e-4 to 1e-1 at which it
  agrees at all states. With welds it is right at one call and wrong at the next.
- *dense KKT*: M and h from `pin.crba` and `pin.nonLinearEffects`; G and its drift from Pinocchio's
  frame Jacobians and classical accelerations, a call each for every end of a closure;
  `np.linalg.solve` of the saddle point system for a, u and lambda, kept rows only.
- *path*: at how many of the states the fast path of `PreparedInverseDynamics` gave the answer,
  or why the general path gives all of them; in the table of methods, that of
  `PreparedForwardDynamics`.
- *cassie_like* has two motions more than motors, so M is needed there by every way.
- Each cell of a *chain* stands on the rocker of the cell before.
- Differences are the largest over all states and entries, relative to the largest entry. A column
  that is off by more than 1e-8 is not timed.
"""

METHOD_NOTES = """\
- The table of methods has the six mechanisms of tests/golden/rbdl with their states on the
  manifold; accelerations for torques by all columns. They are checked against the certified
  result of `hc.forward_dynamics`, with contacts placed at the state.
- *constraintDynamics* there, settings as above: points and welds that allow the same motions; no
  gear, so nothing for slider_gear. "~": it holds more rows than the mechanism, redundant ones,
  and gives the same result. Two rows in the plane of fourbar are a 3D point. A foot of
  biped_double, held by 3 rows at the heel and 2 at the toe, has 3D points at both. The foot of
  biped_single, held by 6 rows at three points, is one 6D contact, which Pinocchio solves faster
  than three points.
- *prepared*: `PreparedForwardDynamics.acceleration(q, v, tau, out=a)`. *prepared, shared*: the
  function that `.at(q, v)` gave beforehand, applied to tau; `.at` itself is not in the time.
- *projection* to *proximal*: `hc.forward_dynamics` by that method, the general path, with
  certificate and multipliers; `partition=part` and `terms=T`, T made beforehand, with M and h.
  *direct, own terms*: the same without T.
- *proximal* is `pin.constraintDynamics` inside, prepared anew at each call; it takes points and
  welds with the very rows of the mechanism only.
"""

PEER_NOTES = """\
- *Drake by hand*, the leanest assembly that we found: `CalcInverseDynamics`, a relative Jacobian
  and its bias for each closure, numpy to solve with the split into dependent coordinates and
  motors; rows and split decided once.
- *Drake textbook*, the plain assembly, as one writes it from the manual: `SetPositions` and
  `SetVelocities`; `CalcMassMatrix`; `CalcBiasTerm` minus `CalcGravityGeneralizedForces`; Jacobian
  and bias of both frames of each closure relative to the world (none for the world itself), their
  difference in world axes; the system of *dense KKT*, solved as there, kept rows only.
- The two Drake columns have a plant each, but run the same library: where one has just run, the
  first call of the other finds some of the code in the caches. This holds for all columns that
  share a library.
- *MuJoCo mj_inverse*: given the exact q, v and a. Its inertia matrix and bias agree with
  Pinocchio's to 1e-9 on the tree. Its constraints are soft: a force answers a violation of the
  constraint by q, v or a, and here there is none. So the constraint forces are zero, and the
  result is M a + h of the cut tree, with efforts on the passive joints too. (Projected on the
  motions that the closures allow, these efforts are the right ones, checked to 1e-9; but
  mj_inverse does not project.) "Off by" is the difference of the entries at the motors from the
  exact torque.
"""


IN_BRACKETS = """\
Not a target, so in brackets: the limits were set for *Drake by hand*, the leanest assembly that we
found. The rows with *Drake textbook*, the plain one, have the same limits."""


PAGES = {
    "RESULTS-control.md": (
        "Times of control laws",
        "Ticks from encoders to torque, of friction and tasks, and within limits; certificates of "
        "batches.",
        ("encoders", "laws", "certified", "limits", "contacts"),
    ),
    "RESULTS-exported.md": (
        "Times of exported C",
        "Ticks in a C loop, size of the code, stack, time of the build, instructions on Cortex-M.",
        ("exported", "boards"),
    ),
    "RESULTS-design.md": (
        "Times of offline design",
        "Linear models, fastest motions, sweeps.",
        ("design", "sweeps"),
    ),
}
"""Pages of sections: title, what is there, names of the sections in bench.py."""
TARGETS_PAGE, METHOD_PAGE = "RESULTS-targets.md", "RESULTS-method.md"
FORMER_PLACES = {
    "RESULTS-control.md": (
        "from-encoders-to-torque", "from-encoders-to-torque-in-c",
        "friction-tasks-and-the-observer", "batches-with-certificates", "within-limits",
    ),
    "RESULTS-exported.md": ("exported-c",),
    "RESULTS-design.md": ("linear-models", "fastest-motions", "sweeps"),
}  # fmt: skip
"""Anchors that RESULTS.md has for what is on another page."""


def results(
    figures: Sequence[Figures],
    methods: Sequence[Figures],
    ticks: Ticks,
    batches: Batches,
    simulations: Simulations,
    written: str,
    sections: Mapping[str, str],
) -> dict[str, str]:
    """All pages by their names."""
    names, method_names = _names(figures, _ORDER), _names(methods, _METHOD_ORDER)
    notes = NOTES.format(states=len(figures[0].case.states))
    notes += METHOD_NOTES
    if "Drake by hand" in names:
        notes += PEER_NOTES
    judged = targets(figures, ticks) + method_targets(methods)
    judged += compiled_targets(figures, batches)
    main = {
        "Time, us: median / 99th percentile (ratio of medians to the unit)": table(
            ["mechanism", *names], [[f.case.name, *_times(f, names)] for f in figures]
        ),
        "First calls after other work, us: median (ratio to the unit)": table(
            ["mechanism", *names], [[f.case.name, *_first(f, names)] for f in figures]
        ),
        "Forward dynamics by every method, us: median (ratio to constraintDynamics)": table(
            ["mechanism", *method_names], [_methods(f, method_names) for f in methods]
        ),
        "Jitter of `inverse`, us": _jitter(ticks),
        "Many states at once, us a state": _batches(batches) if any(batches.values()) else "",
        "Simulation under a controller at 1 kHz, s per second": (
            _simulations(simulations) if any(simulations.values()) else ""
        ),
    }
    method = {
        "What the columns are": notes.strip(),
        "Mechanisms": table(
            ["mechanism", "nv", "rows", "rank", "nu", "k", "path"],
            [_sizes(f) for f in [*figures, *methods]],
        ),
        "Check: largest difference from the exact result, relative": "\n\n".join(
            (_differences(figures, names), _differences(methods, method_names))
        ),
    }
    goals = table(["target", "figure", "", "first calls"], [t.row() for t in judged])
    if "Drake textbook" in names:
        goals += "\n\n" + IN_BRACKETS
    return pages(main, method, goals, sections, written, machine())


def pages(
    main: Mapping[str, str],
    method: Mapping[str, str],
    goals: str,
    sections: Mapping[str, str],
    written: str,
    where: str,
) -> dict[str, str]:
    """Tables under their headings, the targets, sections by name: as pages."""
    if lost := set(sections) - {x for _, _, names in PAGES.values() for x in names}:
        raise ValueError(f"no page of PAGES has the sections {sorted(lost)}")
    beside = {
        METHOD_PAGE: ("How the times are measured", "Columns, mechanisms, check of the results."),
        TARGETS_PAGE: ("Targets of time", "Limits that were set for times, and which are met."),
        **{name: (title, about) for name, (title, about, _) in PAGES.items()},
    }
    anchors = {
        name: "".join(f'<a id="{x}"></a>' for x in FORMER_PLACES.get(name, ())) for name in beside
    }
    contents = [
        f"- {anchors[name]}[{title}]({name}). {about}" for name, (title, about) in beside.items()
    ]
    found = {
        "RESULTS.md": [
            "# Computation times",
            "How long does a torque take, for which mechanism, beside other libraries?",
            "\n".join(contents),
            f"Written by {written}; nothing here is edited by hand.",
            where,
            *_under_headings(main),
        ],
        METHOD_PAGE: _under_headings(method),
        TARGETS_PAGE: [goals],
        **{name: [sections[x] for x in names] for name, (_, _, names) in PAGES.items()},
    }
    return {
        name: "\n\n".join(parts if name == "RESULTS.md" else [*_head(*beside[name]), *parts]) + "\n"
        for name, parts in found.items()
    }


def _head(title: str, about: str) -> list[str]:
    """The beginning of a page beside the first one."""
    return [f"# {title}", f"{about} Part of the run of [computation times](RESULTS.md)."]


def _under_headings(parts: Mapping[str, str]) -> list[str]:
    return [x for heading, text in parts.items() if text for x in (f"## {heading}", text)]


_ORDER = [
    "unit", "rnea + crba", "inverse", "controller", "virtual machine", "compiled",
    "forward, certified", "constraintDynamics", "lcaba", "dense KKT", "Drake by hand",
    "Drake textbook", "MuJoCo mj_inverse",
]  # fmt: skip


_METHOD_ORDER = [
    "constraintDynamics", "prepared", "prepared, shared", "projection", "direct", "range_space",
    "null_space", "kokkevis", "proximal", "direct, own terms",
]  # fmt: skip


def _names(figures: Sequence[Figures], order: Sequence[str]) -> list[str]:
    """The columns that any of the mechanisms has."""
    found = {c for f in figures for c in [*f.times, *f.refused]}
    return sorted(found, key=order.index)


def _times(f: Figures, names: Sequence[str]) -> list[str]:
    cells = []
    for c in names:
        if c not in f.times:
            cells.append(f.refused.get(c, "missing"))
            continue
        ratio = "" if c == "unit" else f" ({f.median(c) / f.median('unit'):.1f} x)"
        off = f.differences.get(c, 0.0)
        wrong = f", off by {off:.0%}" if off > AGREEMENT else ""
        digits = 2 if f.median(c) < 1.0 else 1
        cells.append(f"{f.median(c):.{digits}f} / {f.p99(c):.1f}{ratio}{wrong}")
    return cells


def _first(f: Figures, names: Sequence[str]) -> list[str]:
    unit = f.first_median("unit")
    cells = []
    for c in names:
        ratio = "" if c == "unit" else f" ({f.first_median(c) / unit:.1f} x)"
        cells.append(f"{f.first_median(c):.1f}{ratio}" if c in f.first else "-")
    return cells


def _methods(f: Figures, names: Sequence[str]) -> list[str]:
    """A line of the table of methods."""
    unit, cells = f.median("constraintDynamics"), [f.case.name]
    for c in names:
        ratio = "" if c == "constraintDynamics" else f" ({f.median(c) / unit:.1f} x)"
        ratio = ratio if np.isfinite(unit) else ""
        mark = "~" if c == "constraintDynamics" and more_rows(f.case) else ""
        cells.append(f"{mark}{f.median(c):.1f}{ratio}" if c in f.times else f.refused[c])
    return cells


def _sizes(f: Figures) -> list[str]:
    mech, part = f.case.mech, f.case.part
    sizes = (mech.nv, len(mech.row_scale), part.rank, mech.nu, f.case.k)
    return [f.case.name, *map(str, sizes), f.path]


def _differences(figures: Sequence[Figures], names: Sequence[str]) -> str:
    checked = [c for c in names if any(c in f.differences for f in figures)]
    rows = [
        [f.case.name, *(f"{f.differences[c]:.0e}" if c in f.differences else "-" for c in checked)]
        for f in figures
    ]
    return table(["mechanism", *checked], rows)


def _jitter(ticks: Ticks) -> str:
    rows = []
    for name, runs in ticks.items():
        for where, t in runs.items():
            figures = [*np.percentile(t, (50, 99, 99.9)), t.max()]
            cells = [f"{x / 1e3:.1f}" for x in figures]
            rows.append([name, where, str(t.size), *cells, f"{figures[2] / figures[0]:.1f}"])
    head = ["mechanism", "realtime", "ticks", "median", "p99", "p99.9", "worst", "p99.9 / median"]
    return table(head, rows)


def _simulations(simulations: Simulations) -> str:
    names = ("prepared", "compiled dynamics", "and controller")
    rows = [
        [name, *(f"{np.median(ratios[n]):.1f}" for n in names)]
        for name, ratios in simulations.items()
        if ratios
    ]
    return table(["mechanism", *names], rows)


def _batches(batches: Batches) -> str:
    names = ("loop", "one core", "two cores")
    rows = [
        [name, *(f"{np.median(times[n]):.2f}" for n in names)]
        for name, times in batches.items()
        if times
    ]
    return table(["mechanism", *names], rows)


def machine(packages: Sequence[str] = PACKAGES) -> str:
    """Date, machine and versions."""
    versions = [f"Python {platform.python_version()}"]
    for package in packages:
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            if package == "holoctl":
                versions.append("holoctl from the checkout")
    return (
        f"{datetime.date.today().isoformat()}; {_cpu()}, {os.cpu_count()} cores, "
        f"{platform.system()} {platform.machine()}; {', '.join(versions)}."
    )


def _cpu() -> str:
    """The model of the processor, as far as it is told."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    found = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return found[0] if found else platform.machine()


# ----------------------------------------------------------------------------------- targets

DRAKE_LIMITS = {"four_bar": 0.4, "five_bar": 0.4, "stewart": 0.2, "biped": 0.2}
"""Of our time to that of Drake by hand."""


@dataclass
class Target:
    """A target and what was measured; nan if nothing was."""

    text: str
    limit: float
    unit: str
    figure: float
    first: float | None = None
    """The same of first calls, which is told and not judged."""
    set_for: str = ""
    """The column that the limit was set for, if it is another one."""

    def row(self) -> list[str]:
        """Cells of a table."""
        text = f"{self.text} <= {self.limit:g}{self.unit}"
        if not np.isfinite(self.figure):
            return [text, "not measured", "", ""]
        met = "met" if self.figure <= self.limit else "not met"
        if self.set_for:
            met = f"({met})"
        first = "" if self.first is None else f"{self.first:.2f}{self.unit}"
        return [text, f"{self.figure:.2f}{self.unit}", met, first]


def _ratio(text: str, limit: float, over: Figures, under: Figures, columns: str) -> Target:
    """A target for the ratio of two medians; `columns` is "this / that"."""
    a, b = columns.split(" / ")
    return Target(
        text, limit, " x",
        over.median(a) / under.median(b),
        over.first_median(a) / under.first_median(b),
    )  # fmt: skip


def targets(figures: Sequence[Figures], ticks: Ticks) -> list[Target]:
    """All targets, in the order in which they were set; then those of Drake by hand once more,
    for Drake textbook."""
    found = []
    for f in figures:
        limit = 12.0 if f.case.mech.nv < 6 else 7.0 if f.case.mech.nv >= 18 else None
        if limit is not None:
            columns = "inverse / unit"
            found.append(_ratio(f"{f.case.name}: {columns}", limit, f, f, columns))
    for f in figures:
        above = f.median("controller") - f.median("inverse")
        first = f.first_median("controller") - f.first_median("inverse")
        found.append(Target(f"{f.case.name}: controller - inverse", 3.0, " us", above, first))
    by_name = {f.case.name: f for f in figures}
    long, short = by_name["chain 40"], by_name["chain 12"]
    columns = "inverse / constraintDynamics"
    found.append(_ratio(f"chain 40: {columns}", 0.15, long, long, columns))
    growth = "inverse: chain 40 / chain 12"
    found.append(_ratio(growth, 4.0, long, short, "inverse / inverse"))
    for name, runs in ticks.items():
        spread = np.percentile(runs["inside"], 99.9) / np.median(runs["inside"])
        text = f"{name}: p99.9 / median of inverse inside realtime"
        found.append(Target(text, 5.0, " x", float(spread)))
    for drake, set_for in (("Drake by hand", ""), ("Drake textbook", "Drake by hand")):
        for name, limit in DRAKE_LIMITS.items():
            f, columns = by_name[name], f"inverse / {drake}"
            target = _ratio(f"{name}: {columns}", limit, f, f, columns)
            found.append(replace(target, set_for=set_for))
    return found


def method_targets(methods: Sequence[Figures]) -> list[Target]:
    """Those of the prepared forward dynamics."""
    found = []
    for f in methods:
        small, large = f.case.mech.nv < 6, f.case.mech.nv >= 12
        limits = {"prepared": 8.0 if small else 3.0} if small or large else {}
        for column, limit in {**limits, "prepared, shared": 2.5}.items():
            columns = f"{column} / constraintDynamics"
            found.append(_ratio(f"{f.case.name}: {columns}", limit, f, f, columns))
    return found


COMPILED_LIMITS = {"four_bar": 1.2, "stewart": 0.6, "biped": 0.6}
"""Of the time of the compiled law to that of rnea and crba, called from Python."""


def compiled_targets(figures: Sequence[Figures], batches: Batches) -> list[Target]:
    """Those of the compiled law."""
    by_name, found = {f.case.name: f for f in figures}, []
    for name, limit in COMPILED_LIMITS.items():
        f, columns = by_name[name], "compiled / rnea + crba"
        found.append(_ratio(f"{name}: {columns}", limit, f, f, columns))
    f, columns = by_name["chain 40"], "compiled / constraintDynamics"
    found.append(_ratio(f"chain 40: {columns}", 0.04, f, f, columns))
    for name, times in batches.items():
        us = {where: float(np.median(t)) for where, t in times.items()}
        for a, b, limit in (("one core", "loop", 1 / 15), ("two cores", "one core", 1 / 1.7)):
            figure = us[a] / us[b] if us else float("nan")
            found.append(Target(f"{name}: batch, {a} / {b}", round(limit, 3), " x", figure))
    return found


# ----------------------------------------------------------------------------------- picture


def picture(figures: Sequence[Figures], file: Path) -> None:
    """Cost against the number of cells of the chain."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    chains = [f for f in figures if f.case.name.startswith("chain ")]
    N = [int(f.case.name.split()[1]) for f in chains]
    fig, ax = plt.subplots(figsize=(7.5, 5.0), layout="constrained")
    ends: list[float] = []
    for column, label, style in _CURVES:
        y = [f.median(column) for f in chains]
        if not np.isfinite(y).all():
            continue
        ax.loglog(N, y, style, label=label, lw=1.8, ms=5)
        ends.append(y[-1])
    ax.set_xticks(N, [str(n) for n in N])
    ax.minorticks_off()
    ax.set_yticks([0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000])
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set_xlim(0.9, 58)
    ax.set_xlabel("N: four-bars in series (3 N coordinates, 2 N rows, N motors)")
    ax.set_ylabel("median time of a call from Python, us")
    ax.grid(alpha=0.3)
    ax.legend(frameon=False)
    for y, at in zip(sorted(ends), _apart(sorted(ends)), strict=True):
        ax.text(1.1 * N[-1], at, f"{y:.2g}" if y < 10 else f"{y:.0f}", va="center")
    fig.savefig(file, dpi=130)
    plt.close(fig)


def _apart(heights: Sequence[float], ratio: float = 1.22) -> list[float]:
    """Heights on a logarithmic axis, moved upwards until labels there do not overlap."""
    placed: list[float] = []
    for y in heights:
        placed.append(max(y, ratio * placed[-1]) if placed else y)
    return placed


_CURVES = [
    ("dense KKT", "dense KKT (numpy)", "s-"),
    ("constraintDynamics", "pin.constraintDynamics", "^-"),
    ("controller", "hc.ComputedTorque", "D--"),
    ("inverse", "hc.PreparedInverseDynamics", "o-"),
    ("unit", "unit: pin.rnea + Jacobians", "x:"),
    ("compiled", "hc.compile", "o--"),
]
