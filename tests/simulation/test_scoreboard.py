"""The scoreboard beyond simulations: states, counts, linkages, histories; what its page holds."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import rbdl
import spatial_v2
from referee import (
    by_hand,
    disagreement,
    elsewhere,
    histories,
    opening,
    own,
    pictures,
    plain_tree,
    posed,
    rbdl_states,
    saddle,
    score,
    screws,
    spatial_v2_states,
    sympy_five,
    sympy_motions,
    textbook,
)
from referee.finding import off
from referee.outcome import closure, error
from referee.problem import positions
from support import ROOT, few

PAGE = ROOT / "docs" / "referee.md"
PAGES = sorted((ROOT / "docs").glob("referee*.md"))
LARGEST = 200_000
"""Bytes that the pictures' data may have."""
QUESTIONS = (*spatial_v2_states.QUESTIONS, *rbdl_states.QUESTIONS, *sympy_motions.QUESTIONS)


def question(name):
    (found,) = (q for q in QUESTIONS if q.name == name)
    return found


def linkage(name):
    (found,) = (x for x in textbook.LINKAGES if x.name == name)
    return found


# ------------------------------------------------------------------------- the solvers in numpy


@pytest.mark.parametrize("case", few(rbdl_states.CASES, ["spatial3", "slider_gear"]))
def test_the_tree_in_numpy_has_rbdls_inertia_bias_and_rows(case):
    tree = rbdl_states.plain(case)
    for s in rbdl.states(case)[:4]:
        q, qd = np.array(s["q"]), np.array(s["qd"])
        m = plain_tree.moved(tree, q, qd)
        H, C = plain_tree.inertia_and_bias(tree, m)
        G, gamma, position, rate = rbdl_states.rows(case, m, q, qd)
        for ours, name in (
            (H, "H"), (C, "C"), (G, "G"), (gamma, "gamma"), (position, "position_error"),
            (rate, "velocity_error"),
        ):  # fmt: skip
            assert off(ours, s[name]) < 1e-12, name


@pytest.mark.parametrize("method", saddle.METHODS)
def test_the_methods_in_numpy_solve_their_system(method):
    rng = np.random.default_rng(4)
    A, G = rng.normal(size=(6, 6)), rng.normal(size=(2, 6))
    H, f, k = A @ A.T + np.eye(6), rng.normal(size=6), rng.normal(size=2)
    x, multipliers = saddle.METHODS[method](H, G, f, k)
    assert H @ x == pytest.approx(f + G.T @ multipliers, abs=1e-12)
    assert G @ x == pytest.approx(k, abs=1e-12)


def test_spatial_v2s_history_by_a_quadrature():
    """The work of the torque is kinetic energy: m y'^2 / 2 = y, so dt = sqrt(m / (2 y)) dy."""
    tree, history = spatial_v2_states.plain("planar2g"), spatial_v2.golden("planar2g_sim")

    def root(u):  # y = u^2: no singularity at the start
        y = u * u
        q, G = np.array([y, 2.0 * np.sin(y)]), np.array([1.0, 2.0 * np.cos(y)])
        H, _ = plain_tree.inertia_and_bias(tree, plain_tree.moved(tree, q, np.zeros(2)))
        return np.sqrt(2.0 * G @ H @ G)

    nodes, weights = np.polynomial.legendre.leggauss(40)
    half = 0.5 * np.sqrt(history["q"][-1][0])
    duration = half * sum(w * root(half * (1.0 + x)) for x, w in zip(nodes, weights, strict=True))
    assert duration == pytest.approx(history["t"][-1], abs=1e-9)


def test_accelerations_by_hand_are_those_of_a_pendulum():
    bar = by_hand.Moving(2.0, 0.3, lambda a: mp.cos(a) / 2, lambda a: mp.sin(a) / 2, lambda a: a)
    _, v, a = by_hand.accelerations([bar], [lambda a: a], 0.7, 1.3, (0.0, -9.81), effort=0.4)
    assert v == [pytest.approx(1.3)]
    assert a == [pytest.approx((0.4 - 9.81 * np.cos(0.7)) / (0.5 + 0.3), rel=1e-14)]


