"""A law that is not in the library, one text: in numbers, by the virtual machine, and as C.

Gravity compensation of one group of joints: the motors carry what its coordinates would have to
hold at rest, and nothing of the others.
"""

from __future__ import annotations

import ctypes
import pickle
import subprocess

import numpy as np
import pytest
from exported import compilers
from inside import laws_in_numbers
from support import closed_states, few, mechanism, shared_partition

import holoctl as hc
from holoctl.laws.operators import times

ca = pytest.importorskip("casadi")

NAMES = few(
    ["four_bar", "five_bar", "floating_leg", "three_motors", "screw_chain", "spatial_arms"],
    ["five_bar", "three_motors"],
)


def carry(K, tree, group):
    """The law: ``gamma' B u = gamma' S (h - F)`` at rest, S the group of coordinates."""
    return K.share(K.along(times(group, tree.at_rest())))


def by_gamma(mech, part, q, group, weights=None):
    """Its oracle."""
    P = hc.project(mech, q, np.zeros(mech.nv), partition=part)
    A, x = P.gamma.T @ mech.B, P.gamma.T @ group @ (P.terms.h - P.terms.F)
    return np.linalg.lstsq(A, x)[0]


def as_expressions(mech, part, group):
    from holoctl.codegen.expressions import symbolic
    from holoctl.codegen.laws.constraints_and_tree import SymbolicTree, motor_constraints
    from holoctl.codegen.matrices import total

    E = symbolic(mech, part)
    K, tree = motor_constraints(E), SymbolicTree(E)
    u = carry(K, tree, ca.SX(group))
    guard = total([*E.guard, *K.guard, *tree.guard])
    u, guard = ca.substitute([u, guard], [E.v], [ca.SX.zeros(mech.nv)])
    return ca.Function("carry", [E.q, E.t], [u, guard], ["q", "t"], ["u", "guard"])


def by_c99(function, folder):
    """u of a function (q, t) that a C compiler makes of its text, without Python or CasADi."""
    from holoctl.codegen.c_source import c_function

    source, library = folder / "carry.c", folder / "carry.so"
    source.write_text("#include <math.h>\n" + c_function(function, qualifier=""))
    subprocess.run(
        [compilers()[0], "-std=c99", "-O1", "-shared", "-fPIC", str(source), "-o", str(library)],
        check=True,
    )
    law, doubles = ctypes.CDLL(str(library)).carry, np.ctypeslib.ndpointer(dtype=float)
    law.argtypes, law.restype = [doubles] * 4, None

    def answer(q):
        u, guard = np.zeros(function.numel_out(0)), np.zeros(1)
        law(np.ascontiguousarray(q), np.zeros(1), u, guard)
        assert guard[0] < 1.0
        return u

    return answer


@pytest.mark.parametrize("name", NAMES)
def test_a_new_law_is_one_text_on_every_machine(name, tmp_path):
    from holoctl.codegen.c_source import c_function
    from holoctl.codegen.compiled.extension import built
    from holoctl.codegen.compiled.extension_source import Law, extension_source
    from holoctl.codegen.compiled.interpreted import interpreted

    mech, part = mechanism(name), shared_partition(name)
    group = np.diag((np.arange(mech.nv) < mech.nv / 2).astype(float))
    at = laws_in_numbers(hc.PreparedInverseDynamics(mech, part, None, "project", None, None))
    function = as_expressions(mech, part, group)
    law = Law("carry", (("q", mech.nq),), (("u", mech.nu), ("guard", 1)))
    module = built(lambda name: extension_source(c_function(function), law, name), ("-O0",))

    def refused(*_):
        raise AssertionError("the law was in doubt")

    machines = {
        "numbers": lambda q: carry(*at(q, np.zeros(mech.nv), 0.0), group),
        "virtual machine": interpreted(function, law).bind(refused, refused),
        "C here": module.bind(refused, refused),
        "C99": by_c99(function, tmp_path),
    }
    largest = 0.0
    for q, _ in closed_states(name)[:3]:
        expected = by_gamma(mech, part, q, group)
        largest = max(largest, np.abs(expected).max())
        given = pickle.loads(pickle.dumps(q))  # its type is an equal one then, not the same
        for machine, answer in machines.items():
            size = 1.0 + np.abs(expected).max()
            np.testing.assert_allclose(
                answer(given), expected, rtol=0.0, atol=1e-9 * size, err_msg=machine
            )
    assert largest > 1e-3
