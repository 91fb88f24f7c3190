"""Exported C of transmissions against Python, posture by posture."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pinocchio as pin
import pytest
from ankles import PITCH_ROLL, alone, cranked, four_barred, pushed, rod, serial_ankle
from exported import STRICT, compilers, library, run
from support import few
from zoo import add_body, at

import holoctl as hc

OK, NOT_FINITE, SINGULAR, OVERFLOW, BUILD, LOST, OUTSIDE = 0, 1, 4, 6, 7, 10, 14


def redundant():
    mech = alone(four_barred)
    return hc.Mechanism(mech.model, mech.constraints, actuated=["crank", "coupler"], name="two")


def one_motor():
    mech = alone(cranked)
    return hc.Mechanism(mech.model, mech.constraints, actuated=["left"], name="one")


def beside():
    """A motor beside the ankle, whose rod moves with roll and not with pitch at the start."""
    m, reach, length = pin.Model(), 0.04, 0.2
    serial_ankle(m, "universe")
    body = pin.Inertia(0.08, np.array([0, -reach / 2, 0.01]), 1e-5 * np.eye(3))
    add_body(m, 0, pin.JointModelRX(), at(0.0, 0.06 + reach, length), "side", body)
    add_body(m, "side", pin.JointModelRY(), at(0, -reach), "rod y", pin.Inertia.Zero())
    add_body(m, "rod y", pin.JointModelRX(), at(), "rod", rod(length))
    loop = hc.Closure(("rod", at(0, 0, -length)), ("roll", at(0, 0.06)), axes="x y z", name="ball")
    return hc.Mechanism(m, [loop], actuated=["side"], name="beside")


CASES = {
    "cranked": (lambda: alone(cranked), PITCH_ROLL, [0.35, 0.25]),
    "turned": (lambda: alone(cranked), PITCH_ROLL[::-1], [0.25, 0.35]),
    "balls": (lambda: alone(cranked, ball=True), PITCH_ROLL, [0.35, 0.25]),
    "pushed": (lambda: alone(pushed), PITCH_ROLL, [0.6, 0.4]),
    "four_barred": (lambda: alone(four_barred), ["knee"], [0.3]),
    "redundant": (redundant, ["knee"], [0.3]),
    "one_motor": (one_motor, PITCH_ROLL, [0.35, 0.25]),
    "beside": (beside, PITCH_ROLL, [0.35, 0.25]),
}


class InC:
    """The functions of an exported transmission: arrays in, (status, arrays) out."""

    def __init__(self, tr, folder):
        self.tr, paths = tr, hc.export_c(tr, folder)
        self.paths, self.prefix = paths, paths[0].stem
        self.library = ctypes.CDLL(str(library(paths[:2], folder)))
        self.c = ctypes.create_string_buffer(1 << 16)
        self.size = self._size(folder)
        self.start()

    def _size(self, folder):
        """The size of the struct, and its content, as a program of C tells them."""
        program = folder / "size.c"
        upper = self.prefix.upper()
        program.write_text(
            f'#include <stdio.h>\n#include "{self.prefix}.h"\nint main(void) {{ '
            f'printf("%lu %lu", (unsigned long)sizeof({self.prefix}), {upper}_CONTENT); '
            "return 0; }\n"
        )
        run(compilers()[0], program, "-o", folder / "size", f"-I{folder}")
        return [int(x) for x in run(folder / "size").split()]

    def start(self):
        size, content = (ctypes.c_ulong(x) for x in self.size)
        init = self.library[f"{self.prefix}_init_checked"]
        assert init(ctypes.byref(self.c), size, content) == OK

    def __call__(self, name, given, sizes):
        arrays = [np.ascontiguousarray(x, dtype=float) for x in given]
        found = [np.full(n, np.nan) for n in sizes]
        pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (*arrays, *found)]
        status = self.library[f"{self.prefix}_{name}"](ctypes.byref(self.c), *pointers)
        assert all(np.isfinite(x).all() for x in found)
        return status, found


SHORT_CASES = ("cranked", "one_motor", "redundant", "turned")
"""Of the cases, those of the short run."""


@pytest.fixture(scope="module", params=few(sorted(CASES), SHORT_CASES))
def case(request, tmp_path_factory):
    compilers()
    make, joints, box = CASES[request.param]
    tr = hc.Transmission(make(), joints)
    return InC(tr, tmp_path_factory.mktemp(request.param)), np.array(box)


def walk(box, count=300, seed=5):
    """Joint positions and rates along a smooth motion through the whole box, at 1 kHz."""
    t = np.arange(count)[:, None] * 0.004
    w = 2.0 * np.pi * np.array([0.9, 1.7, 0.5])[: box.size]
    phase = np.random.default_rng(seed).uniform(0.0, 1.0, box.size) * t.clip(0.0, 0.2) / 0.2
    return box * np.sin(w * t + phase), box * w * np.cos(w * t + phase)


def test_c_gives_what_python_gives(case):
    c, box = case
    tr, n, p = c.tr, len(c.tr.motors), len(c.tr.joints)
    c.start()
    rng = np.random.default_rng(0)
    for y, yd in zip(*walk(box), strict=True):
        y = y + tr.y_start  # noqa: PLW2901
        status, (q_m, v_m, bend) = c("motors", [y, yd], [n, n, n])
        assert status == OK
        np.testing.assert_allclose(q_m, tr.motor_positions(y), rtol=0, atol=1e-11)
        np.testing.assert_allclose(v_m, tr.motor_rates(y, yd), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(bend, tr.curvature(y, yd), rtol=1e-9, atol=1e-9)
        u = rng.normal(size=n)
        status, (tau,) = c("joint_efforts", [u], [p])
        assert status == OK
        np.testing.assert_allclose(tau, tr.joint_efforts(u, y), rtol=1e-10, atol=1e-10)
        if n >= p:
            status, (back,) = c("motor_efforts", [tau], [n])
            assert status == OK
            np.testing.assert_allclose(back, tr.motor_efforts(tau, y).u, rtol=1e-9, atol=1e-9)


def test_joints_from_motors_along_the_same_motion(case):
    c, box = case
    tr, p = c.tr, len(c.tr.joints)
    c.start()
    if len(tr.motors) < p:
        assert f"{c.prefix}_joints(" not in c.paths[0].read_text()
        assert "do not determine" in c.paths[-1].read_text()
        return
    moved = 0.0
    for y, yd in zip(*walk(box), strict=True):
        y = y + tr.y_start  # noqa: PLW2901
        q_m, v_m = tr.motor_positions(y), tr.motor_rates(y, yd)
        status, (found, rates) = c("joints", [q_m, v_m], [p, p])
        assert status == OK
        np.testing.assert_allclose(found, y, rtol=0, atol=1e-11)
        np.testing.assert_allclose(rates, yd, rtol=1e-9, atol=1e-9)
        moved = max(moved, np.abs(found - tr.y_start).max())
    assert moved > 0.2


def test_the_self_test_passes_with_strict_warnings(case, tmp_path):
    c, _ = case
    for compiler in compilers():
        program = tmp_path / compiler
        run(compiler, "-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wdouble-promotion",
            "-pedantic", "-Werror", c.paths[1], c.paths[2], "-o", program, "-lm")  # fmt: skip
        assert "all is well" in run(program)


def test_far_steps_and_other_branches_are_refused(case):
    c, box = case
    tr, n, p = c.tr, len(c.tr.motors), len(c.tr.joints)
    rng, refused = np.random.default_rng(3), 0
    for _ in range(300):
        c.start()
        y = tr.y_start + rng.uniform(-6.0, 6.0, p) * box
        status, (q_m, v_m, bend) = c("motors", [y, np.zeros(p)], [n, n, n])
        if status == OK:
            np.testing.assert_allclose(q_m, tr.motor_positions(y), atol=1e-9)
            continue
        refused += 1
        assert status in (SINGULAR, LOST)
        np.testing.assert_allclose(q_m, tr.motor_start, atol=1e-9)
        assert not v_m.any()
        assert not bend.any()
    assert refused > 30
    if n < p:
        return
    for _ in range(300):
        c.start()
        q_m = tr.motor_start + rng.uniform(-3.0, 3.0, n)
        status, (y, _) = c("joints", [q_m, np.zeros(n)], [p, p])
        if status == OK:
            np.testing.assert_allclose(tr.motor_positions(y), q_m, atol=1e-9)
        else:
            np.testing.assert_allclose(y, tr.y_start, atol=1e-9)


def test_every_call_finds_or_keeps_the_posture_that_efforts_belong_to(case):
    c, box = case
    tr, n, p = c.tr, len(c.tr.motors), len(c.tr.joints)
    c.start()
    u, size = np.arange(1.0, n + 1.0), [tr.mech.nq, tr.mech.nv]
    first, y, yd = (tr.y_start + share * box for share in (0.1, 0.3, 1.0))
    assert c("motors", [first, yd], [n, n, n])[0] == OK
    status, (q, v) = c("state", [y, yd], size)
    assert status == OK
    np.testing.assert_allclose(tr.mech.B.T @ v, tr.motor_rates(y, yd), rtol=1e-10, atol=1e-10)
    _, (tau,) = c("joint_efforts", [u], [p])
    np.testing.assert_allclose(tau, tr.joint_efforts(u, y), rtol=1e-10, atol=1e-10)
    for name, sizes, rate, expected in [
        ("motors", [n, n, n], 1.7e308, OVERFLOW), ("state", size, np.nan, NOT_FINITE),
    ]:  # fmt: skip
        status, (held, zero, *_) = c(name, [first, np.full(p, rate)], sizes)
        assert status == expected
        np.testing.assert_allclose(held, q if name == "state" else tr.motor_positions(y), atol=1e-9)
        assert not zero.any()
        np.testing.assert_array_equal(c("joint_efforts", [u], [p])[1][0], tau)


def test_a_start_that_is_closed_to_its_tolerance_is_closed_to_rounding(tmp_path):
    tr = hc.Transmission(alone(cranked), PITCH_ROLL)
    off = 1e-7 * np.random.default_rng(2).normal(size=tr.mech.nq)
    other = hc.Transmission(tr.mech, PITCH_ROLL, tr.start + off)
    np.testing.assert_allclose(
        other.motor_positions(other.y_start), other.motor_start, rtol=0, atol=1e-12
    )
    status, (q_m, *_) = InC(other, tmp_path)("motors", [[0.2, 0.1], [0, 0]], [2, 2, 2])
    assert status == OK
    np.testing.assert_allclose(q_m, tr.motor_positions([0.2, 0.1]), rtol=0, atol=1e-11)


def test_what_cannot_be_exported_is_refused(tmp_path):
    tr = hc.Transmission(alone(cranked), PITCH_ROLL)
    with pytest.raises(hc.InputError, match="exported without 'plant'"):
        hc.export_c(tr, tmp_path, plant=True)
    shipped = hc.load(hc.robot_file("four_bar"))
    wheel = hc.Transmission(shipped, ["rocker"])
    assert hc.export_c(wheel, tmp_path / "rocker", name="rocker")[0].stem == "holoctl_rocker"


def table_of(name):
    if name == "three joints":  # of no mechanism: all that C knows is the series
        c = np.random.default_rng(6).normal(size=(4, 1, 5, 2))
        ends, inf = np.array([0.2, 1.0, 3.0]), np.full((2, 3, 3), np.inf)
        joints, motors = ("a", "b", "c"), ("left", "right")
        return hc.results.TransmissionTable(
            name, joints, motors, -ends, 2.0 * ends, c, np.full(2, 1e-6), inf[0, :2], inf
        )
    make, joints, box = CASES[name]
    box = 0.7 * np.array(box)
    return hc.Transmission(make(), joints).table(1e-6, -box, box)


@pytest.mark.parametrize("name", ["cranked", "pushed", "four_barred", "three joints"])
def test_a_table_in_c_is_the_table(name, tmp_path):
    compilers()
    table = table_of(name)
    paths = hc.export_c(table, tmp_path)
    prefix, p, n = paths[0].stem, len(table.joints), len(table.motors)
    assert prefix == f"holoctl_{name.replace(' ', '_')}_table"
    for i, motor in enumerate(table.motors):  # the header has the bound, rounded up
        bound = float(re.search(rf"{re.escape(motor)}: (\S+),", paths[0].read_text())[1])
        assert table.error[i] <= bound <= 1.02 * table.error[i]
    content = int(re.search(r"_CONTENT (0x\w+)UL", paths[0].read_text())[1], 16)
    evaluate = ctypes.CDLL(str(library(paths[:2], tmp_path)))[f"{prefix}_evaluate_checked"]

    def found(y, yd, content=content):
        given = [np.ascontiguousarray(x, dtype=float) for x in (y, yd)]
        results = [np.full(size, np.nan) for size in (n, (n, p), n)]
        pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (*given, *results)]
        return evaluate(ctypes.c_ulong(content), *pointers), results

    rng = np.random.default_rng(9)
    ys = rng.uniform(table.lower, table.upper, (200, p))
    ys[:2] = table.lower, table.upper
    for y, yd in zip(ys, rng.normal(size=ys.shape), strict=True):
        status, (q_m, J, bend) = found(y, yd)
        assert status == OK
        size = np.abs(table.coefficients).sum()
        np.testing.assert_allclose(q_m, table.motor_positions(y), rtol=0, atol=1e-14 * size)
        np.testing.assert_allclose(J, table.jacobian(y), rtol=1e-12, atol=1e-11)
        np.testing.assert_allclose(bend, table.curvature(y, yd), rtol=1e-11, atol=1e-10)
    assert np.abs(bend).max() > 1e-3
    beyond, bad = table.upper + 1e-9 * np.eye(p)[-1], np.full(p, np.nan)
    for x, rates, expected in [
        (beyond, yd, OUTSIDE), (-1e300 * table.upper, yd, OUTSIDE), (bad, yd, NOT_FINITE),
        (ys[5], bad, NOT_FINITE), (ys[5], np.full(p, 1e200), OVERFLOW),
    ]:  # fmt: skip
        status, results = found(x, rates)
        assert status == expected
        assert not any(x.any() for x in results)
    status, results = found(ys[5], yd, content ^ 1)
    assert status == BUILD
    assert all(np.isnan(x).all() for x in results)  # whose sizes may be others
    for compiler in compilers():
        run(compiler, *STRICT, "-O2", *paths[1:3], "-o", tmp_path / compiler, "-lm")
        assert "all is well" in run(tmp_path / compiler)


def test_a_table_is_exported_alone(tmp_path):
    table = table_of("three joints")
    with pytest.raises(hc.InputError, match="TransmissionTable is exported without 'plant'"):
        hc.export_c(table, tmp_path, plant=True)
    assert hc.export_c(table, tmp_path, name="ankle L")[0].stem == "holoctl_ankle_l"
