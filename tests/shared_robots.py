"""The closed-chain robots of ../shared/data/robots, for the tests that want real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED_ROBOTS = Path(__file__).resolve().parents[2] / "shared" / "data" / "robots"
SHARED_ROBOT_NAMES = ("5bar_linkage", "5bar_linkage_iso6d", "cassie_like", "disney_like")


def shared_robot(name: str) -> Path:
    """The directory of a shared robot; skips the test where the robots are not here."""
    if not SHARED_ROBOTS.is_dir():
        pytest.skip("robots of ../shared/data/robots are not here")
    return SHARED_ROBOTS / name
