"""Two controllers as exported C, built once; each file of tests has a struct of its own."""

from __future__ import annotations

import pytest
from exported import Exported, controller


@pytest.fixture(scope="session")
def exported_five_bar(tmp_path_factory):
    return Exported(controller("five_bar"), tmp_path_factory.mktemp("five_bar"), self_test=True)


@pytest.fixture(scope="session")
def exported_leg(tmp_path_factory):
    return Exported(controller("leg"), tmp_path_factory.mktemp("leg"), self_test=True)


@pytest.fixture(scope="module")
def five_bar(exported_five_bar):
    return exported_five_bar.again()


@pytest.fixture(scope="module")
def leg(exported_leg):
    return exported_leg.again()
