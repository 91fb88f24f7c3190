"""C functions in stages: the numbers of the whole function, each stage from what is there."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from exported import compilers, run

from holoctl.codegen.c_source import PART, c_function, c_stages

casadi = pytest.importorskip("casadi")

STAGES = [("first", ["a"]), ("next", ["b", "c"]), ("last", ["d"])]


def function(length):
    """Outputs that share steps, an input, a constant, and one that is needed twice."""
    x, y = casadi.SX.sym("x", 3), casadi.SX.sym("y", 2)
    z = casadi.sin(x[0] * y[1]) + x[2]
    for k in range(length):
        z = casadi.cos(z + 0.1 * k) + x[k % 3]
    shared = casadi.exp(-z * z)
    a = casadi.vertcat(z, 2.0)
    b = casadi.vertcat(shared + y[0], x[1], 0.0)
    c = casadi.vertcat(z, shared, 3.0)
    d = casadi.vertcat(shared * z - x[1], z, x[1])
    return casadi.Function("f", [x, y], [a, b, c, d], ["x", "y"], ["a", "b", "c", "d"])


def pointers(arrays):
    return [ctypes.c_void_p(x.ctypes.data) for x in arrays]


@pytest.mark.parametrize("length", [0, 5, pytest.param(2 * PART, marks=pytest.mark.slow)])
def test_stages_give_the_numbers_of_the_whole(length, tmp_path):
    f = function(length)
    stages = c_stages(f, STAGES, qualifier="")
    source, made = tmp_path / "f.c", tmp_path / "f.so"
    source.write_text("#include <math.h>\n" + stages.source + c_function(f, qualifier=""))
    run(compilers()[0], "-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared",
        source, "-o", made, "-lm")  # fmt: skip
    library = ctypes.CDLL(str(made))
    rng, w = np.random.default_rng(0), np.full(stages.size + 1, np.nan)
    inputs = [rng.normal(size=3), rng.normal(size=2)]
    a, b, c, d = (np.full(n, np.nan) for n in (2, 3, 3, 3))
    library.first(*pointers([w, *inputs, a]))
    kept = [x.copy() for x in inputs]
    for x in inputs:
        x[:] = np.nan  # later stages need no inputs
    library.next(*pointers([w, b, c]))
    library.last(*pointers([w, d]))
    for found, expected in zip((a, b, c, d), f.call(kept), strict=True):
        np.testing.assert_allclose(found, np.array(expected).ravel(), rtol=1e-14, atol=1e-14)
    assert np.isnan(w[-1])


def test_no_step_is_taken_twice():
    """But for copies of what an earlier stage has."""
    f = function(5)
    whole, stages = c_function(f), c_stages(f, STAGES)
    for step in ("exp(", "cos(", "sin("):
        assert stages.source.count(step) == whole.count(step)
