"""Two controllers as exported C, built once."""

from __future__ import annotations

import pytest
from exported import Exported, controller


@pytest.fixture(scope="module")
def five_bar(tmp_path_factory):
    return Exported(controller("five_bar"), tmp_path_factory.mktemp("five_bar"))


@pytest.fixture(scope="module")
def leg(tmp_path_factory):
    return Exported(controller("leg"), tmp_path_factory.mktemp("leg"))
