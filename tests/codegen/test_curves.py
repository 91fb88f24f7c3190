"""The hyperbolic tangents and exponentials of generated C: accuracy, and where they stand."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest
from exported import STRICT, compilers, run

from holoctl.codegen.batched_functions import batched_tanh_exp, tanh_exp
from holoctl.codegen.c_source import c_function

ca = pytest.importorskip("casadi")

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e-310, 1e308, -1e308, 22.0, 20.0]

FLAGS = [
    ("-O2",), ("-O0",), ("-O2", "-DFLT_EVAL_METHOD=1"),
    ("-O3", "-fno-math-errno", "-fno-trapping-math", "-march=native", "-ffp-contract=fast"),
]  # fmt: skip

CALLS = """
void many_tangents(const double *x, int n, double *y) { tangents(x, n, y); }
void many_exponentials(const double *x, int n, double *y) { exponentials(x, n, y); }
void each_tangent(const double *x, int n, double *y) {
  for (int i = 0; i < n; i++) y[i] = tangent(x[i]);
}
void each_exponential(const double *x, int n, double *y) {
  for (int i = 0; i < n; i++) y[i] = exponential(x[i]);
}
"""

PROTOTYPES = "".join(
    f"{line.split('{')[0].strip()};\n" for line in CALLS.splitlines() if line.startswith("void")
)


@pytest.fixture(scope="module", params=FLAGS, ids=" ".join)
def library(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("curves")
    head = "#include <float.h>\n#include <math.h>\n"
    if "-DFLT_EVAL_METHOD=1" in request.param:  # as where registers hold more
        head += "#undef FLT_EVAL_METHOD\n#define FLT_EVAL_METHOD 1\n"
    names = ("tangents", "exponentials", "exponential")
    (folder / "curves.c").write_text(head + PROTOTYPES + tanh_exp(names) + CALLS)
    flags = [f for f in request.param if not f.startswith("-D")]
    made = folder / "curves.so"
    run(compilers()[-1] if "-O0" in flags else compilers()[0], *STRICT, *flags, "-fPIC",
        "-shared", folder / "curves.c", "-o", made, "-lm")  # fmt: skip
    return ctypes.CDLL(str(made))


def of(library, name, x):
    x, y = np.ascontiguousarray(x), np.full(x.size, np.nan)
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (x, y)]
    library[name](pointers[0], ctypes.c_int(x.size), pointers[1])
    return y


def points(count):
    """Of all sizes: whole range, near zero, tiny, and around the bends."""
    rng = np.random.default_rng(1)
    u = rng.uniform(-1.0, 1.0, size=(5, count // 5))
    tiny = np.ldexp(u[3], rng.integers(-1074, 0, size=count // 5))
    return np.concatenate([u[0], 22.5 * u[1], 0.6 * u[2], tiny, 5.0 * u[4]])


def units(y, exact):
    """Error in units in the last place of the exact result."""
    size = np.abs(exact.astype(float))
    return np.abs(y.astype(np.longdouble) - exact) / (np.nextafter(size, np.inf) - size)


@pytest.mark.parametrize("name", ["many", "each"])
def test_tangents_are_good_to_two_units(library, name):
    x = points(1_000_000)
    plural = "s" if name == "many" else ""
    y = of(library, f"{name}_tangent{plural}", x)
    assert units(y, np.tanh(x.astype(np.longdouble))).max() <= 2.0
    assert np.abs(y).max() <= 1.0
    y = of(library, f"{name}_tangent{plural}", np.array(SPECIAL))
    with np.errstate(all="ignore"):
        expected = np.tanh(SPECIAL)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(np.signbit(y[:4]), np.signbit(expected[:4]))


@pytest.mark.parametrize("name", ["many", "each"])
def test_exponentials_are_good_to_two_units(library, name):
    plural = "s" if name == "many" else ""
    x = np.concatenate([points(500_000), 699.0 * points(500_000) / 22.5])
    y = of(library, f"{name}_exponential{plural}", x)
    assert units(y, np.exp(x.astype(np.longdouble))).max() <= 2.0
    beyond = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e308, -1e308, 709.0, -745.0, 5e-324])
    y = of(library, f"{name}_exponential{plural}", beyond)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(y, np.exp(beyond), rtol=3e-16)


def source_of(*outputs):
    x = ca.SX.sym("x", 12)
    f = ca.Function(
        "f", [x], [g(x) for g in outputs], ["x"], [f"y{i}" for i in range(len(outputs))]
    )
    return c_function(f)


def test_what_does_not_wait_stands_together():
    """Of the first function, all; of the second, those that need the first."""
    source = source_of(lambda x: ca.tanh(2.0 * x) * ca.exp(x) + ca.tanh(ca.tanh(2.0 * x) - x))
    kinds = re.findall(r"= (tanh|exp)\(", source)
    assert kinds == ["tanh"] * 12 + ["exp"] * 12 + ["tanh"] * 12
    together = batched_tanh_exp(source)
    assert len(re.findall(r"^  tangents\(", together, re.M)) == 2
    assert len(re.findall(r"^  exponentials\(", together, re.M)) == 1
    assert "= tanh(" not in together


def test_few_stand_alone_and_what_is_not_called_is_not_there():
    together = batched_tanh_exp(source_of(lambda x: ca.tanh(x[:3])))
    assert together.count("= tangent(") == 3
    assert "tangents(" not in together
    assert "exponential(" not in together


def test_without_any_it_is_the_same_text():
    source = source_of(lambda x: ca.sin(x) / x[0])
    assert batched_tanh_exp(source) == source
