"""The nearest point within bounds, in C: its conditions, and other solvers on random programs."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace

import numpy as np
import pytest
from exported import STRICT, compilers, run
from support import few

from holoctl.base.tolerances import SOFT_ROWS
from holoctl.codegen.limits_c import nearest_c

BEST, INFEASIBLE, GAVE_UP = range(3)
SIZES = ((1, 1), (2, 1), (3, 2), (5, 0), (6, 8), (12, 3))
KINDS = ("feasible", "redundant", "degenerate", "unlikely")


@dataclass(frozen=True, eq=False)
class Program:
    """min 1/2 d' H d, lower <= at + (d; Y d) <= upper."""

    H: np.ndarray
    Y: np.ndarray
    at: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @property
    def C(self):
        return np.vstack([np.eye(len(self.H)), self.Y])


class InC:
    """The solver for programs of one size."""

    def __init__(self, folder, nu, n):
        source, made = folder / f"nearest_{nu}_{n}.c", folder / f"nearest_{nu}_{n}.so"
        source.write_text(
            f"#include <math.h>\nenum {{ NU = {nu} }};\n{nearest_c(nu, n)}\n"
            "int solve(int soft, const double *H, const double *Y, const double *at,\n"
            "    const double *lower, const double *upper, double *step, double *multiplier) {\n"
            f"  const program p = {{NU, NU, {n}, soft, H, Y, at, lower, upper}};\n"
            "  return nearest(&p, step, multiplier);\n}\n"
        )
        run(compilers()[0], *STRICT, "-O2", "-fPIC", "-shared", source, "-o", made, "-lm")
        self.library = ctypes.CDLL(str(made))

    def __call__(self, p, soft=False):
        """Outcome, step and multipliers."""
        Y = p.Y if len(p.Y) else np.zeros((1, len(p.H)))
        step, multipliers = np.full(len(p.H), np.nan), np.full(len(p.at), np.nan)
        arrays = [np.ascontiguousarray(x) for x in (p.H, Y, p.at, p.lower, p.upper)]
        pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*arrays, step, multipliers)]
        return self.library.solve(int(soft), *pointers), step, multipliers


