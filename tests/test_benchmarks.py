"""What pages say about speed is what benchmarks/RESULTS*.md have; their program compares first.

A page may tell the time of something, or a ratio of times, only as a range or an upper bound that
holds all rows that it is about. It is written wider than what was measured, by a quarter at each
end, so that another run on the same machine does not break it; by more than a factor of two it says
nothing, and is refused as well.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from markdown.extensions.toc import slugify
from pages import ALL_PAGES
from support import ROOT

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import columns
import figures
import methods
import report
from mechanisms import robot

SECTIONS = (
    "laws", "encoders", "certified", "limits", "contacts", "exported", "boards", "design", "sweeps",
)  # fmt: skip

FIRST = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
RESULTS = "\n".join(
    path.read_text(encoding="utf-8") for path in sorted((ROOT / "benchmarks").glob("RESULTS*.md"))
)
ROOM, LOOSE = 1.25, 2.0
"""How much wider than measured a range is to be written, and how much wider it may be."""

TIMES, LAWS, LIMITS = "Time, us", "Friction, tasks, and the observer", "Within limits"
IN_PYTHON = r".*, in Python"
FRAMES = ("task space", "impedance", "wanted inertia")


def of(*names, over="", more=""):
    """What of a row is told: these columns, over one, or how much more than one they are."""

    def values(row):
        for name in names:
            if name in row:
                yield (row[name] - (row[more] if more else 0.0)) / (row[over] if over else 1.0)

    return values


COMPILED = (TIMES, ".*", of("compiled"))
ALL_LAWS = (*FRAMES, "critical", "one axis", "damp")

SPEEDS = [  # page, the words around the numbers {}, section, rows, what of them
    ("docs/design.md", "differences of sixth order, in {} to {} ms", "Linear models", ".*",
     lambda row: [1e-3 * row["by differences, us"]]),
    ("docs/design.md", "is {} to {} times as fast, once it is compiled", "Linear models", ".*",
     of("by differences, us", over="compiled, us")),
    ("docs/trajectories.md", "the program of cvxpy: {} to {} s where", "Fastest motions", ".*",
     lambda row: [1e-3 * row["cvxpy, first, ms"]]),
    ("docs/trajectories.md", "in the same thread, took {} to {} ms", "Fastest motions", ".*",
     of("cvxpy, ms")),
    ("docs/embedded-time.md", "readings that were found took {} to {} times the median",
     "From encoders to torque, in C", ".*", of("native worst tick, ns", over="native tick, ns")),
    ("docs/encoders.md", "takes at most {} times as long as a compiled torque",
     "From encoders to torque", ".*", of("compiled from motors, us", over="compiled torque, us")),
    ("docs/faq.md", "take? {} to {} us in Python", TIMES, ".*", of("inverse")),
    ("docs/faq.md", "us in Python, {} to {} us compiled", *COMPILED),
    ("docs/forces.md", "makes a tick at most {} times as long, in Python and compiled", LAWS, ".*",
     of("friction", over="computed torque")),
    ("docs/from-pinocchio.md", "is {} to {} times as fast as `hc.forward_dynamics` on a four-bar "
     "and a five-bar", TIMES, "four_bar|five_bar",
     of("forward, certified", over="constraintDynamics")),
    ("docs/index.md", "{} to {} us for a torque with warm caches", *COMPILED),
    ("docs/realtime.md", "it takes {} to {} us where caches are warm", *COMPILED),
    ("docs/realtime.md", "takes {} to {} times as long with them", "Batches with certificates",
     ".*", lambda row: [row[f"{x}, certified"] / row[x] for x in ("inverse", "forward")]),
    ("docs/limits.md", "only comparisons are added: {} to {} us in Python", LIMITS, ".*",
     of("far", "far, joints")),
    ("docs/limits.md", "the tick takes {} to {} times as long as without limits", LIMITS, ".*",
     lambda row: [1.0 + row["nearest"] / row["plain"]]),
    ("docs/limits.md", "it takes {} to {} times as long as with DAQP", LIMITS, ".*",
     lambda row: [row["cvxpy"] / (row["plain"] + row["nearest"])]),
    ("docs/limits.md", "a limit that acts makes the tick at most {} times as long", LIMITS, ".*",
     lambda row: [1.0 + row["compiled nearest"] / row["compiled"]]),
    ("docs/limits.md", "those of efforts cost {} to {} us more", LIMITS, ".*",
     of("nearest, joints", more="nearest")),
    ("docs/external-forces.md", "A tick of it takes {} to {} us from a five-bar", LAWS, IN_PYTHON,
     of("observer")),
    ("docs/external-forces.md", "coordinates, and {} to {} us more with a wrench", LAWS, IN_PYTHON,
     of("and wrench", more="observer")),
    ("docs/task-space.md", "A control law of one task takes {} to {} times as long", LAWS,
     IN_PYTHON, of(*FRAMES, over="computed torque")),
    ("docs/task-space.md", "away from there, take {} to {} times as long", LAWS, IN_PYTHON,
     of("one axis", "damp", over="computed torque")),
    ("docs/task-space.md", '`"critical"` {} to {} times as long', LAWS, IN_PYTHON,
     of("critical", over="computed torque")),
    ("docs/task-space.md", "A torque then takes {} to {} us", LAWS, ".*, compiled", of(*ALL_LAWS)),
]  # fmt: skip

NO_SPEEDS = {  # what is no time of the library, by the words around it
    "docs/decisions/control.md": ("from 0.1 us to 1e5 s",),  # bins of a histogram
    "docs/derivations-multipliers.md": ("on a fast mechanism it is some microseconds",),  # a step
    "docs/file-formats-dynamics.md": ("rotor turns `gear_ratio` times as fast as its joint",),
    "docs/realtime.md": ("up to 50 us late on purpose", "more than 10 us to leave"),  # Linux's
}
SPEED = re.compile(
    r"\d [uµn]s\b|\b(?:micro|nano)seconds?\b|\d ms (?:a|for|where)\b|orders? of magnitude \w+er\b"
    r"|\btimes (?:as (?:long|fast|quick)|(?:long|fast|quick|slow)er|the median)\b"
)
NUMBER = r"(\d+(?:\.\d+)?)"


def text_of(page):
    """A page on one line, without what is code."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.sub(r"\s+", " ", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE))


