"""Building and keeping compiled laws: compilers, their flags, a cache that is nobody else's."""

from __future__ import annotations

import copy
import dataclasses
import os
import pickle
import shutil
import subprocess
import sys
import sysconfig

import numpy as np
import pytest
from expressed import case, compiled, states
from support import closed_states, mechanism, relative

import holoctl as hc
from holoctl.codegen.compiled import extension, module_cache

# ----------------------------------------------------------------------------------------- building


def nothing_may_be_built(monkeypatch):
    """The compiler may be asked what it is, but not for a file."""
    run = subprocess.run

    def ask(command, **more):
        if "-o" in command:
            raise AssertionError("it was built")
        return run(command, **more)

    monkeypatch.setattr(subprocess, "run", ask)


def test_what_was_compiled_is_found_again(monkeypatch, tmp_path):
    mech, part = case("four_bar")
    monkeypatch.setenv("HOLOCTL_CACHE", str(tmp_path / "new"))
    f = hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O0"])
    (kept,) = (p for p in (tmp_path / "new").iterdir() if p.suffix != ".sha256")
    changed = kept.stat().st_mtime_ns
    nothing_may_be_built(monkeypatch)
    g = hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O0"])
    q, v = closed_states("four_bar")[0]
    assert f.inverse_dynamics(q, v, np.ones(1)) == g.inverse_dynamics(q, v, np.ones(1))
    assert kept.stat().st_mtime_ns == changed
    with pytest.raises(AssertionError, match="built"):  # other flags are another program
        hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O1"])


def test_it_pickles_and_copies():
    f = compiled("three_motors", ("inverse_dynamics",))
    q, v = closed_states("three_motors")[0]
    u = f.inverse_dynamics(q, v, np.ones(3))
    for twin in (pickle.loads(pickle.dumps(f)), copy.deepcopy(f), copy.copy(f)):
        assert (twin.inverse_dynamics(q, v, np.ones(3)) == u).all()
    ctl = hc.ComputedTorque(mechanism("four_bar"), 1.0, 1.0)
    g = hc.compile(ctl, ["torque"], flags=["-O0"])
    q, v = closed_states("four_bar")[0]
    args = q, v, np.ones(1), np.ones(1), np.ones(1)
    assert pickle.loads(pickle.dumps(g)).torque(*args) == g.torque(*args)
    with pytest.raises(dataclasses.FrozenInstanceError):
        f.weights = None


def test_without_a_compiler_the_error_says_so(monkeypatch):
    mech = mechanism("four_bar")
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(hc.InputError, match=r"needs a C compiler.*no-such-compiler"):
        hc.compile(mech)
    monkeypatch.delenv("CC")
    monkeypatch.setattr(extension.shutil, "which", lambda name: None)
    with pytest.raises(hc.InputError, match=r"needs a C compiler.*install gcc"):
        hc.compile(mech)


def test_without_the_headers_of_python_the_error_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(hc.InputError, match=r"no Python\.h.*python3-dev"):
        hc.compile(mechanism("four_bar"))


def test_without_casadi_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "casadi", None)
    with pytest.raises(hc.InputError, match=r"holoctl\[codegen\]"):
        hc.compile(mechanism("four_bar"))


def test_a_compiler_that_fails_is_quoted():
    with pytest.raises(hc.HoloctlError, match="no-such-flag"):
        hc.compile(mechanism("four_bar"), ["terms"], flags=["--no-such-flag"])


