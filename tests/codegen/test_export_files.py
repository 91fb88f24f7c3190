"""The files that are written: the same bytes each time, and only over our own."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from exported import (
    Exported,
    build_and_test,
    cmake,
    compilers,
    controller,
    last_line,
    robot,
    self_test,
    short_self_test,
)
from support import few, mechanism

import holoctl as hc
from holoctl.app.cli import main
from holoctl.base import tolerances
from holoctl.codegen import batched_functions, c_text, limits_c
from holoctl.codegen.compiled import extension_source, functions
from holoctl.codegen.devices import batch_kernels, host, kernels, rollout_program
from holoctl.codegen.exported import c_sources, ros2, transmission
from holoctl.codegen.exported.export import law_library
from holoctl.codegen.precision import DOUBLE

pytest.importorskip("casadi")


# -------------------------------------------------------------------------------------------- files


def test_the_same_input_gives_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        hc.export_c(controller("five_bar"), tmp_path / name, plant=True)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name
    notes = (tmp_path / "one" / "README.md").read_text()
    for call in ("torque_from_motors(&c, q_m, v_m, ", "torque(&c, q, v, "):  # each once
        assert notes.count(f"holoctl_five_bar_{call}q_ref, v_ref, a_ref, u);") == 1
    first = (tmp_path / "one" / "holoctl_five_bar.h").read_text()
    hc.export_c(
        hc.ComputedTorque(robot("five_bar"), kp=401.0, kd=40.0), tmp_path / "two", plant=True
    )
    hashes = [re.search(r'HASH "(\w+)"', text)[1] for text in
              (first, (tmp_path / "two" / "holoctl_five_bar.h").read_text())]  # fmt: skip
    assert hashes[0] != hashes[1]


def test_only_files_of_our_own_are_overwritten(tmp_path):
    hc.export_c(controller("four_bar"), tmp_path)
    hc.export_c(controller("four_bar"), tmp_path)
    (tmp_path / "README.md").write_text("my notes\n")
    before = (tmp_path / "holoctl_four_bar.c").read_bytes()
    what = hc.ComputedTorque(robot("four_bar"), kp=1.0, kd=1.0)
    with pytest.raises(hc.InputError, match=r"README\.md: there already"):
        hc.export_c(what, tmp_path)
    assert (tmp_path / "README.md").read_text() == "my notes\n"
    assert (tmp_path / "holoctl_four_bar.c").read_bytes() == before


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(hc.InputError, match="not a folder"):
        hc.export_c(mechanism("five_bar"), tmp_path / "file")
    with pytest.raises(hc.HoloctlError, match="cannot be written"):
        hc.export_c(mechanism("five_bar"), tmp_path / "file" / "below")
    with pytest.raises(hc.InputError, match="folder must be a path"):
        hc.export_c(mechanism("five_bar"), 3)


def test_names_that_end_comments_or_are_no_identifiers(tmp_path):
    cmake()
    mech = mechanism("five_bar")
    odd = hc.Mechanism(
        mech.model, mech.constraints, ["left", "right"], reference=mech.reference,
        name="5-Bar */ #error\\\n\u00e4 --> ??/",
    )  # fmt: skip
    paths = hc.export_c(odd, tmp_path)
    assert paths[0].name == "holoctl_5_bar_error.h"
    build_and_test(tmp_path, compilers()[0])
    with pytest.raises(hc.InputError, match="C identifier"):
        hc.export_c(odd, tmp_path, name="???")


@pytest.mark.parametrize(
    ("what", "options", "says"),
    [
        (lambda: 3, {}, "must be a Mechanism or a ComputedTorque"),
        (lambda: controller("five_bar"), {"weights": [1, 1]}, "brings its own"),
        (lambda: mechanism("five_bar"), {"in_trouble": "panic"}, "hold"),
        (lambda: mechanism("five_bar"), {"closure_limit": -1.0}, "closure_limit"),
        (lambda: mechanism("sine_chart"), {}, "cannot be compiled"),
    ],
)
def test_what_cannot_be_exported(what, options, says, tmp_path):
    with pytest.raises(hc.InputError, match=says):
        hc.export_c(what(), tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("limit", few([1e-5, 1e-7], [1e-7]))
@pytest.mark.parametrize("name", few(["closure_limit", "velocity_limit"], ["velocity_limit"]))
def test_narrow_limits_have_states_for_the_self_test(name, limit, tmp_path):
    exported = Exported(mechanism("five_bar"), tmp_path / "out", self_test=True, **{name: limit})
    program, _ = self_test(tmp_path, exported.paths, compilers()[0], "-O1")
    assert last_line(program) == (0, "all is well")


@pytest.mark.slow
def test_limits_below_rounding_are_named(tmp_path):
    says = "past closure_limit 0.01 or velocity_limit 1e-18 .* too narrow"
    with pytest.raises(hc.HoloctlError, match=says):
        hc.export_c(mechanism("five_bar"), tmp_path, velocity_limit=1e-18)


def test_a_reference_far_out_is_refused_at_once(tmp_path):
    mech = mechanism("five_bar")
    reference = np.array([1e308, 0.1, 0.2, 0.1])
    far = hc.Mechanism(mech.model, mech.constraints, mech.actuator_names, reference=reference)
    with pytest.raises(hc.InputError, match=r"within 1e\+06 for an export; .*\[0\] = 1e\+308"):
        hc.export_c(far, tmp_path)


def test_without_casadi_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "casadi", None)
    with pytest.raises(hc.InputError, match=r"holoctl\[codegen\]"):
        hc.export_c(mechanism("five_bar"), tmp_path)


# ------------------------------------------------------------------------------------- command line


def test_the_command_writes_what_the_function_writes(tmp_path, capsys):
    command = ["export", "five_bar", "--out", str(tmp_path / "a"), "--kp", "400", "--kd", "40,40"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    limits = hc.limits_of(robot("five_bar"))
    paths = hc.export_c(controller("five_bar", limits=limits), tmp_path / "b")
    for path in paths:
        assert (tmp_path / "a" / path.name).read_bytes() == path.read_bytes()
        assert path.name in printed


def test_the_command_refuses(tmp_path, capsys):
    out = ["--out", str(tmp_path)]
    assert main(["export", "five_bar", *out, "--kp", "400"]) == 1
    assert "belong together" in capsys.readouterr().err
    assert main(["export", "five_bar", *out, "--kp", "x", "--kd", "1"]) == 1
    assert "--kp takes a number" in capsys.readouterr().err
    assert main(["export", "leg", "--free-flyer", *out, "--kp", "1", "--kd", "1",
                 "--compensation", "gravity"]) == 1  # fmt: skip
    assert "passive" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_command_without_gains_writes_the_inverse_dynamics(tmp_path, capsys):
    assert main(["export", "five_bar", "--out", str(tmp_path), "--set", "motor_left=2.0"]) == 0
    assert "inverse dynamics" in capsys.readouterr().out
    assert "_torque(" not in (tmp_path / "holoctl_five_bar.h").read_text()


def test_no_folder_is_not_the_working_directory(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(hc.InputError, match="folder must be a path; got ''"):
        hc.export_c(robot("five_bar"), "")
    assert not list(tmp_path.iterdir())
    assert hc.export_c(robot("five_bar"), ".")[0].exists()


def names_in(text):
    """Values, conditions and files that a template names."""
    named = set(re.findall(r"@\{(\w+)\}|@\?!?(\w+)\{|^@if !?(\w+)$", text, re.M))
    return {x for found in named for x in found if x}, set(
        re.findall(r"^@include (\S+)$", text, re.M)
    )


@short_self_test()
def test_every_value_of_the_templates_is_given_and_every_given_one_used(tmp_path, monkeypatch):
    """By exports and compiled code of all kinds, together."""
    compilers()
    given, used, filled = set(), set(), c_text.filled

    def recorded(name, values=None):
        given.update(values or ())
        used.add(name)
        return filled(name, values)

    modules = (
        c_sources, limits_c, functions, extension_source, batched_functions, transmission, ros2,
        batch_kernels, kernels, rollout_program,
    )  # fmt: skip
    for module in modules:
        monkeypatch.setattr(module, "filled", recorded)
    mech = robot("five_bar")
    within = {"limits": hc.Limits(effort=50.0, velocity=9.0), "policy": "scale"}
    hc.export_c(controller("five_bar", **within), tmp_path / "limited", plant=True)
    hold = controller("five_bar", compensation="gravity", **within)
    hc.export_c(hold, tmp_path / "hold")
    hc.export_c(mech, tmp_path / "loaded", payload="tip", gravity=True)
    hc.export_c(mech, tmp_path / "parts", functions=["inertia"])
    reach = hc.FrameTask("tip_right", "x z")
    task = hc.TaskSpaceControl(mech, reach, 400.0, 40.0)
    hc.export_c(replace(task, **within), tmp_path / "task")
    table = hc.UnilateralContact("tip_right", friction=0.0, name="table")
    on_table = replace(task, contacts=table, limits=hc.Limits(effort=50.0))
    hc.export_c(on_table, tmp_path / "on table")
    both = list(mech.coordinate_names)
    hc.export_c(mechanism("floating_leg"), tmp_path / "alone", measured="all")
    hc.export_c(mech, tmp_path / "weighed", measured=both)
    leg = hc.Transmission(robot("leg"), ["knee"])
    hc.export_ros2(leg, tmp_path / "knee")
    for rate_noise in (0.0, 1e-4):
        load = hc.PayloadEstimator(mech, "tip", 100.0, 0.1, rate_noise=rate_noise)
        hc.export_c(load, tmp_path / f"payload {rate_noise}")
    hc.export_c(leg.table(1e-3, [-0.9], [-0.7]), tmp_path / "table")
    eq = hc.equilibrium(mech)
    lin = hc.linearize(mech, eq.q, u=eq.u)
    hc.export_c(hc.lqr(lin, 1.0, 1.0), tmp_path / "point")
    here = mech.motor_positions(eq.q)
    motion = hc.Trajectory.through(mech, [here, here + 0.1], [0.0, 0.02])
    hc.export_c(hc.lqr_along(mech, motion, 1.0, 1.0, models=2), tmp_path / "motion")
    hc.compile(controller("five_bar", **within), ["torque"], flags=["-O0"])
    hc.compile(task, flags=["-O0"])
    hc.compile(mech, ["forward_dynamics", "state"], measured=both, flags=["-O0"])
    monkeypatch.setattr(host, "library", lambda *_: None)  # the text is enough
    hc.compile(mech, ["inverse_dynamics", "state"], device="cpu")
    lib = law_library(controller("five_bar"), plant=True)
    rollout_program.rollout_program(lib, lib.laws.closed_state.sensing.sensors)
    batched_functions.tanh_exp(["tangents", "exponentials"])
    folder = Path(c_text.__file__).parent / "templates"
    texts = {
        path.relative_to(folder).as_posix().removesuffix(".in"): path.read_text()
        for path in folder.rglob("*.in")
    }
    for name, text in texts.items():
        words = re.findall(r"^@(if|else|end)\b", text, re.M)
        assert words.count("if") == words.count("end") >= words.count("else"), name
    named, included = (set().union(*x) for x in zip(*map(names_in, texts.values()), strict=True))
    assert texts.keys() == used | included
    own = vars(tolerances).keys() | DOUBLE.values.keys()
    assert named - given == (named - given) & own
    assert not given - named


def test_a_value_that_is_not_given_is_named():
    with pytest.raises(ValueError, match=r"normalise\.c: no value 'normalise_unit'"):
        c_text.filled("normalise.c")


def test_templates_have_conditions_and_comments(tmp_path, monkeypatch):
    (tmp_path / "x.in").write_text(
        "@# told\n@if a\n1@?b{ and @{c}}@?!b{ alone}\n@if b\n2\n@else\n3\n@end\n@else\n@if b\n4\n"
        "@end\n5\n@end\n@if !a\n@include y\n@end\n"
    )
    (tmp_path / "y.in").write_text("6 @{c}\n")
    monkeypatch.setattr(c_text, "TEMPLATES", tmp_path)
    assert c_text.filled("x", {"a": 1, "b": 1, "c": "@{a}"}) == "1 and @{a}\n2\n"
    assert c_text.filled("x", {"a": 1, "b": 0, "c": 7}) == "1 alone\n3\n"
    assert c_text.filled("x", {"a": [], "b": True, "c": 7}) == "4\n5\n6 7\n"