def number(cell):
    found = re.match(r"[~+]?(-?\d+(?:\.\d+)?)", cell)
    return float(found[1]) if found else None


def table(heading):
    """Name of a row to its numbers, of the first table below a heading."""
    (section,) = re.findall(
        rf"^##+ {re.escape(heading)}(?:: [^\n]*)?\n(.*?)(?=^##|\Z)",
        RESULTS,
        re.DOTALL | re.MULTILINE,
    )
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.partition("\n\nTargets")[0].splitlines()
        if line.startswith("|")
    ]
    head, _, *rows = lines
    assert len(set(head)) == len(head), head
    return {
        row[0]: {n: x for n, c in zip(head, row, strict=True) if (x := number(c)) is not None}
        for row in rows
    }


def stated(page, words):
    pattern = re.escape(words).replace(r"\{\}", NUMBER).replace(r"\ ", " ")
    return list(re.finditer(pattern, text_of(page)))


@pytest.mark.parametrize(
    ("page", "words", "section", "rows", "values"), SPEEDS, ids=[f"{x[0]}: {x[1]}" for x in SPEEDS]
)
def test_a_speed_in_a_page_is_that_of_the_results(page, words, section, rows, values):
    measured = [
        x for name, row in table(section).items() if re.fullmatch(rows, name) for x in values(row)
    ]
    least, most = min(measured), max(measured)
    (found,) = stated(page, words)
    *low, high = (float(x) for x in found.groups())
    told = f"{page}: {found[0]!r}, but measured {least:.3g} to {most:.3g}: write"
    assert most <= high <= LOOSE * most, f"{told} up to {ROOM * most:.2g}"
    assert not low or low[0] <= least <= LOOSE * low[0], f"{told} from {least / ROOM:.2g}"


PAGES = ["README.md", *(p.relative_to(ROOT).as_posix() for p in ALL_PAGES)]


