"""What is shipped: the version, the public names, the command, the files of the wheel."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import pytest
from support import ROOT, public, public_names

import holoctl as hc

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_version():
    assert hc.__version__ == version("holoctl") == PROJECT["version"]


def test_typed():
    assert files("holoctl").joinpath("py.typed").is_file()


@pytest.mark.parametrize("name", public_names())
def test_public_name(name):
    thing = public(name)
    assert thing.__name__.rpartition(".")[2] == name.rpartition(".")[2]
    assert thing.__doc__


def test_dir_lists_the_public_names():
    assert dir(hc) == sorted(hc.__all__)
    assert len(set(hc.__all__)) == len(hc.__all__)


def test_unknown_name():
    with pytest.raises(AttributeError, match="no_such_name"):
        hc.no_such_name  # noqa: B018


def test_command_tells_the_version():
    command = Path(sysconfig.get_path("scripts")) / "holoctl"
    run = subprocess.run([command, "--version"], stdout=subprocess.PIPE, text=True, check=True)
    assert hc.__version__ in run.stdout


def test_lock_is_plain_sorted_and_complete():
    lines = (ROOT / "requirements.lock").read_text("utf-8").splitlines()
    for line in lines:
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+]+", line), line
    names = [line.partition("==")[0].casefold() for line in lines]
    assert names == sorted(set(names))
    extras = PROJECT["optional-dependencies"]
    for requirement in [
        *PROJECT["dependencies"],
        *extras["plot"],
        *extras["codegen"],
        *extras["mjcf"],
        *extras["mujoco"],
        *extras["design"],
        *extras["cluster"],
        *extras["view"],
        *extras["docs"],
        *extras["dev"],
    ]:
        name = re.match(r"[A-Za-z0-9._-]+", requirement)[0].casefold()
        assert name in names, f"requirements.lock does not pin {requirement}"


def test_wheel_holds_every_file_of_the_package(tmp_path):
    build = "import sys, hatchling.build; hatchling.build.build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, tmp_path], cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    shipped = set(zipfile.ZipFile(wheel).namelist())
    package = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "holoctl").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"holoctl/py.typed", "holoctl/__init__.py"} <= package
    assert package - shipped == set()
    assert {name for name in shipped if ".dist-info/" not in name} == package


def test_private_names_that_tools_ask_for_import_nothing():
    code = (
        "import sys, holoctl; assert not hasattr(holoctl, '_ipython_display_'); "
        "assert 'holoctl.results' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