# ------------------------------------------------------------------------------------ states


@pytest.mark.parametrize(
    "name",
    few([q.name for q in QUESTIONS], ["spatial_v2, fourbar", "RBDL, spatial3", "SymPy's four bar"]),
)
def test_all_methods_give_the_published_numbers(name):
    for line in question(name).answer():
        known_wrong = ("multipliers", "impulses") if line.solver == "RBDL, null-space" else ()
        for quantity, value in line.errors.items():
            if quantity in known_wrong:
                assert value > 0.1
            else:
                assert value < 1e-11, (line.solver, quantity)


@pytest.mark.parametrize("name", sympy_five.FIVE)
def test_counts_of_sympys_five(name):
    counts = sympy_five.published(name)
    assert sympy_five.sympy_counts(name) == counts == sympy_five.holoctl_counts(name)


# -------------------------------------------------------------------------------- simulations


@pytest.mark.parametrize("problem", [elsewhere.CAM, elsewhere.BARS], ids=lambda p: p.name)
def test_the_examples_of_others_start_where_their_references_do(problem):
    mech, q, v = problem.make()
    assert positions(mech.model, q, problem.points)[0] == pytest.approx(
        problem.reference()[0], abs=1e-12
    )
    assert closure(mech, [q], [v]) < 1e-12


def test_the_reference_of_rbdls_four_bar_keeps_its_energy():
    one = elsewhere.bars()
    E = one.energy(*one.motion(elsewhere.BAR_TIMES, elsewhere.BAR_START, elsewhere.BAR_RATE))
    assert np.ptp(E) < 1e-10 * np.abs(E).max()


def test_rbdls_four_bar():
    mech, run, _ = own.simulated(elsewhere.BARS)
    assert error(elsewhere.BARS, positions(mech.model, run.q, elsewhere.BARS.points)) < 1e-7


@pytest.mark.slow
def test_spatial_v2s_cam():
    mech, run, _ = own.simulated(elsewhere.CAM)
    assert error(elsewhere.CAM, positions(mech.model, run.q, elsewhere.CAM.points)) < 1e-9


# ----------------------------------------------------------------------------------- linkages


@pytest.mark.parametrize("x", textbook.LINKAGES, ids=lambda x: x.name)
def test_screws_tell_the_mobility_of_the_textbooks(x):
    drawing = x.drawing()
    joints = [(kind, a, b, p.rotation, p.translation) for _, kind, a, b, p, _ in drawing.joints]
    assert screws.mobility(joints) == drawing.truth.dof


@pytest.mark.parametrize(
    "name",
    few([x.name for x in textbook.LINKAGES],
        ["Peaucellier's inversor", "Chebyshev's line", "Bennett's loop", "Sarrus' linkage"]),
)  # fmt: skip
def test_facts_of_the_textbooks(name):
    found = posed.judged(linkage(name))
    assert found.deviation < 1e-12
    assert found.holoctl == found.truth != found.gruebler
    assert found.redundant[0] == found.redundant[1]


def test_a_fact_tells_a_mechanism_that_is_off():
    """A tip of Peaucellier's inversor that is drawn elsewhere does not run on the line."""
    x = linkage("Peaucellier's inversor")
    moved = posed.postures(x, x.drawing().mechanism(), 5)
    assert max(x.deviation(p) for p in moved) < 1e-12
    tips = [p.at("out_1", (0.8, 0.5))[0] for p in moved]
    assert np.ptp(tips) > 1e-3


# ---------------------------------------------------------------------------------- histories


