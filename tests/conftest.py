"""What every test run shares.

No screen, one thread a process, fixed seeds, one folder for what is compiled and computed, no
silent skip of the robots in CI, and at the end what ran and how long it took.
"""

from __future__ import annotations

import gc
import os
import random
import shutil
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

os.environ["MPLBACKEND"] = "Agg"  # before anything imports matplotlib; subprocesses inherit it
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy: there is a process for each core
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["PYTHONDONTWRITEBYTECODE"] = ""  # tests start programs: each would compile it all anew

import hypothesis
import numpy as np
import pinocchio as pin
import pytest

pytest.register_assert_rewrite(
    "compare", "cut_loops", "examined", "exported", "expressed", "refusals", "support"
)  # an assert that fails there shows its values too

from longer import is_longer  # noqa: E402
from refusals import bench, s  # noqa: E402, F401 (fixtures)
from support import SHARED  # noqa: E402

hypothesis.settings.register_profile("ci", derandomize=True, deadline=None)
hypothesis.settings.load_profile("ci")

ROBOTS = {
    "HOLOCTL_REQUIRE_ROBOTS": "shared/data/robots",
    "HOLOCTL_REQUIRE_ROBOT_DATA": "example-robot-data",
    "HOLOCTL_REQUIRE_COMPILER": "no C compiler",
    "HOLOCTL_REQUIRE_BROWSER": "no Chromium",
    "HOLOCTL_REQUIRE_BOARDS": "no cross compiler",
    "HOLOCTL_REQUIRE_NVRTC": "no NVRTC",
}
"""A test that skips for want of these, of a compiler or a browser, says so in its reason."""


HERE = Path(__file__).parent

sys.dont_write_bytecode = False


def pytest_configure(config):
    """One folder for the run, which the processes of pytest-xdist share: see `support.shared`.

    Compiled laws go there too: what a test builds is not there from another day.
    """
    if hasattr(config, "workerinput"):
        return  # a process of pytest-xdist: the folder is that of the process that started it
    folder = tempfile.mkdtemp(prefix="holoctl-tests-")
    os.environ[SHARED] = folder
    os.environ["HOLOCTL_CACHE"] = os.path.join(folder, "compiled")
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


@pytest.hookimpl(tryfirst=True)  # before those that are not asked for are left out
def pytest_collection_modifyitems(items):
    """What takes long is marked. Within a file, tests of one mechanism stand together.

    The processes of pytest-xdist take tests that stand together, so few of them compute and
    compile the same.
    """
    files = {path: path.relative_to(HERE).as_posix() for path in {item.path for item in items}}
    for item in items:
        if is_longer(files[item.path], item.name):
            item.add_marker(pytest.mark.slow)
    ranks: dict = {}

    def rank(item):
        name = getattr(item, "callspec", None) and item.callspec.params.get("name")
        return tuple(ranks.setdefault(x, len(ranks)) for x in (files[item.path], str(name)))

    items.sort(key=rank)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Modules and tests are there for good: the collector of garbage does not go through them
    while they are made, and not later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_terminal_summary(terminalreporter):
    """Which files ran, how many tests each, and how long they took, all processes together."""
    count, seconds = defaultdict(set), defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                file = report.nodeid.partition("::")[0]
                count[file].add(report.nodeid)
                seconds[file] += report.duration
    if len(count) > 1:
        terminalreporter.section("what ran")
        width = max(map(len, count))
        for file in sorted(count, key=seconds.__getitem__, reverse=True):
            terminalreporter.write_line(
                f"{file:<{width}} {len(count[file]):>5} tests {seconds[file]:>7.1f} s"
            )


@pytest.fixture(autouse=True)
def _seeds() -> None:
    """The same random numbers in a test whether it runs alone or after others."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 (for code that draws from the global generator)
    pin.seed(0)  # pinocchio.randomConfiguration


# With HOLOCTL_REQUIRE_ROBOTS=1, or HOLOCTL_REQUIRE_ROBOT_DATA=1, the robots are known to be
# there: a test, or a whole file, that skips because it did not find them is a failure. So is one
# that skips for want of a C compiler, with HOLOCTL_REQUIRE_COMPILER=1, or of a browser, with
# HOLOCTL_REQUIRE_BROWSER=1, or of cross compilers and QEMU, with HOLOCTL_REQUIRE_BOARDS=1,
# or of NVIDIA's compiler, with HOLOCTL_REQUIRE_NVRTC=1.


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    return _without_robots_is_failure((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    return _without_robots_is_failure((yield))


def _without_robots_is_failure(report):
    if report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        _file, _line, reason = report.longrepr
        for variable, robots in ROBOTS.items():
            if robots in reason and os.environ.get(variable, "0") not in ("", "0"):
                report.outcome = "failed"
                report.longrepr = f"{variable} is set, yet this was skipped: {reason}"
    return report
