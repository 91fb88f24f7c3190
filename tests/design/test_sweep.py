"""Sweeps: every item has its value or its error, in its place, whatever becomes of workers."""

from __future__ import annotations

import math
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import sweep_functions as f
from refusals import assert_same_error, refused

import holoctl as hc
from holoctl.design.sweeps.chunk_evaluation import SWEEP_PATIENCE, ChunkResult, LostChunk, worked
from holoctl.design.sweeps.chunks import dealt_out

FAMILY = [
    hc.HoloctlError("root"),
    hc.InputError("wrong"),
    hc.NotActuatedError("no motor"),
    hc.LoadError("no", file="robot.yaml", key="name_mot", line=7),
    hc.AssemblyError("no", residual=0.5, worst=[("pin.x", 0.5)], q=np.arange(3.0)),
    hc.BranchError("no", why="dead point"),
    hc.LimitError("no", names=["crank"], residual=0.1, q=np.arange(2.0)),
    hc.SingularityError("no", condition=1e15, names=["crank", "rod"]),
    hc.InconsistentError("no", residual=0.25),
    hc.results.SweepError("no", item=3),
]


@pytest.fixture
def here():
    with ThreadPoolExecutor(1) as executor:
        yield executor


def left_behind():
    return [p for p in multiprocessing.active_children() if p.name == "holoctl sweep"]


# ---------------------------------------------------------------------------------- the value


def test_a_sweep_is_a_sequence(here):
    found = hc.sweep(math.sqrt, iter([4.0, -1.0, 9.0, -4.0]), here)
    assert (len(found), found[0], found[-2], found.failed) == (4, 2.0, 3.0, (1, 3))
    assert [i for i, _ in found.errors] == [1, 3]
    assert all(isinstance(error, ValueError) for _, error in found.errors)
    assert list(found) == list(found.values)
    assert found[::2] == (2.0, 3.0)
    said = "<Sweep: 4 items, 2 failed, the first: item 1, ValueError: math domain error>"
    assert repr(found) == said
    assert repr(pickle.loads(pickle.dumps(found))) == said
    with pytest.raises(ValueError, match="math domain"):
        found.raise_if_bad()
    good = hc.sweep(abs, range(2000), here)
    assert good.raise_if_bad() is good
    assert repr(good) == "<Sweep: 2,000 items, none failed>"
    assert good.errors == []
    assert good == good  # noqa: PLR0124


def test_a_value_that_is_an_error_is_no_failure(here):
    found = hc.sweep(f.troubled, ["returned", "exit"], here)
    assert found.failed == (1,)
    assert isinstance(found[0], ValueError)


def test_nothing_to_do_starts_nothing():
    assert repr(hc.sweep(f.squared, [])) == "<Sweep: 0 items, none failed>"
    assert hc.sweep(f.squared, iter(()), 2).values == ()


def test_a_progress_bar(here, capsys):
    hc.sweep(f.squared, range(5), here, progress=True)
    assert "sweep: 100%" in capsys.readouterr().err


# ------------------------------------------------------------------------------- on processes


def test_values_come_in_order_and_are_those_of_this_process():
    mech = hc.load(hc.robot_file("five_bar"))
    q, v = hc.assemble(mech)
    part = hc.partition(mech, q)
    states = [(q, v, [0.1 * i, 1.0]) for i in range(60)]
    states[7] = (*states[7][:2], [np.nan, 0.0])
    law = partial(f.torque, mech, part)
    found = hc.sweep(law, (state for state in states), 2)
    assert found.failed == (7,)
    assert isinstance(found[7], hc.InputError)
    assert any("sweep_functions.py" in note for note in found[7].__notes__)  # where it was raised
    for i, state in enumerate(states):
        if i != 7:
            np.testing.assert_array_equal(found[i], law(state))
    assert not left_behind()


