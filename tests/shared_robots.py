"""Real robots for tests: those of ../shared/data/robots, and of the package example-robot-data."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

SHARED_ROBOTS = Path(__file__).resolve().parents[2] / "shared" / "data" / "robots"
SHARED_ROBOT_NAMES = ("5bar_linkage", "5bar_linkage_iso6d", "cassie_like", "disney_like")


def shared_robot(name: str) -> Path:
    """The directory of a shared robot; skips the test where the robots are not here."""
    if not SHARED_ROBOTS.is_dir():
        pytest.skip("robots of ../shared/data/robots are not here")
    return SHARED_ROBOTS / name


CASSIE_SDF_NAMES = (
    "cassie", "cassie_reduced", "cassie_simple", "cassie_v2", "cassie_wo_gearbox_spring",
)  # fmt: skip


def cassie_sdf(name: str) -> Path:
    """An SDF of Cassie; skips the test where example-robot-data is not installed."""
    try:
        files = metadata.distribution("example-robot-data").files or []
    except metadata.PackageNotFoundError:
        pytest.skip("the package example-robot-data is not installed")
    found = [file for file in files if file.name == f"{name}.sdf"]
    if not found:
        pytest.skip(f"the package example-robot-data has no {name}.sdf")
    return Path(str(found[0].locate()))
