"""Exported controllers on contacts as shared libraries, with a few functions around them."""

from __future__ import annotations

import ctypes
import re

import numpy as np
from exported import STRICT, compilers, run, short_self_test

import holoctl as hc

STATUSES = (
    "OK", "NOT_FINITE", "NOT_NORMALISED", "OPEN", "SINGULAR", "PIVOT_GROWTH", "OVERFLOW", "BUILD",
    "SLIDING", "BROKEN", "LOST", "CONTRADICTORY", "LIMITED", "EXPIRED", "NEAR_SINGULAR", "EXCLUDED",
    "CONTACTS", "UNDECIDED",
)  # fmt: skip

AROUND = """
#include "{P}.c"

static {P} c;
int start(void) {{ return {P}_init(&c); }}
void act(unsigned long active) {{ c.active = active; }}
void forget(void) {{ c.contacts.last[0] = 0; {slip} }}
int steps(void) {{ return c.steps; }}
double slip(void) {{ return c.slip; }}
const double *forces(void) {{ return c.force; }}
const double *motion(void) {{ return {motion}; }}
int torque(const double *q, const double *v, const double *x, const double *y, const double *z,
    double *u) {{ return {P}_torque(&c, q, v, x, y, z, u); }}
int inverse(const double *q, const double *v, const double *target, double *u) {{
  return {P}_inverse_dynamics(&c, q, v, target, u); }}
const char *words(int status) {{ return {P}_status_text(({P}_status)status); }}
"""


class OnContacts:
    """An export of a controller on contacts: arrays in, (status name, u) out."""

    def __init__(self, controller, folder):
        with short_self_test():
            self.paths = hc.export_c(controller, folder, name="robot")
        self.header = self.paths[0].read_text()
        slip = "c.contacts.last_slip[0] = 0;" if "last_slip" in self.header else ""
        motion = "c.contacts.missed" if "broken(" in self.paths[1].read_text() else "0"
        text = AROUND.format(P="holoctl_robot", slip=slip, motion=motion)
        source, made = folder / "around.c", folder / "around.so"
        source.write_text(text)
        run(compilers()[0], *STRICT, "-O0", "-fPIC", "-shared", source, "-o", made, "-lm")
        self.nu, self.library = controller.mech.nu, ctypes.CDLL(str(made))
        self.library.slip.restype = ctypes.c_double
        self.library.words.restype = ctypes.c_char_p
        for name in "forces", "motion":
            getattr(self.library, name).restype = ctypes.POINTER(ctypes.c_double)
        self.rows = int(re.search(r"double force\[(\d+)\]", self.header)[1])
        assert self.library.start() == 0

    def act(self, active):
        """Choose contacts by bits."""
        self.library.act(ctypes.c_ulong(active))

    def call(self, function, *inputs, warm=False):
        """Status and u of a function."""
        if not warm:
            self.library.forget()
        arrays = [np.ascontiguousarray(x, dtype=float) for x in inputs]
        u = np.full(self.nu, np.nan)
        pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*arrays, u)]
        return STATUSES[self.library[function](*pointers)], u

    @property
    def steps(self):
        """Changes of the active conditions in the last tick."""
        return self.library.steps()

    @property
    def slip(self):
        """Of the last tick."""
        return self.library.slip()

    def motion(self, k):
        """That of the last tick, k numbers, where redundant rows are checked."""
        return np.array(self.library.motion()[:k])

    @property
    def forces(self):
        """Of the last tick."""
        return np.array(self.library.forces()[: self.rows])