@pytest.fixture(scope="module")
def in_c(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nearest")
    return {size: InC(folder, *size) for size in SIZES}


def program(rng, nu, n, kind):
    """A random one, up to a condition number of 1e7 and far outside its bounds."""
    values = np.geomspace(1.0, 1.0 / rng.choice([1.0, 1e3, 1e7]), nu)
    axes = np.linalg.qr(rng.normal(size=(nu, nu)))[0]
    H = axes @ np.diag(nu * values / values.sum()) @ axes.T
    Y = rng.normal(size=(n, nu))
    if kind == "redundant" and n > 1:
        Y[1:] = Y[:1] * rng.choice([-1.0, 1.0], (n - 1, 1))
    Y /= np.linalg.norm(Y, axis=1)[:, None]
    far = rng.choice([1.0, 10.0, 1e4])
    x, a = far * rng.normal(size=nu), far * rng.normal(size=n)
    lower, upper, within = -np.ones(nu), np.ones(nu), rng.uniform(-1.0, 1.0, nu)
    if kind == "degenerate":
        lower[0] = upper[0] = within[0]
        x[-1] = 1.0
    reached = a + Y @ (within - x)
    width = rng.choice([0.0, 1e-3, 1.0]) * np.abs(rng.normal(size=(2, n)))
    if kind == "unlikely":
        reached = reached + 3.0 * rng.normal(size=n)
    least, most = reached - width[0], reached + width[1]
    return Program(
        0.5 * (H + H.T), Y, np.concatenate([x, a]),
        np.concatenate([lower, least]), np.concatenate([upper, most]),
    )  # fmt: skip


def by_daqp(p, soft=False):
    """Exit flag and d."""
    daqp = pytest.importorskip("daqp")
    nu, n = len(p.H), len(p.Y)
    sense = np.array([0] * nu + [8 * soft] * n, dtype=np.intc)
    x, _, flag, _ = daqp.solve(
        p.H, np.zeros(nu), p.Y, p.upper - p.at, p.lower - p.at, sense,
        primal_tol=1e-12, dual_tol=1e-12, rho_soft=SOFT_ROWS,
    )  # fmt: skip
    return flag, np.array(x)


def apart(p, one, two):
    """In the metric of H, against the size of the program."""
    return np.sqrt((one - two) @ p.H @ (one - two)) / (1.0 + np.abs(p.at).max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", few([500, 2000], [500]))
def test_conditions_of_the_best_point(in_c, kind, count):
    rng = np.random.default_rng(KINDS.index(kind))
    solved = infeasible = 0
    for i in range(count):
        nu, n = SIZES[i % len(SIZES)]
        p = program(rng, nu, n, kind)
        outcome, d, forces = in_c[nu, n](p)
        assert outcome != GAVE_UP
        flag, other = by_daqp(p)
        if outcome == INFEASIBLE:
            infeasible += 1
            assert kind != "feasible"
            assert flag != 1 or kind != "unlikely"
            continue
        solved += 1
        size, x = 1.0 + np.abs(p.at).max(), p.at + p.C @ d
        assert np.abs(p.H @ d - p.C.T @ forces).max() <= 1e-10 * (1.0 + np.abs(forces).max())
        assert max((p.lower - x).max(), (x - p.upper).max()) <= 1e-12 * size
        off = np.where(forces > 0.0, x - p.lower, np.where(forces < 0.0, x - p.upper, 0.0))
        assert np.abs(off).max() <= 1e-12 * size
        if flag == 1:
            assert apart(p, d, other) <= 1e-10
    assert solved > (0.3 if kind == "unlikely" else 0.975) * count
    assert infeasible > 0.15 * count if kind == "unlikely" else infeasible < 0.025 * count


def test_soft_rows_give_way_as_those_of_daqp(in_c):
    rng, soft = np.random.default_rng(9), 0
    for i in range(1500):
        nu, n = SIZES[i % len(SIZES)]
        p = program(rng, nu, n, KINDS[i % 3 - 1])
        outcome, d, _ = in_c[nu, n](p, soft=True)
        assert outcome == BEST
        x = p.at[:nu] + d
        size = 1.0 + np.abs(p.at).max()
        assert max((p.lower[:nu] - x).max(), (x - p.upper[:nu]).max()) <= 1e-12 * size
        flag, other = by_daqp(p, soft=True)
        if flag in (1, 2):
            soft += flag == 2
            assert apart(p, d, other) <= 1e-8
    assert soft > 300


def test_the_best_point_is_that_of_clarabel(in_c):
    cp = pytest.importorskip("cvxpy")
    rng, compared = np.random.default_rng(4), 0
    for i in range(12):
        nu, n = SIZES[1 + i % 5]
        p = program(rng, nu, n, "feasible")
        outcome, d, _ = in_c[nu, n](p)
        assert outcome == BEST
        x = cp.Variable(nu)
        rows = [p.at + p.C @ x >= p.lower, p.at + p.C @ x <= p.upper]
        cp.Problem(cp.Minimize(0.5 * cp.quad_form(x, cp.psd_wrap(p.H))), rows).solve("CLARABEL")
        compared += 1
        assert apart(p, d, np.asarray(x.value)) <= 1e-6
    assert compared == 12


def test_what_is_within_bounds_stays_and_what_is_no_number_is_refused(in_c):
    p = program(np.random.default_rng(1), 3, 2, "feasible")
    inside = replace(p, at=0.5 * (p.lower + p.upper))
    outcome, d, forces = in_c[3, 2](inside)
    assert outcome == BEST
    assert not d.any()
    assert not forces.any()
    for bad in (np.nan, np.inf):
        assert in_c[3, 2](replace(p, at=np.array([bad, *p.at[1:]])))[0] == GAVE_UP
        assert in_c[3, 2](replace(p, H=bad * p.H))[0] == GAVE_UP