def test_errors_and_values_of_every_kind_come_back():
    found = hc.sweep(f.raised, [*FAMILY, 1, KeyError("key")], 1)
    assert found.failed == (*range(len(FAMILY)), len(FAMILY) + 1)
    for error, given in zip(found, FAMILY, strict=False):
        del error.__notes__
        assert_same_error(error, given)
    kinds = ["fine", "stubborn", "local", "exit", "generator", "one way", "returned", "fine"]
    found = hc.sweep(f.troubled, [*kinds, OneWay := f.OneWay(False), f.OneWay(True), "fine"], 1)
    assert OneWay is not None
    assert found.failed == (1, 2, 3, 4, 5, 8, 9)
    assert [found[i] for i in (0, 7, 10)] == ["fine"] * 3
    words = {
        1: "Stubborn: this: that",
        2: "Local: of a class that nobody finds",
        3: "SystemExit: 3",
        4: "type generator",
        5: "RuntimeError: not to be unpickled",
        8: "not to be pickled",
        9: "not to be unpickled",
    }
    for i, text in words.items():
        assert isinstance(found[i], hc.results.SweepError)
        assert text in str(found[i])
        assert found[i].item == i


def test_a_worker_that_is_killed_costs_one_item():
    found = hc.sweep(f.killing, range(500), 2)
    assert found.failed == (37,)
    assert found[37].item == 37
    assert "item 37 of 500" in str(found[37])
    assert "killed by SIGKILL" in str(found[37])
    assert [x for i, x in enumerate(found) if i != 37] == [i for i in range(500) if i != 37]
    assert not left_behind()


def test_a_given_pool_that_breaks_loses_nothing_that_was_done():
    with ProcessPoolExecutor(2, multiprocessing.get_context("forkserver")) as pool:
        assert hc.sweep(f.squared, range(100), pool).values == tuple(i * i for i in range(100))
        found = hc.sweep(partial(f.killing, victim=250), range(300), pool)
        assert 250 in found.failed
        for i, x in enumerate(found):
            if i in found.failed:
                assert isinstance(x, hc.results.SweepError)
                assert x.item == i
                assert "BrokenProcessPool" in str(x)
            else:
                assert x == i
        words = "the executor takes no work", "BrokenProcessPool"
        refused(lambda: hc.sweep(f.squared, [1], pool), hc.InputError, *words)


def test_the_function_is_unpickled_once_a_worker(tmp_path):
    for executor in (2, None):
        log = tmp_path / "unpickled"
        log.unlink(missing_ok=True)
        workers = set(hc.sweep(f.Noted(str(tmp_path)), range(3000), executor))
        noted = log.read_text().split()
        assert len(noted) == len(set(noted)) <= 2
        assert workers <= set(map(int, noted))
    log.unlink()
    with ProcessPoolExecutor(1, multiprocessing.get_context("forkserver")) as pool:
        for _ in range(2):  # nor in the next sweep
            hc.sweep(f.Noted(str(tmp_path)), range(300), pool)
    assert len(log.read_text().split()) == 1


def test_workers_have_one_thread_and_random_numbers_of_their_own():
    found = hc.sweep(f.threads, range(4), 2)
    assert len({who for who, _, _ in found}) == 2
    assert all(of_blas == {1} for _, of_blas, _ in found)
    assert len({number for _, _, number in found}) == 4


