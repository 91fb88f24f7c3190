"""What a call without `partition=` takes where geometry is rounded, and what it decides."""

from __future__ import annotations

import dataclasses

import numpy as np
import overconstrained as oc
import pinocchio as pin
import pytest
from support import few

import holoctl as hc
from holoctl.base.errors import HoloctlError
from holoctl.closing import newton, rank
from holoctl.projector.partition import nearest_partition

NAMES = few(
    ("bennett", "kaleidocycle_6", "door_3", "jansen", "hoberman_6", "delta_hinged", "miura_3x3"),
    ("bennett", "door_3", "hoberman_6"),
)


def evaluations(monkeypatch, call):
    """How often all rows were evaluated."""
    count = 0
    with monkeypatch.context() as patch:
        for module, name in ((newton, "constraint_rows"), (rank, "rows_at")):
            evaluated = getattr(module, name)

            def counted(*arguments, rows=evaluated):
                nonlocal count
                count += 1
                return rows(*arguments)

            patch.setattr(module, name, counted)
        call()
    return count


@pytest.mark.parametrize("name", NAMES)
def test_rounded_geometry_takes_ten_times_as_long_as_exact_one_at_the_most(name, monkeypatch):
    exact = dataclasses.replace(oc.drawn(name)[1], tolerance=1e-4)
    counts = []
    for mech in (exact, oc.meant(exact, 1e-6)):
        q, v = hc.assemble(mech)
        rest = np.zeros(mech.nv)

        def law(mech=mech, q=q, v=v, rest=rest):
            hc.inverse_dynamics(mech, q, v, rest, coordinates="all", inconsistent="project")

        counts.append(evaluations(monkeypatch, law))
    assert counts[1] <= 10 * counts[0]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("eps", [1e-6, 1e-5])
def test_it_is_the_partition_of_the_nearest_closed_configuration(name, eps):
    """Decided at a state that is closed to within the tolerance, as behind sensors."""
    mech = oc.meant(oc.drawn(name)[1], eps)
    q, _ = hc.assemble(mech)
    for noise in (0.0, 0.1 * eps, eps):
        step = noise * mech.column_scale * np.random.default_rng(1).normal(size=mech.nv)
        x = pin.integrate(mech.model, q, step)
        found = nearest_partition(mech, x, 0.0)
        closed = hc.partition(mech, hc.assemble(mech, x)[0])
        assert found.rank == closed.rank
        assert found.tolerance == closed.tolerance == mech.tolerance
        assert found.rows.tolist() == closed.rows.tolist()
        assert found.independent.tolist() == closed.independent.tolist()


def test_exact_geometry_that_is_open_is_closed_before_anything_is_decided():
    exact = dataclasses.replace(oc.drawn("bennett")[1], tolerance=1e-4)
    q, _ = hc.assemble(exact)
    part = nearest_partition(exact, q + 1e-7, 0.0)
    assert part.tolerance == 0.0
    assert part.rank == hc.partition(exact, q).rank


@pytest.mark.parametrize("name", sorted(oc.SINGULAR))
def test_next_to_singular_configurations_it_is_the_same_or_refused_alike(name):
    mech = dataclasses.replace(oc.rounded(oc.drawn(name)[1], 1e-7), tolerance=1e-5)
    for x in (mech.reference, mech.reference + 1e-6):
        try:
            wanted = hc.partition(mech, hc.assemble(mech, x)[0])
        except HoloctlError as error:
            with pytest.raises(type(error)):
                nearest_partition(mech, x, 0.0)
        else:
            assert nearest_partition(mech, x, 0.0).rank == wanted.rank
