"""Exported C in single precision, beside that in double: the same text, and the same verdicts."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pinocchio as pin
import pytest
import zoo
from exported import STRICT, compilers, controller, last_line, robot, run, self_test
from support import few

import holoctl as hc
from holoctl.codegen.precision import DOUBLE, SINGLE

pytest.importorskip("casadi")

DRIVER = """
#include "holoctl_m.h"
#include <string.h>
typedef %s real;
static void copy(const double *x, int n, real *y) { for (int i = 0; i < n; i++) y[i] = (real)x[i]; }
enum { NQ = HOLOCTL_M_NQ, NV = HOLOCTL_M_NV, NU = HOLOCTL_M_NU };
void torques(int n, const double *q, const double *v, const double *a, double *u, int *status,
    double *guard) {
  holoctl_m c;
  real x[NQ], y[NV], z[NU], w[NU];
  holoctl_m_init(&c);
  for (int k = 0; k < n; k++) {
    copy(q + k * NQ, NQ, x);
    copy(v + k * NV, NV, y);
    copy(a + k * NU, NU, z);
    status[k] = holoctl_m_inverse_dynamics(&c, x, y, z, w);
    guard[k] = c.guard;
    for (int i = 0; i < NU; i++) u[k * NU + i] = w[i];
  }
}
"""

STATES = """
enum { M = HOLOCTL_M_RATES };
void states(int n, const double *q_m, const double *v_m, double *q, int *status) {
  static holoctl_m c;
  real x[M], y[M], z[NQ], w[NV];
  holoctl_m_init(&c);
  for (int k = 0; k < n; k++) {
    copy(q_m + k * M, M, x);
    copy(v_m + k * M, M, y);
    status[k] = holoctl_m_state(&c, x, y, z, w);
    for (int i = 0; i < NQ; i++) q[k * NQ + i] = z[i];
  }
}
"""


class Both:
    """The inverse dynamics of a mechanism in both precisions, of the same partition."""

    def __init__(self, mech, folder, measured="all"):
        self.mech, part = mech, hc.partition(mech, hc.assemble(mech)[0])
        self.libraries, driver = {}, DRIVER if measured == "all" else DRIVER + STATES
        for precision, real in (("single", "float"), ("double", "double")):
            here = folder / precision
            options = {"partition": part, "precision": precision, "measured": measured}
            hc.export_c(mech, here, name="m", **options)
            (here / "driver.c").write_text(driver % real)
            run(
                compilers()[0], "-O2", "-shared", "-fPIC", here / "holoctl_m.c", here / "driver.c",
                "-o", here / "m.so", "-lm",
            )  # fmt: skip
            self.libraries[precision] = ctypes.CDLL(str(here / "m.so"))
        self.header = (folder / "single" / "holoctl_m.h").read_text()

    def call(self, precision, function, inputs, width):
        n = len(inputs[0])
        found, status = np.zeros((n, width)), np.zeros(n, dtype=np.int32)
        more = [np.zeros(n)] if function == "torques" else []
        arrays = [*(np.ascontiguousarray(x, dtype=float) for x in inputs), found, status, *more]
        pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in arrays]
        getattr(self.libraries[precision], function)(n, *pointers)
        return found, status, *more

    def torques(self, precision, q, v, a):
        return self.call(precision, "torques", (q, v, a), self.mech.nu)

    def bound(self, guard):
        """The error that the header names."""
        least, most = re.findall(r"\*   (\S+) \+ (\S+) sqrt", self.header)[0]
        return float(least) + float(most) * np.sqrt(guard)


def random_states(mech, n, rng):
    """Closed and moving, from near the reference to far from it; in numbers of single precision."""
    found, (q0, _) = [], hc.assemble(mech)
    for k in range(4 * n):
        size = (0.1, 0.4, 1.0, 2.0)[k % 4] * mech.column_scale
        guess = pin.integrate(mech.model, q0, size * rng.normal(size=mech.nv))
        speed = 3.0 * rng.normal(size=mech.nv) * mech.column_scale
        try:
            q, v = hc.assemble(mech, guess, speed, restarts=0, max_iter=50)
        except hc.AssemblyError:
            continue
        found.append((q, v, 10.0 * rng.normal(size=mech.nu)))
    return [SINGLE.rounded(np.array(x)) for x in zip(*found[:n], strict=True)]


ROBOTS = {
    "five_bar": lambda: robot("five_bar"), "leg": lambda: robot("leg"),
    "delta": lambda: robot("delta"), "stewart": lambda: robot("stewart"),
    "ankle": lambda: robot("ankle"), "geared_arm": lambda: robot("geared_arm"),
    "slider_crank": zoo.slider_crank, "spatial_arms": zoo.spatial_arms,
    "hung_plate": zoo.hung_plate, "universal_rods": zoo.universal_rods,
}  # fmt: skip

FLOAT = "five_bar", "leg", "delta", "stewart", "ankle", "geared_arm"


def weight(mech, q):
    """The largest effort by gravity, of all coordinates, scaled."""
    data = mech.model.createData()
    efforts = [pin.computeGeneralizedGravity(mech.model, data, x).copy() for x in q]
    return np.abs(mech.column_scale * np.array(efforts)).max(axis=1)


def judged(mech, folder, n, falls=False):
    """Errors of single precision over what the header allows; refusals without a need. Motors of
    what falls do not feel its weight, which counts too."""
    both, rng = Both(mech, folder), np.random.default_rng(5)
    q, v, a = random_states(mech, n, rng)
    u, status, guard = both.torques("single", q, v, a)
    exact, right, sure = both.torques("double", q, v, a)
    still, none = np.zeros_like(v), np.zeros_like(a)
    by_gravity = both.torques("double", q, still, none)[0]
    parts = (
        by_gravity, both.torques("double", q, still, a)[0] - by_gravity,
        both.torques("double", q, v, none)[0] - by_gravity,
    )  # fmt: skip
    size = sum(np.abs(x) for x in parts).max(axis=1)
    size += weight(mech, q) if falls else 0.0
    good = (status == 0) & (right == 0)
    off = np.abs(u - exact).max(axis=1) / size / both.bound(guard)
    assert good.mean() > 0.5
    assert np.abs(u[good]).max() > 0.01
    assert 0.0 < off[good].max() < 1.0
    assert not ((status == 0) & (right != 0)).any()
    certain = (right == 0) & (sure < 0.1)
    return (status[certain] != 0).mean()


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
def test_every_torque_is_within_the_error_that_the_header_names(name, tmp_path):
    assert judged(ROBOTS[name](), tmp_path, 1000) <= 0.01


@pytest.mark.slow
def test_weight_that_motors_do_not_feel_counts_in_the_error(tmp_path):
    assert judged(zoo.floating_leg(), tmp_path, 500, falls=True) <= 0.01


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size"), [("five_bar", 0.25), ("delta", 0.25), ("stewart", 0.05)])
def test_the_state_follows_the_motors_for_a_thousand_seconds(name, size, tmp_path):
    both, ticks = Both(robot(name), tmp_path, None), 1_000_000
    estimator = hc.ClosedStateEstimator(both.mech)
    start, unit = estimator.readings.at(estimator.q), size * estimator.readings.unit
    w = 2.0 * np.pi * np.linspace(0.31, 0.83, start.size)
    t = 1e-3 * np.arange(ticks)[:, None]
    inputs = SINGLE.rounded(start + unit * np.sin(w * t)), unit * w * np.cos(w * t)
    q, status = both.call("single", "states", inputs, both.mech.nq)
    exact, right = both.call("double", "states", inputs, both.mech.nq)
    assert not status.any()
    assert not right.any()
    assert np.ptp(exact, axis=0).max() > 0.1
    assert np.abs(q - exact).max() < 1e-4


@pytest.mark.parametrize("name", few(FLOAT, FLOAT[:1]))
def test_the_self_test_passes_without_a_double(name, tmp_path):
    made = controller(name, limits=hc.limits_of(robot(name)))
    paths = hc.export_c(made, tmp_path, precision="single")
    for path in paths[:3]:
        code = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        code = "\n".join(x for x in code.splitlines() if "printf" not in x)
        assert "float" in code
        assert not re.search(r"\bdouble\b|DBL_|HUGE_VAL\b|\bsqrt\(", code)
    program, said = self_test(tmp_path, paths, compilers()[0], *STRICT[1:], "-O1")
    assert program is not None, said
    assert last_line(program) == (0, "all is well")


@pytest.mark.slow
@pytest.mark.parametrize("flags", ["-ffast-math", "-ffinite-math-only", "-fassociative-math"])
def test_flags_that_change_numbers_are_refused(flags, tmp_path):
    paths = hc.export_c(robot("five_bar"), tmp_path, precision="single")
    more = ["-fno-signed-zeros", "-fno-trapping-math"] if "associative" in flags else []
    program, said = self_test(tmp_path, paths, compilers()[0], "-O2", flags, *more)
    assert program is None or "BUILD" in last_line(program)[1], said


@pytest.mark.slow
def test_a_task_is_exported_and_the_plant_stays_in_double(tmp_path):
    tip = hc.TaskSpaceControl(robot("five_bar"), hc.FrameTask("tip", "x z"), kp=100.0, kd=20.0)
    paths = hc.export_c(tip, tmp_path, precision="single", plant=True)
    assert "double dt" in (tmp_path / "holoctl_five_bar_plant.h").read_text()
    program, said = self_test(tmp_path, paths, compilers()[0], "-O1")
    assert program is not None, said
    assert last_line(program) == (0, "all is well")


def test_what_single_precision_does_not_carry_is_named(tmp_path):
    mech = robot("five_bar")
    with pytest.raises(hc.InputError, match=r"precision must be one of 'double', 'single'"):
        hc.export_c(mech, tmp_path, precision="half")
    task = hc.FrameTask("tip", "x z")
    spring = hc.Impedance(mech, task, stiffness=500.0, damping="critical")
    with pytest.raises(hc.InputError, match="critical damping needs more digits"):
        hc.export_c(spring, tmp_path, precision="single")
    damped = hc.TaskSpaceControl(mech, task, kp=100.0, kd=20.0, at_singular="damp")
    with pytest.raises(hc.InputError, match="a damped task needs more digits"):
        hc.export_c(damped, tmp_path, precision="single")
    with pytest.raises(hc.InputError, match="exported without 'precision'"):
        hc.export_c(
            hc.Transmission(robot("ankle"), ["ankle_pitch", "ankle_roll"]),
            tmp_path,
            precision="single",
        )
    assert not any(tmp_path.iterdir())


def test_constants_and_names_become_those_of_float():
    text = 'double x = sqrt(0.1) + 1e-8 + y1.5; /* double 0.1 */ f("double 0.1");'
    assert SINGLE.text(text) == (
        'float x = sqrtf(0.1f) + 1e-08f + y1.5; /* double 0.1 */ f("double 0.1");'
    )
    assert SINGLE.text("a[12] + x3 / 4.0 < HUGE_VAL") == "a[12] + x3 / 4.0f < HUGE_VALF"
    assert SINGLE.text('  printf("%g", (double)x);') == '  printf("%g", (double)x);'
    assert DOUBLE.text(text) == text
    for number in ("1e300", "1e-300"):
        with pytest.raises(hc.InputError, match="beyond single precision"):
            SINGLE.text(f"x + {number}")