@pytest.mark.parametrize("page", [p for p in PAGES if "docs/referee" not in p])  # a program's
def test_no_speed_stands_in_a_page_unread(page):
    text = text_of(page)
    spans = [m.span() for p, words, *_ in SPEEDS if p == page for m in stated(page, words)]
    for words in NO_SPEEDS.get(page, ()):
        assert words in text, f"{page} no longer says {words!r}: change NO_SPEEDS with it"
        spans.append((text.index(words), text.index(words) + len(words)))
    for m in SPEED.finditer(text):
        known = any(a <= m.start() and m.start() < b for a, b in spans)
        assert known, f"{page}: ...{text[m.start() - 60 : m.end() + 30]}...: SPEEDS reads it not"


def test_the_results_are_of_one_run_and_tell_the_load():
    assert len(re.findall(r"^Written by `", RESULTS, flags=re.MULTILINE)) == 1
    assert "load average" in FIRST[: FIRST.index("## ")]
    assert not re.search(r"was measured by|alone, later|while other work", RESULTS)


# ------------------------------------------------------------------------------- the program


@pytest.fixture(scope="module")
def four_bar():
    return columns.make_case("four_bar", robot("four_bar"), n=2)


def test_every_way_to_an_answer_agrees(four_bar):
    ways = {column.name: column for column in columns.own_columns(four_bar)}
    assert {"inverse", "controller", "constraintDynamics", "lcaba", "dense KKT"} <= set(ways)
    assert columns.path(four_bar) == "fast 2/2"
    for column in ways.values():
        assert not column.missing
        assert column.difference(four_bar.states) <= columns.AGREEMENT, column.name


def test_methods_of_forward_dynamics_agree():
    case = methods.make_case("fourbar")
    assert methods.path(case).startswith("fast")
    for column in methods.columns(case):
        assert column.missing or column.difference(case.states) <= columns.AGREEMENT, column.name


@pytest.mark.parametrize(
    ("ends", "why"),
    [
        (lambda *args: os.kill(os.getpid(), signal.SIGKILL), "not run: SIGKILL"),
        (lambda *args: 1 / 0, "not run: an error"),
    ],
)
def test_a_way_that_ends_the_process_is_not_run(four_bar, monkeypatch, ends, why):
    monkeypatch.setattr(pin, "lcaba", ends)
    assert columns.lcaba(four_bar).missing == why


def test_a_way_that_is_right_only_now_and_then_is_found_out(four_bar, monkeypatch):
    right, calls = pin.lcaba, []

    def now_and_then(*args):
        calls.append(0)
        return (2.0 if len(calls) % 2 else 1.0) * np.array(right(*args))

    monkeypatch.setattr(pin, "lcaba", now_and_then)
    assert columns.lcaba(four_bar).difference(four_bar.states) > 0.1


def test_a_table_names_each_column_once():
    with pytest.raises(ValueError, match="same name"):
        figures.table(["robot", "ratio", "ratio"], [])


def test_every_section_is_on_a_page():
    sections = {name: f"## {name}" for name in SECTIONS}
    made = report.pages({"Time": "1"}, {"Notes": "2"}, "3", sections, "a test", "here")
    assert set(made) == {path.name for path in (ROOT / "benchmarks").glob("RESULTS*.md")}
    text = "".join(made.values())
    assert all(text.count(section) == 1 for section in sections.values())
    with pytest.raises(ValueError, match="another"):
        report.pages({}, {}, "", {**sections, "another": ""}, "a test", "here")


@pytest.mark.parametrize("name", report.FORMER_PLACES)
def test_a_former_place_of_a_section_leads_to_its_page(name):
    headings = re.findall(r"^##+ (.*)$", (ROOT / "benchmarks" / name).read_text("utf-8"), re.M)
    assert set(report.FORMER_PLACES[name]) <= {slugify(x, "-") for x in headings}


@pytest.mark.slow
@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_can_be_measured(section):
    program = [sys.executable, ROOT / "benchmarks" / "bench.py", "--quick", "--only", section]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("##")
    assert "nan" not in done.stdout
