"""What every test run shares: no screen, fixed seeds, and no silent skip of the robots in CI."""

from __future__ import annotations

import os
import random

os.environ["MPLBACKEND"] = "Agg"  # before anything imports matplotlib; subprocesses inherit it

import hypothesis
import numpy as np
import pinocchio as pin
import pytest

hypothesis.settings.register_profile("ci", derandomize=True, deadline=None)
hypothesis.settings.load_profile("ci")

ROBOTS = {
    "HOLOCTL_REQUIRE_ROBOTS": "shared/data/robots",
    "HOLOCTL_REQUIRE_ROBOT_DATA": "example-robot-data",
    "HOLOCTL_REQUIRE_COMPILER": "no C compiler",
}
"""A test that skips for want of these robots, or of a compiler, says so in its reason."""


@pytest.fixture(autouse=True)
def _seeds() -> None:
    """The same random numbers in a test whether it runs alone or after others."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 (for code that draws from the global generator)
    pin.seed(0)  # pinocchio.randomConfiguration


# With HOLOCTL_REQUIRE_ROBOTS=1, or HOLOCTL_REQUIRE_ROBOT_DATA=1, the robots are known to be
# there: a test, or a whole file, that skips because it did not find them is a failure. So is one
# that skips for want of a C compiler, with HOLOCTL_REQUIRE_COMPILER=1.


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
