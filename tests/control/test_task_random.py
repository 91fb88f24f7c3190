"""Tasks at random: any two bodies, axes, law and posture; right, or refused, on either path."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from support import few, relative
from task_mechanisms import (
    NAMES,
    WithoutTick,
    acceleration_of,
    of,
    partition_of,
    reference_near,
    states_of,
)

import holoctl as hc

AXES = ("x", "y", "z", "rx", "ry", "rz")
SOUND = [name for name in NAMES if not name.startswith("shared")]  # no bodies of 1e-9 kg
QUICK = ["floating_leg", "universal_rods", "our leg"]


def some_task(mech, most, rng):
    """A frame on a body, seen from another one; None where these never move."""
    body, other = (int(j) for j in rng.choice(mech.model.njoints, 2, replace=False))
    frames = [
        (mech.model.names[j], pin.SE3(pin.exp3(rng.normal(size=3)), 0.2 * rng.normal(size=3)))
        for j in (body, other)
    ]
    axes = [str(a) for a in rng.permutation(AXES)[: rng.integers(1, min(6, most) + 1)]]
    return hc.FrameTask(frames[0], axes, relative_to=frames[1], local=bool(rng.integers(2)))


def some_law(mech, part, rows, rng):
    """A function of a task that gives its controller; and whether it asks for accelerations."""
    options = {"partition": part, "at_singular": ("raise", "damp")[rng.integers(2)]}
    K, D, Ld = (size * np.eye(rows) for size in (100.0, 20.0, 2.0))
    kind = int(rng.integers(4))
    if kind == 0:
        return lambda task: hc.TaskSpaceControl(mech, task, K, D, **options), True
    given = [(K, D), (K, "critical"), (K, "critical", Ld)][kind - 1]
    return lambda task: hc.Impedance(mech, task, *given, **options), False


@pytest.mark.parametrize("seed", few(range(6), [0]))
@pytest.mark.parametrize("name", few(SOUND, QUICK))
def test_it_is_right_or_refused(name, seed):
    mech, part = of(name), partition_of(name)
    rng = np.random.default_rng(100 * seed + len(name))
    for _ in range(8):
        q, v = states_of(name)[rng.integers(3)]
        task = some_task(mech, part.actuation_rank, rng)
        law, exact = some_law(mech, part, len(task.axes), rng)
        reference = reference_near(mech, q, v, task, int(rng.integers(1000)))
        found = []
        for own in (task, WithoutTick(task)):
            follow = law(own).track(lambda t: reference)  # noqa: B023
            try:
                found.append((follow(0.0, q, v), follow.last.damping))
            except hc.SingularityError as error:
                found.append(error)
        if any(isinstance(x, hc.SingularityError) for x in found):
            assert isinstance(found[0], hc.SingularityError), (task, found)
            assert isinstance(found[1], hc.SingularityError), (task, found)
            continue
        (u, damping), (again, other) = found
        terms = hc.task_terms(hc.project(mech, q, v, partition=part), task)
        tol = 1e-9 * max(1.0, terms.condition)
        assert relative(u, again) < tol, task
        assert damping == other, task
        if exact and damping == 0.0:
            bound = task.bind(mech)
            e = bound.error(terms.value, bound.wanted(reference[0]))
            xdd = reference[2] + 20.0 * (reference[1] - terms.rate) + 100.0 * e
            assert relative(acceleration_of(mech, task, q, v, u, part), xdd) < tol, task


@pytest.mark.parametrize("seed", few(range(6), [0]))
@pytest.mark.parametrize("name", few(SOUND, QUICK))
def test_several_are_right_or_refused(name, seed):
    """By priority or weights, more rows than motions too: on either path, and the first one as if
    it were alone."""
    mech, part = of(name), partition_of(name)
    rng = np.random.default_rng(100 * seed + len(name))
    for _ in range(6):
        q, v = states_of(name)[rng.integers(3)]
        count = int(rng.integers(2, 4))
        tasks = [some_task(mech, part.actuation_rank, rng) for _ in range(count)]
        weights = rng.uniform(0.1, 10.0, count) if rng.integers(2) else None
        options = {"partition": part, "at_singular": ("raise", "damp")[rng.integers(2)]}
        references = [reference_near(mech, q, v, task, int(rng.integers(1000))) for task in tasks]
        found = []
        for own in (tasks, [WithoutTick(task) for task in tasks]):
            ctl = hc.TaskSpaceControl(mech, own, 100.0, 20.0, task_weights=weights, **options)
            follow = ctl.track(lambda t: references)  # noqa: B023
            try:
                found.append((follow(0.0, q, v), follow.last.damping))
            except hc.SingularityError as error:
                found.append(error)
        if any(isinstance(x, hc.SingularityError) for x in found):
            assert isinstance(found[0], hc.SingularityError), (tasks, found)
            assert isinstance(found[1], hc.SingularityError), (tasks, found)
            continue
        (u, damping), (again, other) = found
        assert relative(u, again) < 1e-6, (tasks, weights, options)
        assert damping == pytest.approx(other, rel=1e-6, abs=1e-12), tasks
        alone = hc.TaskSpaceControl(mech, tasks[0], 100.0, 20.0, **options)
        follow = alone.track(lambda t: references[0])  # noqa: B023
        if weights is None and len(tasks[0].axes) <= part.actuation_rank:
            only = follow(0.0, q, v)
            if follow.last.damping == 0.0:
                xdd = acceleration_of(mech, tasks[0], q, v, only, part)
                off = acceleration_of(mech, tasks[0], q, v, u, part) - xdd
                size = np.abs(xdd).max() + np.abs(u).max() * 1e-2
                assert np.abs(off).max() < 1e-7 * size, tasks