def test_a_cache_that_cannot_be_written_is_told(monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("HOLOCTL_CACHE", str(blocked / "folder"))
    with pytest.raises(hc.HoloctlError, match="HOLOCTL_CACHE"):
        hc.compile(mechanism("four_bar"), ["terms"], flags=["-O0"])


def test_the_cache_is_in_the_users_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("HOLOCTL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert extension.cache_folder() == tmp_path / "holoctl"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert extension.cache_folder().parts[-3:] == ("Library", "Caches", "holoctl")


@pytest.mark.slow
def test_clang_gives_the_same_numbers(monkeypatch):
    if extension.shutil.which("clang") is None:
        pytest.skip("no clang here")
    mech, part = case("weld_chain")
    monkeypatch.setenv("CC", "clang")
    f = hc.compile(mech, partition=part)
    for q, v in states("weld_chain", "closed", 10):
        target = np.ones(2)
        u = compiled("weld_chain").inverse_dynamics(q, v, target)
        assert relative(f.inverse_dynamics(q, v, target), u) < 1e-11


# ---------------------------------------------------------------- a cache that is nobody else's


@pytest.mark.parametrize("harm", ["cut off", "changed", "empty", "another"])
def test_what_was_harmed_in_the_cache_is_not_loaded(monkeypatch, tmp_path, harm):
    mech, part = case("four_bar")
    folder = tmp_path / "cache"
    monkeypatch.setenv("HOLOCTL_CACHE", str(folder))
    q, v = closed_states("four_bar")[0]
    f = hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O0", f"-DH={len(harm)}"])
    u = f.inverse_dynamics(q, v, np.ones(1))
    (kept,) = (p for p in folder.iterdir() if p.suffix != ".sha256")
    data = kept.read_bytes()
    kept.unlink()  # this process has it mapped
    kept.write_bytes({
        "cut off": data[: len(data) // 2], "empty": b"", "another": b"x" + data[1:],
        "changed": data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
    }[harm])  # fmt: skip
    module_cache.loaded.cache_clear()
    again = hc.compile(mech, ["inverse_dynamics"], partition=part,
                       flags=["-O0", f"-DH={len(harm)}"])  # fmt: skip
    np.testing.assert_array_equal(again.inverse_dynamics(q, v, np.ones(1)), u)
    assert len(kept.read_bytes()) == len(data)  # built anew


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of files on this system")
def test_a_cache_that_others_may_write_to_is_refused(monkeypatch, tmp_path):
    mech, part = case("four_bar")
    folder = tmp_path / "open"
    monkeypatch.setenv("HOLOCTL_CACHE", str(folder))
    hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O0"])
    folder.chmod(0o777)
    module_cache.loaded.cache_clear()
    with pytest.raises(hc.HoloctlError, match="others may write to"):
        hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O0"])


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of files on this system")
@pytest.mark.parametrize("place", ["cache", "above"])
@pytest.mark.parametrize("mode", [0o777, 0o757, 0o1777])
def test_nothing_is_built_where_others_may_write(monkeypatch, tmp_path, place, mode):
    """In the folder, or above it, where another folder could be put in its place."""
    above, folder = tmp_path / "above", tmp_path / "above" / "cache"
    folder.mkdir(parents=True)
    above.chmod(mode if place == "above" else 0o700)
    folder.chmod(mode if place == "cache" else 0o700)
    monkeypatch.setenv("HOLOCTL_CACHE", str(folder))
    nothing_may_be_built(monkeypatch)
    sticky = place == "above" and mode & 0o1000  # as /tmp is: nobody else can rename ours
    with pytest.raises(AssertionError if sticky else hc.HoloctlError,
                       match="built" if sticky else "others may write to"):  # fmt: skip
        hc.compile(mechanism("four_bar"), ["terms"], flags=["-O0"])


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of files on this system")
def test_nothing_is_built_in_a_folder_of_another_user(monkeypatch, tmp_path):
    monkeypatch.setenv("HOLOCTL_CACHE", str(tmp_path))
    nothing_may_be_built(monkeypatch)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 12345)
    if os.getuid() == 0:
        os.chown(tmp_path, 54321, 54321)
    with pytest.raises(hc.HoloctlError, match="belongs to another user"):
        hc.compile(mechanism("four_bar"), ["terms"], flags=["-O0"])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes and links on this system")
@pytest.mark.parametrize("which", ["module", "hash"])
@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "device", "writable"])
def test_what_is_no_file_of_ours_in_the_cache_is_refused(monkeypatch, tmp_path, which, kind):
    monkeypatch.setenv("HOLOCTL_CACHE", str(tmp_path / "new" / "cache"))
    old = os.umask(0)
    try:
        folder = module_cache.private_folder(module_cache.cache_folder())
    finally:
        os.umask(old)
    assert [p.stat().st_mode & 0o777 for p in (folder, folder.parent)] == [0o700, 0o700]
    path = folder / "holoctl_law_x.so"
    module_cache.keep(path, b"code")
    assert module_cache.kept(path) == b"code"
    (beside,) = set(folder.iterdir()) - {path}  # its hash; nothing is left behind
    at = path if which == "module" else beside
    content = at.read_bytes()
    at.unlink()
    if kind == "pipe":
        os.mkfifo(at)
    elif kind == "link":
        (tmp_path / "elsewhere").write_bytes(content)
        at.symlink_to(tmp_path / "elsewhere")
    elif kind == "folder":
        at.mkdir()
    elif kind == "device":
        at.symlink_to("/dev/zero")
    else:
        at.write_bytes(content)
        at.chmod(0o666)
    with pytest.raises(hc.HoloctlError, match="HOLOCTL_CACHE"):
        module_cache.kept(path)


