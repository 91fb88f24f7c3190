"""The law of contacts in C, beside `contact_solution` on the same terms."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from exported import STRICT, compilers, run
from standing import NAMES, standing

import holoctl as hc
from holoctl.codegen.c_text import filled
from holoctl.codegen.contacts_c import ContactSizes, contact_values
from holoctl.control.contact_inverse_dynamics import reduced_terms
from holoctl.control.contact_law import contact_solution
from holoctl.control.contact_motion import contact_motion
from holoctl.control.contact_rows import bound_contacts, contact_rows
from holoctl.dynamics.actuation import effort_scales
from holoctl.mechanism.bound_limits import bound_limits

VERDICTS = (
    "BILATERAL", "UNILATERAL", "SLIPPING", "EXCLUDED", "WEIGHTLESS", "APART", "CROWDED",
    "UNDECIDED",
)  # fmt: skip
OFTEN = ("edge", "raise"), ("biped", "nearest")
CASES = [(*case, 16) for case in OFTEN] + [
    pytest.param(name, policy, 400, marks=pytest.mark.slow)
    for name in NAMES for policy in ("raise", "nearest")
]  # fmt: skip

AROUND = """
static contact_room room;
double *numbers(int which) {{
  double *found[] = {{room.inertia, room.motions, room.drifts, room.wanted}};
  return found[which];
}}
void forget(void) {{ room.last[0] = 0; {slip} }}
int solve(const double *rates, double *lower, double *upper, int *steps, double *u, double *force,
    double *slip) {{
  if (rates) {{
    effort_bounds(rates, lower, upper);
    keep_within(rates, u);
  }}
  double *memory[] = {{room.forces, room.tasks, room.conditions, room.hessian, room.inverse_root,
    room.active_root}};
  const size_t sizes[] = {{sizeof room.forces, sizeof room.tasks, sizeof room.conditions,
    sizeof room.hessian, sizeof room.inverse_root, sizeof room.active_root}};
  for (int i = 0; i < 6; i++) /* what is read before it is set shows */
    for (size_t k = 0; k < sizes[i] / sizeof(double); k++) memory[i][k] = NAN;
  return (int)on_contacts(&room, {all}UL, lower, upper, steps, u, force, slip);
}}
"""


SAME = 1e-8
"""Efforts of C and of Python, over the largest one. Redundant motors share by a weight of 3e-9,
and DAQP leaves rounding over it."""


class InC:
    """The law of one case."""

    def __init__(self, folder, case, policy):
        mech, self.nu = case.mech, case.mech.nu
        contacts = bound_contacts(mech, case.contacts)
        self.rows = sum(one.scale.size for one in contacts)
        q, v = case.state(np.random.default_rng(0))
        _, _, first = terms_of(case, q, v, np.zeros(self.nu), {})
        free = contact_motion(first).Y.shape[1] - self.nu
        self.given = len(first.W), self.nu, len(first.t)
        bound = bound_limits(mech, hc.Limits(effort=case.effort))
        sizes = ContactSizes(len(first.W), len(first.t), free)
        values = contact_values(mech, contacts, bound, sizes, policy, "law", False)
        values |= {"redundant": False}
        around = AROUND.format(
            slip="room.last_slip[0] = 0;" if policy == "nearest" else "",
            all=2 ** len(contacts) - 1,
        )
        source, made = folder / "law.c", folder / "law.so"
        source.write_text(
            f"#include <math.h>\n#include <stddef.h>\nenum {{ NU = {self.nu} }};\n"
            + filled("contacts_memory.h", values) + filled("contacts.c", values) + around
        )  # fmt: skip
        run(compilers()[0], *STRICT, "-O1", "-fPIC", "-shared", source, "-o", made, "-lm")
        self.library = ctypes.CDLL(str(made))
        self.library.numbers.restype = ctypes.POINTER(ctypes.c_double)

    def __call__(self, r, bounds, warm=False):
        """Verdict, u and the number of steps."""
        Z = np.concatenate([r.A, r.T.T, r.g[:, None], r.J.T], axis=1)
        for i, x in enumerate((r.W, Z, r.c, r.t)):
            place = np.ctypeslib.as_array(self.library.numbers(i), (x.size,))
            place[:] = x.ravel()
        if not warm:
            self.library.forget()
        u, force, slip, steps = (
            np.zeros(self.nu),
            np.zeros(self.rows),
            np.zeros(1),
            np.zeros(1, int),
        )
        given = [*(np.array(x, dtype=float) for x in bounds), steps, u, force, slip]
        pointers = [ctypes.c_void_p(x.ctypes.data) for x in given]
        return VERDICTS[self.library.solve(None, *pointers)], u, int(steps[0])


def terms_of(case, q, v, target, f_ext):
    """Projection, ground and terms."""
    mech, P = case.mech, hc.project(case.mech, q, v, partition=case.part)
    ground = contact_rows(P.kinematics, bound_contacts(mech, case.contacts))
    scale = effort_scales(mech)[0]
    tasks = scale[:, None] * mech.B.T, scale * target
    return P, ground, reduced_terms(P, ground, tasks, P.terms.known_efforts(f_ext))[1]


def in_python(case, r, ground, bounds, policy):
    try:
        found = contact_solution(case.mech, r, ground, bounds, policy)
    except hc.LimitError:
        return "EXCLUDED", None
    if found.multipliers is None or not found.multipliers.any():
        return "BILATERAL", found.u
    return "SLIPPING" if found.slipping else "UNILATERAL", found.u


@pytest.mark.parametrize(("name", "policy", "states"), CASES)
def test_the_law_is_that_of_python(name, policy, states, tmp_path):
    case, rng, seen, most = standing(name), np.random.default_rng(1), set(), 0
    code, nu = InC(tmp_path, case, policy), case.mech.nu
    for i in range(states):
        q, v = case.state(rng)
        target = (0.1, 1.0, 5.0, 30.0)[i % 4] * rng.normal(size=nu)
        effort = case.effort * (1.0, 0.6, 0.3, 0.1)[i // 4 % 4] if i % 3 else np.inf
        pull = {
            case.contacts[-1].frame: (*(60.0 * rng.normal(size=2)), 300.0 * rng.uniform(), 0, 0, 0)
        }
        _, ground, r = terms_of(case, q, v, target, pull if i % 2 else {})
        bounds = np.full(nu, -effort), np.full(nu, effort)
        verdict, expected = in_python(case, r, ground, bounds, policy)
        found, u, steps = code(r, bounds)
        assert found == verdict
        seen.add(found)
        if expected is None:
            continue
        assert abs(u - expected).max() < SAME * abs(expected).max()
        most = max(most, steps)
        again, warm, steps = code(r, bounds, warm=True)
        assert again == found
        assert abs(warm - u).max() < SAME * abs(u).max()
        assert steps <= 8
    assert seen >= {"BILATERAL", "UNILATERAL", "EXCLUDED" if policy == "raise" else "SLIPPING"}
    assert 0 < most <= (60 if policy == "raise" else 120)
