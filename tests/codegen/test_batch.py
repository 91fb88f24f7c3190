"""Many states at once, and many threads: the same numbers as a loop."""

from __future__ import annotations

import sys
import threading
import time

import numpy as np
import pytest
from expressed import case, compiled, five_bar, states
from support import closed_states, mechanism, relative

import holoctl as hc


def many(name, count, seed=0):
    mech, _ = case(name)
    rng, given = np.random.default_rng(seed), states(name, "closed", 20)
    which = rng.integers(0, len(given), count)
    Q, V = (np.array([given[i][k] for i in which]) for k in range(2))
    return Q, V, rng.normal(size=(count, mech.nu))


@pytest.mark.parametrize("workers", [None, 1, 3])
def test_a_batch_is_the_loop(workers):
    f = compiled("floating_leg")
    Q, V, T = many("floating_leg", 500)
    expected = np.array([f.inverse_dynamics(*row) for row in zip(Q, V, T, strict=True)])
    out = np.zeros((500, 3))
    U = f.inverse_dynamics_batch(Q, V, T, workers=workers, out=out)
    assert U is out
    assert (expected == U).all()
    assert (f.inverse_dynamics_batch(Q.tolist(), np.asfortranarray(V), T) == expected).all()
    assert f.inverse_dynamics_batch(Q[:0], V[:0], T[:0]).shape == (0, 3)


def test_states_of_a_batch_that_trip_are_computed_in_python():
    f = compiled("floating_leg")
    Q, V, T = many("floating_leg", 50)
    expected = f.inverse_dynamics_batch(Q, V, T)
    Q[[3, 40]] = Q[[3, 40]].astype(np.float32)
    count = f.fallbacks
    U = f.inverse_dynamics_batch(Q, V, T)
    assert f.fallbacks == count + 2
    assert relative(U, expected) < 1e-4
    assert (U[4:40] == expected[4:40]).all()


def test_errors_of_a_batch_tell_the_state():
    f = five_bar()
    Q, V, T = many("five_bar", 30)
    V[17, 2] = np.nan
    with pytest.raises(hc.InputError, match=r"v.*finite") as caught:
        f.inverse_dynamics_batch(Q, V, T)
    assert "at state 17 of the batch" in caught.value.__notes__
    for args, word in (
        ((Q[:, :3], V, T), "Q must have shape"),
        ((Q[0], V, T), "Q must have shape"),
        ((Q, V[:5], T), "as many rows"),
        ((Q, V, "ab"), "T must be an array"),
    ):
        with pytest.raises(hc.InputError, match=word):
            f.inverse_dynamics_batch(*args)
    with pytest.raises(hc.InputError, match="workers"):
        f.inverse_dynamics_batch(Q, V, T, workers=0)
    with pytest.raises(hc.InputError, match="contiguous"):
        f.inverse_dynamics_batch(Q, V, T, out=np.zeros((60, 2))[::2])


def test_a_batch_shows_its_progress_if_asked(capsys, monkeypatch):
    f = five_bar()
    Q, V, T = many("five_bar", 30)
    f.inverse_dynamics_batch(Q, V, T)
    assert capsys.readouterr().err == ""
    f.inverse_dynamics_batch(Q, V, T, progress=True)
    assert "inverse dynamics" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tqdm", None)
    f.inverse_dynamics_batch(Q, V, T, progress=True)
    assert capsys.readouterr().err == ""


def test_a_batch_does_not_hold_the_interpreter():
    """Another thread goes on while one call works."""
    f = compiled("weld_chain", ("inverse_dynamics",))
    Q, V, T = (np.tile(x, (400, 1)) for x in many("weld_chain", 500))
    ticks, done = [], threading.Event()

    def count():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(1e-3)

    thread = threading.Thread(target=count)
    thread.start()
    start = time.perf_counter()
    f.inverse_dynamics_batch(Q, V, T, workers=1)
    stop = time.perf_counter()
    done.set()
    thread.join()
    during = sum(start < t < stop for t in ticks)
    assert during > 0.05 * (stop - start) / 1e-3


def test_threads_share_one():
    f = compiled("weld_chain", ("inverse_dynamics",))
    given = states("weld_chain", "closed", 20)
    target = np.ones(2)
    expected, wrong = [f.inverse_dynamics(q, v, target) for q, v in given], []

    def work(seed):
        for i in np.random.default_rng(seed).integers(0, len(given), 1000):
            if (f.inverse_dynamics(*given[i], target) != expected[i]).any():
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_batch_may_write_into_its_targets():
    f = compiled("five_bar", ("inverse_dynamics",))
    states = [closed_states("five_bar")[i % 3] for i in range(40)]
    Q, V = (np.array([s[i] for s in states]) for i in range(2))
    Q[7] = np.add(mechanism("five_bar").reference, [np.pi, 0.3, -1.0, 2.0])  # far off
    T = np.random.default_rng(0).normal(size=(41, 2))
    wanted = f.inverse_dynamics_batch(Q, V, T[1:].copy())
    for first in (1, 0):  # the targets themselves, and the rows one ahead of them
        buffer = T.copy()
        out = buffer[first : first + 40]
        np.testing.assert_array_equal(f.inverse_dynamics_batch(Q, V, buffer[1:], out=out), wanted)