def test_what_was_hashed_is_what_is_loaded(monkeypatch, tmp_path):
    """Whatever is put in the place of the file after it was judged."""
    mech, part = case("four_bar")
    monkeypatch.setenv("HOLOCTL_CACHE", str(tmp_path / "cache"))
    q, v = closed_states("four_bar")[0]
    u = hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O0"])
    module_cache.loaded.cache_clear()
    load = module_cache.loaded

    def swapped(module, data, folder):
        for kept in folder.iterdir():
            kept.unlink()
            kept.write_bytes(b"not what was hashed")
        return load(module, data, folder)

    monkeypatch.setattr(extension, "loaded", swapped)
    again = hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O0"])
    target = np.ones(1)
    assert again.inverse_dynamics(q, v, target) == u.inverse_dynamics(q, v, target)


def test_a_cache_of_no_user_is_refused(monkeypatch):
    monkeypatch.setenv("HOLOCTL_CACHE", "~there-is-no-such-user/cache")
    with pytest.raises(hc.HoloctlError, match="HOLOCTL_CACHE"):
        hc.compile(mechanism("four_bar"), ["terms"], flags=["-O0"])


@pytest.mark.parametrize("flag", ["-ffast-math", "-Ofast", "-ffinite-math-only"])
def test_flags_that_remove_the_guard_are_refused(flag):
    mech, part = case("four_bar")
    with pytest.raises(hc.HoloctlError, match="would remove the guard"):
        hc.compile(mech, ["inverse_dynamics"], partition=part, flags=[flag])


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_flags_that_put_sums_together_otherwise_are_refused(compiler, monkeypatch):
    """Hyperbolic tangents of friction were wrong by as much as the friction."""
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler} is here")
    monkeypatch.setenv("CC", compiler)
    mech = mechanism("five_bar").with_forces([hc.JointFriction(coulomb=1.0)])
    for flags in (
        ["-funsafe-math-optimizations"],
        ["-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math"],
    ):
        with pytest.raises(hc.HoloctlError, match="reassociate sums"):
            hc.compile(mech, ["inverse_dynamics"], flags=["-O2", *flags])


def test_a_compiler_that_is_no_command(monkeypatch):
    mech, part = case("four_bar")
    monkeypatch.setenv("CC", '"gcc')
    with pytest.raises(hc.InputError, match="is no command"):
        hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O0"])


def test_a_compiler_that_makes_nothing(monkeypatch):
    mech, part = case("four_bar")
    monkeypatch.setenv("CC", "echo")
    with pytest.raises(hc.HoloctlError, match=r"^echo ended .* made nothing"):
        hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O0"])


def test_a_controller_projects_and_takes_no_other_policy():
    mech, part = case("five_bar")
    ctl = hc.ComputedTorque(mech, 1.0, 1.0, partition=part)
    with pytest.raises(hc.InputError, match="'project', or left out; got 'raise'"):
        hc.compile(ctl, ["torque"], inconsistent="raise")
    for policy in ({}, {"inconsistent": "project"}):
        assert hc.compile(ctl, ["torque"], flags=["-O0"], **policy).inconsistent == "project"
    assert hc.compile(mech, ["terms"], partition=part, flags=["-O0"]).inconsistent == "raise"
    for what, functions in ((ctl, ["torque"]), (mech, ["terms"])):
        with pytest.raises(hc.InputError, match="inconsistent must be"):
            hc.compile(what, functions, inconsistent="average")