def written_histories(folder, last=0.8):
    """Files as they are published, of motions that we know: readings, one slower by 1e-3."""
    made = {}

    def put(name, count, reading, row, late=0.0):
        t = np.linspace(0.0, last, count)
        a, rate = histories.spatial(512, reading).motion(t * (1.0 - late), 0.0, 6.0)
        x = np.array([histories.slider_at(angle) for angle in a]) + histories.OFFSET.get(name, 0.0)
        lines = [row.format(*numbers) for numbers in zip(t, x, a, rate, strict=True)]
        (folder / histories.FILES[name]).write_text("\n".join([*lines, ""]), encoding="utf-8")
        made[name] = t, x

    a, b, c = histories.READINGS.values()
    put("Gonzalez", 81, a, "{0:g}, {1:.9g}")
    put("Masarati", 201, a, "{0:.12e},{1:.12e},{2:.12e}", late=1e-3)
    put("Masoudi", 49, b, "{0:.9g}\t        {1:.9g}\t{2:.9g}")
    put("Bushan", 49, c, "{0:.9f}, {1:.9f}, {2:.9f}")
    put("Chaojie", 41, c, "{0:g},{1:.9g},{2:.9g}")
    put("Zhou", 161, b, "{0:.7e}, {1:.7e}, {3:.7e}, {2:.7e}", late=2e-2)
    return made


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("histories")
    return written_histories(folder), histories.compared(folder, "Made up.")


def test_a_history_is_nearest_to_its_reading(compared):
    made, found = compared
    of = {h.name: h for h in found.histories}
    assert {name: h.rows for name, h in of.items()} == {n: len(t) for n, (t, _) in made.items()}
    for name, key in (("Gonzalez", "a"), ("Masoudi", "b"), ("Bushan", "c"), ("Chaojie", "c")):
        assert of[name].whole[key] < 1e-7
        assert min(d for k, d in of[name].whole.items() if k != key) > 1e-3
        assert of[name].soon == of[name].whole
    assert 1e-4 < of["Masarati"].whole["a"] < 1e-3
    assert [h.name for h in found.histories][:2] == ["Gonzalez", "Masarati"]
    assert found.from_theory < 2e-8


def test_two_histories_differ_from_an_instant_on(compared):
    _, found = compared
    of = {frozenset((x.one, x.other)): x for x in found.pairs}
    assert len(of) == 15
    same = of[frozenset(("Bushan", "Chaojie"))]
    assert same.distance < histories.VISIBLE / 2.0  # of the spline
    assert same.first is None
    a, b = (histories.READINGS[key] for key in "ab")
    t = np.linspace(0.0, 0.8, 49)
    off = np.abs(histories.theory(a, t) - histories.theory(b, t))
    other = of[frozenset(("Gonzalez", "Masoudi"))]
    assert other.distance == pytest.approx(off.max(), abs=2e-4)
    assert other.first == pytest.approx(t[off > histories.VISIBLE][0], abs=0.02)


def test_a_history_in_slow_motion_has_lost_energy(compared):
    """Its kinetic energy is less by 2e-3; the other part is that of gravity."""
    lost = compared[1].lost
    assert [t for t, _ in lost] == [pytest.approx(0.68), pytest.approx(0.792)]
    assert all(1e-4 < part < 1e-2 for _, part in lost)
    t = np.linspace(0.0, 0.8, 201)
    steady, _ = histories.spatial().motion(t, 0.0, 6.0)
    for _, part in histories.energy_lost(np.stack([t, t, steady], axis=1)):
        assert abs(part) < 5e-6


def test_what_is_kept_are_distances(compared, tmp_path):
    made, found = compared
    file = tmp_path / "kept.json"
    file.write_text(histories.stored(found), encoding="utf-8")
    kept = histories.kept(file)
    assert (kept.date, kept.note) == (found.date, "Made up.")
    for x, y in zip(kept.pairs, found.pairs, strict=True):
        assert x.distance == pytest.approx(y.distance, rel=0.06)
    assert kept.histories[0].whole == pytest.approx(found.histories[0].whole, rel=0.06)
    assert histories.kept(tmp_path / "none.json") is None
    section = disagreement.disagreement(kept)
    for name in made:
        assert section.count(f"\n| {name} ") == 2
    assert "Made up." in section


