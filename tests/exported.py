"""Exported C in the tests: compilers, shared libraries, and calls through ctypes."""

from __future__ import annotations

import copy
import ctypes
import hashlib
import os
import re
import shutil
import subprocess
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from support import SHARED

import holoctl as hc
from holoctl.codegen.exported import c_sources, self_test_states, self_test_ticks

STATUSES = (
    "OK", "NOT_FINITE", "NOT_NORMALISED", "OPEN", "SINGULAR", "PIVOT_GROWTH", "OVERFLOW",
    "BUILD", "SLIDING", "BROKEN", "LOST", "CONTRADICTORY", "LIMITED", "EXPIRED",
    "NEAR_SINGULAR",
)  # fmt: skip
PARAMETERS = (
    ("payload_mass", 1), ("payload_centre", 3), ("payload_inertia", 6), ("gravity", 3),
)  # fmt: skip
STRICT = (
    "-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wdouble-promotion", "-pedantic", "-Werror",
)  # fmt: skip


def compilers():
    """The C compilers that are here; skips the test where there is none."""
    found = [name for name in ("gcc", "clang") if shutil.which(name)]
    if not found:
        pytest.skip("no C compiler is here")
    return found


def cmake():
    """Skips the test where CMake is not here; in CI it must be, as the compiler."""
    compilers()
    if not (shutil.which("cmake") and shutil.which("ctest")):
        pytest.skip("no C compiler with CMake is here")


def run(*command, **more):
    """Run, and show what was printed if it fails."""
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=300, check=False, **more
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def build_and_test(folder, compiler, *options):
    """Configure, build and run ctest, as the README of the export says; what ctest prints."""
    build = folder / f"build-{compiler}{len(options)}"
    env = os.environ | {"CC": compiler}
    run("cmake", "-S", folder, "-B", build, "-DHOLOCTL_STRICT=ON", *options, env=env)
    run("cmake", "--build", build)
    return run("ctest", "--test-dir", build, "--output-on-failure", "-V")


def library(paths, folder):
    """The shared library of a header and a source; made once in a run of the tests, for nothing
    in it changes."""
    text = b"".join(path.read_bytes() for path in paths)
    shared = Path(os.environ.get(SHARED, folder))
    made = shared / f"law-{hashlib.sha256(text).hexdigest()}.so"
    if not made.exists():
        new = folder / "law.so"
        run(compilers()[0], *STRICT, "-O0", "-fPIC", "-shared", paths[1], "-o", new, "-lm")
        part = shutil.copy(new, made.with_suffix(f".{os.getpid()}"))
        os.replace(part, made)  # in one step: a process that looks meanwhile finds all or nothing
    return made


@contextmanager
def short_self_test():
    """What is exported has a self-test of 20 states, most of an export's time; for tests that do
    not run it."""
    with ExitStack() as stack:
        for module in (c_sources, self_test_states, self_test_ticks):
            stack.enter_context(mock.patch.object(module, "SELF_TEST_STATES", 20))
        yield


