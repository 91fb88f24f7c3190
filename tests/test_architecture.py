"""The house rules, read off the source: one way through, each file stands on lower floors only.

The floors are explained in docs/architecture.md; change both together.
"""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from importlib.util import resolve_name
from pathlib import Path

import pytest

import holoctl as hc

ROOT = Path(hc.__file__).parent

FLOORS = {
    "errors": 0,
    "checks": 1,
    "linalg": 1,
    "consistency": 2,
    "frozen_model": 1,
    "inertia": 2,
    "timing": 2,
    "saddle_point": 2,
    "tree": 2,
    "motors": 3,
    "constraints.contract": 3,
    "constraints.differences": 4,
    "constraints.kinds": 3,
    "constraints.wrench": 4,
    "constraints.closure": 5,
    "constraints.rod": 5,
    "constraints.contact": 5,
    "constraints.coupling": 5,
    "constraints.custom": 5,
    "constraints.gamma_q": 5,
    "mechanism": 6,
    "anchors": 7,
    "fast_rows": 7,
    "open_tree": 7,
    "assembly": 7,
    "reactions": 7,
    "joint_coordinates": 7,
    "linkage": 8,
    "equation": 8,
    "doctor.contradiction": 8,
    "doctor.samples": 8,
    "doctor.crossed": 8,
    "doctor.motions": 9,
    "doctor.redundancy": 9,
    "doctor.report": 10,
    "doctor.examination": 11,
    "pinocchio_constraints": 9,
    "projector": 9,
    "certificate": 9,
    "dynamics.prepared": 11,  # the first entry that matches a module counts
    "dynamics.prepared_forward": 11,
    "dynamics.relaxed": 11,
    "dynamics.*": 10,
    "control.*": 12,
    "io.limits": 1,
    "io.xml": 2,
    "io.yaml_entries": 2,
    "io.rotations": 2,
    "io.sheet": 10,
    "io.mjcf_elements": 10,
    "io.mjcf_inertia": 11,
    "codegen.extra": 2,
    "codegen.symbolic_tree": 3,
    "codegen.c_source": 3,
    "codegen.elimination": 3,
    "codegen.module_cache": 1,
    "codegen.extension": 2,
    "codegen.c_library": 4,
    "codegen.symbolic_rows": 7,
    "codegen.expressions": 12,
    "codegen.symbolic_control": 13,
    "codegen.compiled": 14,
    "codegen.exported_laws": 14,
    "codegen.exported": 15,
    "io.description": 13,
    "io.*": 12,  # helpers of io.description
    "simulation": 13,
    "plot": 14,
    "demo": 15,
    "cli": 16,
}
"""Floor of each module. A module imports from strictly lower floors, never sideways or up."""

SLOW_TO_IMPORT = {"matplotlib", "cvxpy", "tqdm", "casadi"}
PRINTERS = {"cli", "demo"}


# ------------------------------------------------------------------------- reading the source