def test_ctrl_c_leaves_nothing_behind():
    main = threading.main_thread().ident
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    threading.Timer(0.5, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
    begun = time.perf_counter()
    try:
        with pytest.raises(KeyboardInterrupt):
            hc.sweep(f.slept, [30.0] * 4, 2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.perf_counter() - begun < 5.0
    assert not left_behind()


def test_a_share_ends_when_patience_does():
    done = worked(f.slept, [0.0, 0.05, 0.0, 0.0], 0.02)
    assert (len(done.values), done.failed) == (2, [])
    assert len(worked(f.slept, [0.05, 0.0], 0.0).values) == 1


class Clockwork:
    """A crew by the clock on paper: items are what they take, s; a share costs `beside` more."""

    def __init__(self, width, beside=3e-4):
        self.width, self.beside, self.ended = width, beside, ""
        self.now, self.given, self.at = 0.0, 0, []

    room = property(lambda self: self.width - len(self.at))
    busy = property(lambda self: len(self.at))

    def give(self, share, items):
        spent, taken = 0.0, 0
        for item in items:
            spent, taken = spent + item, taken + 1
            if spent > SWEEP_PATIENCE:
                break
        done = ChunkResult(list(items[:taken]), [], spent, ("", 0, 0))
        self.at.append((self.now + spent + self.beside, share, done))
        self.given += 1

    def collect(self):
        end, share, done = min(self.at, key=lambda x: x[0])
        self.at.remove((end, share, done))
        self.now = end
        return [(share, done)]


SPREADS = {
    "microseconds": [5e-6] * 100_000,
    "a millisecond": [1e-3] * 2000,
    "seconds": [2.0] * 11,
    "one long": [1e-3] * 500 + [1.0] + [1e-3] * 3000,
    "longer and longer": np.geomspace(1e-5, 0.3, 3000).tolist(),
}


@pytest.mark.parametrize("name", SPREADS)
@pytest.mark.parametrize("width", [1, 2, 16])
def test_all_finish_together_and_shares_are_worth_it(name, width):
    items, crew = SPREADS[name], Clockwork(width)
    values, failed = dealt_out(crew, items, None)
    assert (values, failed) == (items, [])
    longest = max(items)
    assert crew.now <= 1.1 * sum(items) / width + 2.0 * longest + 0.02
    assert crew.given * crew.beside <= 0.05 * sum(items) + 0.05
    assert crew.given <= len(items)


class Faulty(Clockwork):
    """One that loses shares: those with a victim always, others now and then; and may end."""

    def __init__(self, width, victims, last, sure):
        super().__init__(width)
        self.rng, self.victims, self.last, self.sure = np.random.default_rng(0), victims, last, sure

    room = property(lambda self: 0 if self.given >= self.last else self.width - len(self.at))

    def collect(self):
        self.ended = "they went home" if self.given >= self.last else ""
        ((share, done),) = super().collect()
        items = range(share.start, share.stop)
        if self.victims & set(items):
            return [(share, LostChunk("it is a victim", sure=self.sure))]
        by_chance = self.rng.random() < 0.2 and (not self.sure or len(items) > 1)
        return [(share, LostChunk("by chance") if by_chance and self.busy else done)]


@pytest.mark.parametrize("sure", [True, False])
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("last", [10**6, 40])
def test_whatever_is_lost_every_item_has_its_value_or_its_error(width, last, sure):
    items = (1e-3 + 1e-6 * np.arange(1000)).tolist()
    victims = {0, 17, 500, 501, 999}
    values, failed = dealt_out(Faulty(width, victims, last, sure), items, None)
    assert len(values) == len(items)
    assert failed == sorted(set(failed))
    for i, (value, item) in enumerate(zip(values, items, strict=True)):
        assert isinstance(value, hc.results.SweepError) == (i in failed)
        assert value == item or (value.item == i and f"item {i} of 1000" in str(value))
    if last > len(items):
        assert set(failed) == victims
    else:
        rest = {i for i in failed if "was not begun: they went home" in str(values[i])}
        assert rest
        assert len(rest) < len(items)


# ------------------------------------------------------------------------------------ refusals


def test_what_is_refused(here):
    refused(lambda: hc.sweep(3, [1]), hc.InputError, "function must be callable")
    refused(lambda: hc.sweep(abs, 5), hc.InputError, "items must be iterable")
    refused(lambda: hc.sweep(abs, lambda: iter(())), hc.InputError, "items must be iterable")
    refused(lambda: hc.sweep(abs, [1], "dask"), hc.InputError, "executor must be")
    refused(lambda: hc.sweep(abs, [1], True), hc.InputError, "executor must be")
    refused(lambda: hc.sweep(abs, [1], 0), hc.InputError, "executor must be a whole number")
    refused(lambda: hc.sweep(abs, [1], here, "yes"), hc.InputError, "progress")
    refused(lambda: hc.sweep(lambda x: x, [1]), hc.InputError, "functools.partial")
    refused(lambda: hc.sweep(lambda x: x, []), hc.InputError, "functools.partial")

    class Client:
        def get_executor(self): ...

    refused(lambda: hc.sweep(abs, [1], Client()), hc.InputError, "client.get_executor()")
    here.shutdown()
    refused(lambda: hc.sweep(abs, [1], here), hc.InputError, "takes no work")


def test_a_function_that_no_worker_can_load_is_refused(monkeypatch):
    module = type(sys)("only_here")
    exec("def f(x): return x", module.__dict__)
    monkeypatch.setitem(sys.modules, "only_here", module)
    words = "could not load the function", "ModuleNotFoundError"
    refused(lambda: hc.sweep(module.f, range(3)), hc.InputError, *words)
    assert not left_behind()
    with ProcessPoolExecutor(1, multiprocessing.get_context("forkserver")) as pool:
        refused(lambda: hc.sweep(module.f, [1], pool), hc.InputError, "could not load the function")


@pytest.mark.slow
@pytest.mark.parametrize("guarded", [True, False])
def test_a_script_starts_a_sweep_under_a_guard(tmp_path, guarded):
    script = tmp_path / "script.py"
    guard = "if __name__ == '__main__':" if guarded else "if True:"
    script.write_text(
        textwrap.dedent(
            f"""
            import holoctl as hc
            def twice(x):
                return 2 * x
            {guard}
                print(hc.sweep(twice, range(10), 2).values)
            """
        )
    )
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run(
        [sys.executable, str(script)], check=False, env=env, capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
    if guarded:
        assert done.stdout.split() == str(tuple(range(0, 20, 2))).split(), done.stderr
    else:
        assert "if __name__ == '__main__':" in done.stderr.splitlines()[-1]
        assert done.returncode == 1


@pytest.mark.slow
def test_another_holoctl_in_the_working_directory_is_told(tmp_path):
    """The server of processes looks there first: its results would be those of other code."""
    shutil.copytree(Path(hc.__file__).parent, tmp_path / "holoctl")
    script = tmp_path / "elsewhere" / "script.py"
    script.parent.mkdir()
    script.write_text(
        "import math, holoctl as hc\n"
        "if __name__ == '__main__':\n"
        "    print(hc.sweep(math.factorial, range(4), 2).values)\n"
    )
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run(
        [sys.executable, str(script)], check=False, env=env, cwd=tmp_path, capture_output=True,
        text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == "" or done.stdout.split() == ["(1,", "1,", "2,", "6)"]
    if not done.stdout:
        assert "another holoctl" in done.stderr.splitlines()[-1]


# ---------------------------------------------------------------------------------------- Dask


class Written(Executor):
    """Works at once, and writes down how it was called."""

    def __init__(self):
        self.calls = []

    def submit(self, function, /, *arguments):
        self.calls.append((function, *arguments))
        future = Future()
        future.set_result(function(*arguments))
        return future


def test_no_two_attempts_are_called_alike():
    """Dask knows a task by its arguments: it would answer the second as it did the first."""
    executor = Written()
    for _ in range(2):
        assert hc.sweep(f.squared, [3, 3, 3], executor).values == (9, 9, 9)
    assert len(executor.calls) >= 4
    assert len(set(executor.calls)) == len(executor.calls)


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    options = {"dashboard_address": ":0", "silence_logs": 50}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow
def test_dask_gives_the_same(client):
    mech = hc.load(hc.robot_file("stewart"))
    q, v = hc.assemble(mech)
    part = hc.partition(mech, q)
    states = [(q, v, np.full(mech.nu, 0.01 * i)) for i in range(150)]
    states[11] = (*states[11][:2], [np.nan] * mech.nu)
    law = partial(f.torque, mech, part)
    found, here = hc.sweep(law, states, client.get_executor()), hc.sweep(law, states, 2)
    assert found.failed == here.failed == (11,)
    assert str(found[11]) == str(here[11])
    for i, x in enumerate(found):
        if i != 11:
            np.testing.assert_array_equal(x, here[i])
    factor = 3
    tripled = hc.sweep(lambda x: factor * x, range(1000), client.get_executor())  # by cloudpickle
    assert tripled.values == tuple(range(0, 3000, 3))
    refused(lambda: hc.sweep(abs, [1], client), hc.InputError, "client.get_executor()")


@pytest.mark.slow
def test_dask_restarts_a_worker_that_is_killed(client):
    found = hc.sweep(partial(f.killing, victim=7), range(20), client.get_executor())
    assert found.failed == (7,)
    assert "KilledWorker" in str(found[7])
    assert [x for i, x in enumerate(found) if i != 7] == [i for i in range(20) if i != 7]
    assert hc.sweep(f.squared, range(5), client.get_executor()).values == (0, 1, 4, 9, 16)
