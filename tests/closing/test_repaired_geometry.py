"""Rounded mechanisms made exact again: all rows close along motions that were not used."""

from __future__ import annotations

import dataclasses

import numpy as np
import overconstrained as oc
import pinocchio as pin
import pytest
from overconstrained_drawing import Drawing, Truth
from refusals import refused
from support import few, rows

import holoctl as hc

NAMES = (
    "bennett", "trihedral_bricard", "kaleidocycle_6", "sarrus", "spherical_4", "miura_vertex",
    "cardan_z", "four_bar", "rails_2", "rods_and_bushes", "jansen", "scissors_3",
    "geared_parallelogram",
)  # fmt: skip
EPS = (1e-9, 1e-7, 1e-5)
QUICK = ("bennett", "sarrus", "four_bar")
EVERY = few(NAMES, QUICK)
EXACT = ("jansen", "bennett", "rssr", "wren_6", "seven_hinges")
MISFITS = ("bennett", "four_bar", "sarrus", "jansen", "rails_2")
ELSEWHERE = ("sarrus", "cardan_z", "altmann", "kaleidocycle_6", "schatz")


def scaled_sizes(result: hc.results.RepairedGeometry, length: float) -> list[float]:
    return [
        max(np.linalg.norm(m.translation) / length, np.linalg.norm(m.rotation))
        for m in result.moves
    ]


def assert_exact(mech: hc.Mechanism, rank: int, count: int = 6) -> None:
    """Closed again from far along the motion, all rows close, and the rank is beyond doubt."""
    q, _ = hc.assemble(mech)
    rng = np.random.default_rng(5)
    gone = 0.0
    for _ in range(count):
        P = hc.partition(mech, q)
        assert (P.rank, P.uncertain) == (rank, False)
        r = rows(mech, q, np.zeros(mech.nv))
        G = mech.row_scale[:, None] * r.jacobian * mech.column_scale
        _, s, vt = np.linalg.svd(G)
        assert (s[rank:] < 1e-11).all()
        assert np.abs(mech.row_scale * r.error).max() <= 1e-12
        z = vt[rank:].T @ rng.normal(size=mech.nv - rank)
        step = 0.3 * mech.column_scale * z / np.abs(z).max()
        x, _ = hc.assemble(mech, pin.integrate(mech.model, q, step))
        gone += float(np.abs(pin.difference(mech.model, q, x) / mech.column_scale).max())
        q = x
    assert gone > 0.1 * count


@pytest.mark.parametrize("seed", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in (1, 2))])
@pytest.mark.parametrize("eps", [1e-5, *(pytest.param(e, marks=pytest.mark.slow) for e in EPS[:2])])
@pytest.mark.parametrize("name", EVERY)
def test_it_is_exact_along_the_motion(name, eps, seed):
    drawing, mech = oc.drawn(name)
    rank = mech.nv - drawing.truth.dof
    length = float(np.median(1.0 / mech.row_scale[mech.row_scale != 1.0]))
    result = hc.repaired_geometry(oc.meant(mech, eps, seed))
    assert result.tolerance == 100.0 * eps
    assert result.mech.tolerance == 0.0
    assert 0.1 * eps < result.error_before < 100.0 * eps
    assert result.error_after <= 1e-12
    assert 0.1 * eps < max(scaled_sizes(result, length)) < 5.0 * eps
    assert_exact(result.mech, rank)


@pytest.mark.parametrize("name", EVERY)
def test_the_doctor_then_says_what_it_says_of_the_drawing(name):
    drawing, mech = oc.drawn(name)
    exact, found = (hc.mobility(m) for m in (mech, hc.repaired_geometry(oc.meant(mech, 1e-6)).mech))
    assert (found.finite_dof, found.dof) == (drawing.truth.dof, exact.dof)
    assert len(found.idle) == len(exact.idle) == drawing.truth.idle
    assert len(found.redundant) == len(exact.redundant)
    assert (found.weak, found.uncertain) == (exact.weak, False)
    assert found.ok


@pytest.mark.parametrize("name", few(["bennett", "four_bar", "wishbones"], ["four_bar"]))
def test_numbers_of_a_file(name):
    """Six decimals, no tolerance given: that of files."""
    drawing, _ = oc.drawn(name)
    mech = oc.in_digits(drawing.mechanism(askew=True), 6)
    result = hc.repaired_geometry(mech)
    assert result.tolerance == 1e-4
    assert max(scaled_sizes(result, 0.1)) < 1e-5
    assert_exact(result.mech, mech.nv - drawing.truth.dof, 3)


def test_moves_are_small_beside_what_was_rounded():
    """The least that does it: less than the rounding itself, of which only a part matters."""
    _, mech = oc.drawn("bennett")
    model = mech.model.copy()
    shift = pin.SE3(np.eye(3), np.array([0.0, 0.0, 1e-6]))
    model.jointPlacements[2] = model.jointPlacements[2] * shift
    result = hc.repaired_geometry(dataclasses.replace(mech, model=model, tolerance=1e-4))
    total = np.linalg.norm([np.linalg.norm(m.translation) for m in result.moves])
    assert 1e-7 < total < 1e-6


@pytest.mark.parametrize("name", few(EXACT, EXACT[::3]))
def test_what_is_exact_does_not_move(name):
    _, mech = oc.drawn(name)
    result = hc.repaired_geometry(mech)
    assert result.moves == ()
    assert result.mech is mech
    assert result.error_after <= 1e-12
    assert "exact already" in str(result)