def test_files_that_are_not_there_or_not_histories_are_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="Gonzalez"):
        histories.compared(tmp_path)
    bad = tmp_path / "bad.txt"
    for text, said in (
        ("0, 0.2\n0, 0.2\n1, 0.3\n2, 0.3\n3, 0.3", "increase"),
        ("1\n2\n3\n4\n5", "rows"),
    ):
        bad.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=said):
            histories.rows(bad)


@pytest.mark.parametrize("key", few(histories.READINGS, ["c"]))
def test_holoctl_simulates_every_reading(key):
    reading = histories.READINGS[key]
    times = histories.SPATIAL_TIMES
    assert histories.slider(reading, times) == pytest.approx(
        histories.theory(reading, times), abs=2e-8
    )


# ----------------------------------------------------------------------------------- the page


def test_the_pages_are_whole():
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    firsts = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    for name in (
        *(q.name for q in QUESTIONS), *(x.name for x in textbook.LINKAGES),
        *(name.replace("_", " ") for name in sympy_five.FIVE),
    ):  # fmt: skip
        assert firsts.count(name) == 1, name
    for name in histories.FILES:
        assert firsts.count(name) == 2, name
    for x in QUESTIONS:
        assert x.source in text
    for name in pictures.NAMES:
        assert f"(pictures/referee-{name}.png)" in text
        assert (PAGE.parent / "pictures" / f"referee-{name}.png").is_file()


def test_the_data_of_the_pictures():
    path = PAGE.with_suffix(".json")
    assert path.stat().st_size < LARGEST
    data = json.loads(path.read_text(encoding="utf-8"))
    assert {row[1] for row in data["table"]} >= {"holoctl", "published methods"}
    assert set(data) == {"table", "precision", "energy"}
    assert len(data["precision"]) == 2
    assert "holoctl" in data["energy"]["of"]


def test_the_page_is_that_of_what_is_kept():
    """Its beginning and the page of the histories: `--rewrite` would change nothing."""
    text = PAGE.read_text(encoding="utf-8")
    rows = json.loads(PAGE.with_suffix(".json").read_text(encoding="utf-8"))["table"]
    kept = histories.kept(PAGE.with_name("referee-histories.json"))
    assert score.rewritten(text, rows, kept) == text
    histories_page = PAGE.with_name(disagreement.PAGE).read_text(encoding="utf-8")
    assert disagreement.disagreement(kept) == histories_page
    assert {h.name for h in kept.histories} == set(histories.FILES)


def test_the_verdict_at_the_top():
    rows = [
        ("one", "holoctl, auto", 1.0, 1e-8), ("one", "MuJoCo, RK4", 0.5, 2.0),
        ("two", "holoctl", 1.0, 1e-6), ("two", "Exudyn", 2.0, 1e-7),
        ("three", "holoctl", 1.0, 1e-9),
    ]  # fmt: skip
    first, second = opening.verdict(rows)
    assert "at most 1e-06 m in all 3 simulations" in first
    assert "in 1 of the 2 that others simulated too. In 1 of these another" in first
    assert "in 1 of the 2 another program takes less" in second
    assert opening.verdict(rows[-1:]) == [
        "holoctl's error is at most 1e-09 m in all 1 simulations; no other program was there."
    ]
    failed = [*rows, ("four", "MuJoCo, RK4", 1.0, 1e-3)]
    assert "at most 1e-06 m in 3 of 4 simulations" in opening.verdict(failed)[0]
    assert opening.verdict(failed[-1:]) == ["holoctl simulated none of them."]


def test_a_page_can_be_rewritten():
    kept = histories.kept(PAGE.with_name("referee-histories.json"))
    pages = score.pages(score.Found(histories=kept), "make referee", 1.0)
    assert set(pages) == {"referee.md", disagreement.PAGE}
    page = pages["referee.md"]
    assert "\nWritten by `make referee` in 1 s" in page
    assert score.rewritten(page, [], kept) == page
    later = replace(kept, date="2100-01-01")
    assert "2100-01-01. " in disagreement.disagreement(later)
    with pytest.raises(ValueError, match="no 'Written by"):
        score.rewritten("another page", [], kept)