class Exported:
    """An export as a shared library; arrays in, (status name, u) out. Its self-test is short, if
    it is not asked for."""

    def __init__(self, what, folder, *, self_test=False, **options):
        self.controller = isinstance(what, hc.ComputedTorque)
        self.mech = mech = what if isinstance(what, hc.Mechanism) else what.mech
        with nullcontext() if self_test else short_self_test():
            self.paths = hc.export_c(what, folder, **options)
        self.prefix = self.paths[0].stem
        self.library = ctypes.CDLL(str(library(self.paths[:2], folder)))
        gains = [(x, ctypes.c_double * mech.nu) for x in ("kp", "kd")]
        gains = gains if self.controller and self.has_torque else []
        gains += [(x, ctypes.c_double * n if n > 1 else ctypes.c_double)
                  for x, n in PARAMETERS if f"double {x}" in self.paths[0].read_text()]  # fmt: skip
        limits = [
            (x, ctypes.c_double)
            for x in ("closure_limit", "velocity_limit", "guard_limit", "pivot_limit")
        ]
        certificate = [
            (x, ctypes.c_double)
            for x in ("closure", "velocity_residual", "acceleration", "missed", "guard", "pivot")
        ]
        if self.has_sides:
            limits.append(("margin", ctypes.c_double))
            certificate += [("sigma", ctypes.c_double), ("side", ctypes.c_double)]
        within = [("scale", ctypes.c_double), ("rates", ctypes.c_double * mech.nu)]
        certificate += within if self.has_limits else []
        fields = [
            ("content", ctypes.c_ulong), ("sound", ctypes.c_int),
            *gains, *limits, ("in_trouble", ctypes.c_int),
            ("hold_limit", ctypes.c_ulong), *certificate,
            ("last", ctypes.c_double * mech.nu), ("cause", ctypes.c_int),
            ("ticks", ctypes.c_ulonglong),
            ("troubles", ctypes.c_ulonglong), ("count", ctypes.c_ulonglong * len(STATUSES)),
        ]  # fmt: skip
        if self.has_state:
            fields.append(("memory", memory(self.paths[0].read_text())))
        self.struct = type("Struct", (ctypes.Structure,), {"_fields_": fields})
        self.c = self.struct()
        self.reset()

    def again(self):
        """The same library with another struct, just initialised."""
        other = copy.copy(self)
        other.c = other.struct()
        other.reset()
        return other

    @property
    def has_torque(self):
        """Whether there is a function for the torque of the controller."""
        return f"{self.prefix}_torque(" in self.paths[0].read_text()

    @property
    def has_limits(self):
        """Whether it keeps limits."""
        return "double scale;" in self.paths[0].read_text()

    @property
    def has_sides(self):
        """Whether it tells the sides of type-2 singularities."""
        return "double margin;" in self.paths[0].read_text()

    @property
    def has_state(self):
        """Whether there are functions for what is measured."""
        return f"{self.prefix}_state(" in self.paths[0].read_text()

    @property
    def content(self):
        """The number by which header and library know each other."""
        return int(re.search(r"_CONTENT (0x\w+)UL", self.paths[0].read_text())[1], 16)

    def init(self, size=None, content=None):
        """The status of init, by default with the size and content that are right."""
        size = ctypes.sizeof(self.c) if size is None else size
        content = self.content if content is None else content
        return STATUSES[
            self.library[f"{self.prefix}_init_checked"](
                ctypes.byref(self.c), ctypes.c_ulong(size), ctypes.c_ulong(content)
            )
        ]

    def reset(self):
        """As after init."""
        assert self.init() == "OK"

    def call(self, function, *inputs, t=None):
        """Status and u of a function."""
        arrays = [np.ascontiguousarray(x, dtype=float) for x in inputs]
        u = np.full(self.mech.nu, np.nan)
        pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*arrays, u)]
        if t is not None:
            pointers.insert(-1, ctypes.c_double(t))
        f = self.library[f"{self.prefix}_{function}"]
        return STATUSES[f(ctypes.byref(self.c), *pointers)], u

    def state(self, q_m, v_m, t=None):
        """Status, q and v of what is measured."""
        arrays = [np.ascontiguousarray(x, dtype=float) for x in (q_m, v_m)]
        found = [np.full(n, np.nan) for n in (self.mech.nq, self.mech.nv)]
        pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*arrays, *found)]
        if t is not None:
            pointers.insert(2, ctypes.c_double(t))
        f = self.library[f"{self.prefix}_state"]
        return STATUSES[f(ctypes.byref(self.c), *pointers)], *found

    def begin(self, q, t=None):
        """The status of reset."""
        q = np.ascontiguousarray(q, dtype=float)
        given = [ctypes.c_void_p(q.ctypes.data), *([ctypes.c_double(t)] if t is not None else [])]
        return STATUSES[self.library[f"{self.prefix}_reset"](ctypes.byref(self.c), *given)]

    def text(self, status):
        """What the library says of a status."""
        f = self.library[f"{self.prefix}_status_text"]
        f.restype = ctypes.c_char_p
        return f(status).decode()


def memory(header):
    """The type of the memory, as the header has it."""
    text = re.search(r"typedef struct \{([^}]*)\} \w+_memory;", header)[1]
    fields = []
    for kind, names in re.findall(r"^  (double|int) ([^;]*);", text, re.MULTILINE):
        plain = {"double": ctypes.c_double, "int": ctypes.c_int}[kind]
        for name, size in re.findall(r"(\w+)(?:\[(\d+)\])?", names):
            fields.append((name, plain * int(size) if size else plain))
    return type("Memory", (ctypes.Structure,), {"_fields_": fields})


@cache
def robot(name):
    return hc.load(hc.robot_file(name), free_flyer=name == "leg")


def controller(name, **options):
    return hc.ComputedTorque(robot(name), kp=400.0, kd=40.0, **options)


def good_inputs(exported):
    mech = exported.mech
    q, v = hc.assemble(mech, v_guess=0.1 * np.ones(mech.nv))
    return [q, v, np.full(mech.nu, 0.3), np.zeros(mech.nu), np.ones(mech.nu)]


def self_test(folder, paths, compiler, *flags):
    """The self-test as a program, or what the compiler says."""
    made = folder / f"self-test{abs(hash((compiler, *flags)))}"
    sources = [x for x in paths if x.suffix == ".c" and not x.stem.endswith("_plant")]
    command = [compiler, "-std=c99", "-w", *flags, *sources, "-o", made, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (made, "") if done.returncode == 0 else (None, done.stderr)


def last_line(program):
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()[-1]