def test_without_rows_there_is_nothing_to_do():
    mech = hc.load(hc.robot_file("four_bar")).without("pin")
    assert hc.repaired_geometry(mech).moves == ()


def ladder() -> hc.Mechanism:
    """A parallelogram with a rod beside its coupler, a point in a plane, and a copy of one angle:
    each repeats what is so anyway."""
    drawing = Drawing("ladder", Truth(1, 3))
    drawing.pins([
        ("universe", "left", (0.0, 0.0)), ("left", "coupler", (0.1, 1.0)),
        ("coupler", "right", (2.1, 1.0)), ("universe", "right", (2.0, 0.0)),
    ])  # fmt: skip
    mech = drawing.mechanism()
    data = mech.model.createData()
    pin.forwardKinematics(mech.model, data, mech.reference)

    def at(body: str, point: tuple[float, float, float]) -> tuple[str, pin.SE3]:
        frame = hc.protocols.resolve_frame(mech.model, body, "ladder")
        place = pin.SE3(np.eye(3), np.array(point))
        return mech.model.names[frame.joint], data.oMi[frame.joint].inverse() * place

    return mech.with_constraints(
        hc.Rod(at("left", (0.05, 0.5, 0.1)), at("right", (2.05, 0.5, 0.1)), name="rod"),
        hc.Contact(at("coupler", (1.0, 1.2, 0.0)), tangents=False, name="plane"),
    )


@pytest.mark.parametrize("eps", few(EPS, [1e-7]))
def test_rods_and_contacts_move_too(eps):
    mech = ladder()
    assert hc.mobility(mech).finite_dof == 1
    result = hc.repaired_geometry(oc.meant(mech, eps))
    assert_exact(result.mech, 2)
    assert {"rod.a", "rod.b", "plane.frame"} & {m.name for m in result.moves}


def test_lengths_taken_from_the_reference_stay():
    mech = dataclasses.replace(ladder(), tolerance=1e-4)
    model = mech.model.copy()
    model.jointPlacements[1].translation += np.array([0.0, 0.0, 1e-6])
    bent = dataclasses.replace(mech, model=model)
    length, ground = bent.bound[1].size[0], bent.bound[2].frames1[0].placement
    result = hc.repaired_geometry(bent)
    assert result.moves
    assert result.mech.bound[1].size[0] == length
    assert result.mech.bound[2].frames1[0].placement == ground


def test_constraints_without_frames_must_hold_and_do_not_move():
    """The gears of one, and the hinges of the other, mean the same."""
    _, mech = oc.drawn("geared_parallelogram")
    result = hc.repaired_geometry(oc.meant(mech, 1e-6))
    assert [c for c in result.mech.constraints if isinstance(c, hc.Coupling)] == [
        c for c in mech.constraints if isinstance(c, hc.Coupling)
    ]


@pytest.mark.parametrize("name", few(MISFITS, QUICK[::2]))
def test_parts_that_do_not_fit_are_refused(name):
    _, mech = oc.drawn(name)
    for amount in (1e-2, 1e-3):
        with pytest.raises(hc.AssemblyError) as error:
            hc.repaired_geometry(oc.misfit(mech, amount, 0))
        assert error.value.worst
        assert error.value.residual > 1e-6
        assert error.value.worst[0][0] in str(error.value)


@pytest.mark.parametrize(
    "name",
    few(ELSEWHERE, ELSEWHERE[:2]),
)
def test_what_closes_exactly_only_elsewhere_and_rigid_is_not_exact_already(name):
    _, mech = oc.drawn(name)
    loose = dataclasses.replace(oc.rounded(mech, 1e-3), tolerance=1e-5)
    refused(
        lambda: hc.repaired_geometry(loose), hc.AssemblyError, "cannot move", "larger tolerance"
    )


def test_a_coupling_that_contradicts_cannot_be_helped_by_moving():
    """A parallelogram turns its cranks alike; a ratio that is off adds up on the way."""
    gear = hc.Coupling({"base_left": 1.0, "base_right": -1.00002}, name="gear")
    mech = dataclasses.replace(ladder().with_constraints(gear), tolerance=1e-4)
    error = refused(lambda: hc.repaired_geometry(mech), hc.AssemblyError, "no geometry near")
    assert error.residual > 1e-7


@pytest.mark.parametrize("name", ["folded_parallelogram", "flat_miura_vertex", "stretched_bars"])
@pytest.mark.parametrize("eps", few([1e-7, 1e-5], [1e-5]))
def test_singular_where_it_is_asked_about_is_refused(name, eps):
    _, mech = oc.drawn(name)
    with pytest.raises(hc.AssemblyError, match="singular"):
        hc.repaired_geometry(oc.meant(mech, eps))


def test_arguments_are_checked():
    mech = hc.load(hc.robot_file("four_bar"))
    for options in ({"tolerance": 0.0}, {"tolerance": 0.1}, {"seed": -1}, {"q": [0.0]}):
        refused(lambda options=options: hc.repaired_geometry(mech, **options))
    refused(lambda: hc.repaired_geometry("four_bar"))


def test_the_table_starts_with_the_largest():
    _, mech = oc.drawn("four_bar")
    result = hc.repaired_geometry(oc.meant(mech, 1e-6))
    text = str(result)
    places = [text.index(f"  {move.name} ") for move in result.moves]
    assert places == sorted(places)
    assert "moved, m" in text