def module_name(path: Path) -> str:
    """``constraints.closure`` for a file; ``constraints`` for a package, "" for the whole."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = sorted(ROOT.rglob("*.py"))
TREES = {module_name(path): ast.parse(path.read_text("utf-8"), str(path)) for path in FILES}
PACKAGES = {module_name(path) for path in FILES if path.name == "__init__.py"}
MODULES = sorted(TREES.keys() - PACKAGES)


def floor(module: str) -> int | None:
    """The floor of a module; a package stands as high as the highest module it re-exports."""
    if module not in PACKAGES:
        return next((f for pattern, f in FLOORS.items() if fnmatch(module, pattern)), None)
    inside = [m for m in MODULES if m.startswith(f"{module}.")] if module else hc._HOMES
    return max((f for f in map(floor, inside) if f is not None), default=0)


def package_of(module: str) -> str:
    """Full name of the package that relative imports in a module start from."""
    package = module if module in PACKAGES else module.rpartition(".")[0]
    return f"holoctl.{package}".rstrip(".")


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def nodes(tree: ast.AST, functions: bool = True, type_checking: bool = True) -> Iterator[ast.AST]:
    """All nodes, on request without the bodies of functions or of ``if TYPE_CHECKING``."""
    for node in ast.iter_child_nodes(tree):
        inside_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if inside_function and not functions:
            continue
        if is_type_checking(node) and not type_checking:
            for other in node.orelse:
                yield other
                yield from nodes(other, functions, type_checking)
            continue
        yield node
        yield from nodes(node, functions, type_checking)


def imports(module: str, functions: bool = True, type_checking: bool = True) -> dict[str, int]:
    """Full names of what a module imports, each with a line: import, from, import_module."""
    found: dict[str, int] = {}
    for node in nodes(TREES[module], functions, type_checking):
        if isinstance(node, ast.Import):
            found |= {alias.name: node.lineno for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = resolve_name("." * node.level + base, package_of(module))
            found |= {f"{base}.{alias.name}": node.lineno for alias in node.names}
        elif (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__")
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            found[str(node.args[0].value)] = node.lineno
    return found


def own_module(imported: str) -> str | None:
    """The module of holoctl that an imported name lives in, or None for other packages."""
    top, _, name = imported.partition(".")
    if top != "holoctl":
        return None
    while name not in TREES and name:
        name = name.rpartition(".")[0]
    return name


def where(module: str, line: int) -> str:
    path = next(path for path in FILES if module_name(path) == module)
    return f"{path.relative_to(ROOT.parent)}:{line}"


def complaints(found: list[str]) -> str:
    return "\n" + "\n".join(found)


# ------------------------------------------------------------------------------------ floors


def test_every_module_has_a_floor():
    homeless = [m for m in MODULES if floor(m) is None]
    assert not homeless, (
        f"no floor for {homeless}: add each to FLOORS in tests/test_architecture.py "
        "and to the table in docs/architecture.md"
    )


@pytest.mark.parametrize("module", MODULES)
def test_imports_from_lower_floors_only(module):
    here = floor(module)
    wrong = []
    for imported, line in imports(module).items():
        target = own_module(imported)
        if here is None or target is None:
            continue
        there = floor(target)
        if there is None or there >= here:
            wrong.append(
                f"{where(module, line)}: {module} (floor {here}) imports {imported} "
                f"(floor {there}); only lower floors may be imported"
            )
    assert not wrong, complaints(wrong)


@pytest.mark.parametrize("package", sorted(PACKAGES - {""}))
def test_package_imports_its_own_modules_only(package):
    wrong = [
        f"{where(package, line)}: {imported}"
        for imported, line in imports(package).items()
        if (target := own_module(imported)) is not None and not target.startswith(f"{package}.")
    ]
    assert not wrong, complaints(wrong)


def test_importing_holoctl_imports_none_of_its_modules_eagerly():
    eager = [
        f"{where('', line)}: {imported}"
        for imported, line in imports("", functions=False, type_checking=False).items()
        if own_module(imported) is not None
    ]
    assert not eager, complaints(eager)


def test_dynamics_and_control_consume_the_projector():
    consumers = {"dynamics.forward", "dynamics.inverse"}
    missing = consumers - set(MODULES)
    assert not missing, f"not there: {sorted(missing)}"
    control = {m for m in MODULES if m.startswith("control.")}
    assert control, "no module in holoctl/control/"
    without = [
        m
        for m in sorted(consumers | control)
        if "projector" not in {own_module(i) for i in imports(m, type_checking=False)}
    ]
    assert not without, f"these do not import holoctl.projector: {without}"


def test_no_module_bears_the_name_of_a_public_function():
    functions = {name for name in hc.__all__ if inspect.isfunction(getattr(hc, name))}
    assert functions
    shadowing = [m for m in TREES if m.rpartition(".")[2] in functions]
    assert not shadowing, f"importing these would hide the function of that name: {shadowing}"


# ------------------------------------------------------------------------------------ habits


@pytest.mark.parametrize("module", sorted(TREES))
def test_heavy_packages_are_imported_where_they_are_used(module):
    at_import = imports(module, functions=False, type_checking=False)
    wrong = [
        f"{where(module, line)}: import {imported} inside the function that needs it"
        for imported, line in at_import.items()
        if imported.split(".")[0] in SLOW_TO_IMPORT
    ]
    assert not wrong, complaints(wrong)


@pytest.mark.parametrize("module", sorted(TREES))
def test_no_print_no_assert_no_inverse(module):
    wrong = []
    for node in nodes(TREES[module]):
        if isinstance(node, ast.Assert):
            wrong.append(f"{where(module, node.lineno)}: assert; raise an error of holoctl.errors")
        prints = isinstance(node, ast.Call) and ast.unparse(node.func) == "print"
        if prints and module not in PRINTERS:
            wrong.append(f"{where(module, node.lineno)}: print; log it, or return it")
        if isinstance(node, ast.Attribute) and node.attr in ("inv", "pinv", "pinvh"):
            wrong.append(f"{where(module, node.lineno)}: {ast.unparse(node)}; factor and solve")
    for imported, line in imports(module).items():
        if imported.rpartition(".")[2] in ("inv", "pinv", "pinvh"):
            wrong.append(f"{where(module, line)}: import {imported}; factor and solve")
    assert not wrong, complaints(wrong)


IMPORT = """
import sys, time
start = time.perf_counter()
import holoctl
print(time.perf_counter() - start, *sys.modules)
"""


def test_import_is_fast_and_quiet():
    times = []
    for _ in range(3):
        run = subprocess.run(
            [sys.executable, "-c", IMPORT], capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stderr
        assert run.stderr == "", "import holoctl writes to stderr"
        assert len(run.stdout.splitlines()) == 1, "import holoctl writes to stdout"
        seconds, *loaded = run.stdout.split()
        heavy = SLOW_TO_IMPORT.intersection(loaded)
        assert not heavy, f"import holoctl imports {heavy}"
        times.append(float(seconds))
    assert min(times) < 0.6, f"import holoctl took {min(times):.2f} s"
