"""Files of a robot, and silence."""

from __future__ import annotations

import pytest
from documents import URDF, YAML

import holoctl as hc


@pytest.fixture(autouse=True)
def _silence(capfd):
    """Nothing is ever printed."""
    yield
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def robot(tmp_path):
    """Write the two files; return a function that loads them."""

    def load(urdf=URDF, yaml=YAML, **options):
        (tmp_path / "arms.urdf").write_text(urdf, "utf-8")
        if yaml is not None:
            (tmp_path / "arms.yaml").write_text(yaml, "utf-8")
        return hc.load(tmp_path / "arms.urdf", **options)

    return load
