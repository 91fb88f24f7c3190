"""The house rules, read off the source: a folder is a floor, and stands on lower floors only."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import pytest
from support import public, public_names

import holoctl as hc

ROOT = Path(hc.__file__).parent

FLOORS = [
    "base",
    "laws",
    "tree",
    "constraints",
    "forces",
    "mechanism",
    "io",
    "rows",
    "closing",
    "projector",
    "estimation",
    "dynamics",
    "doctor",
    "control",
    "transmission",
    "codegen",
    "design",
    "identification",
    "simulation",
    "app",
]
"""From the ground up. A folder imports from folders that stand before it, never after it."""

SLOW_TO_IMPORT = {
    "matplotlib", "cvxpy", "tqdm", "casadi", "mujoco", "control", "toppra", "distributed", "dask",
    "viser", "trimesh", "pyarrow",
}  # fmt: skip
PRINTERS = {
    "app.cli",
    "app.demo",
    "app.printing",
    "app.linearize_command",
    "app.excite_command",
    "app.identify_command",
    "app.retime_command",
    "app.map_command",
    "app.modes_command",
    "app.new_command",
    "app.simulate_command",
    "app.transmission_command",
    "app.view_command",
}
WITHOUT_CODE = {"robots"}


# ------------------------------------------------------------------------- reading the source


def module_name(path: Path) -> str:
    """``constraints.closure`` for a file; ``constraints`` for a package, "" for the whole."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = sorted(ROOT.rglob("*.py"))
PATHS = {module_name(path): path for path in FILES}
PACKAGES = {module for module, path in PATHS.items() if path.name == "__init__.py"}
MODULES = sorted(PATHS.keys() - PACKAGES)


@cache
def parsed(module: str) -> ast.Module:
    """The source of a module, parsed."""
    return ast.parse(PATHS[module].read_text("utf-8"), str(PATHS[module]))


def room(module: str) -> str:
    """The folder at the top that a module is in; "" for the package itself and `__main__`."""
    return module.partition(".")[0] if "." in module or module in PACKAGES else ""


MODULES_OF = {floor: [x for x in sorted(PATHS) if room(x) == floor]
              for floor in sorted({room(x) for x in PATHS})}  # fmt: skip
"""The modules of each folder at the top, and of the package itself, ""."""


def units(folder: str) -> dict[str, set[str]]:
    """What stands in a folder, files and folders, each with those beside it that it imports."""
    inside = [m for m in MODULES if m.startswith(f"{folder}.")]

    def unit(module: str) -> str:
        return module.removeprefix(f"{folder}.").partition(".")[0]

    found: dict[str, set[str]] = {unit(m): set() for m in inside}
    for module in inside:
        targets = {own_module(imported) for imported in imports(module)}
        found[unit(module)] |= {unit(t) for t in targets if t in inside} - {unit(module)}
    return found


def package_of(module: str) -> str:
    """Full name of the package that relative imports in a module start from."""
    package = module if module in PACKAGES else module.rpartition(".")[0]
    return f"holoctl.{package}".rstrip(".")


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


@cache
def nodes(module: str) -> list[tuple[ast.AST, bool, bool]]:
    """All nodes, each with whether a function and whether ``if TYPE_CHECKING`` is around it."""
    found: list[tuple[ast.AST, bool, bool]] = []

    def look(node: ast.AST, function: bool, checking: bool) -> None:
        if is_type_checking(node):
            found.append((node, function, True))
            for child in ast.iter_child_nodes(node):
                look(child, function, checking or child not in node.orelse)
            return
        function = function or isinstance(node, FUNCTIONS)
        found.append((node, function, checking))
        for child in ast.iter_child_nodes(node):
            look(child, function, checking)

    for top in ast.iter_child_nodes(parsed(module)):
        look(top, False, False)
    return found


def called(node: ast.AST) -> str:
    """The last name of what is called; "" for what is no call of a name."""
    name = node.func if isinstance(node, ast.Call) else None
    return name.id if isinstance(name, ast.Name) else getattr(name, "attr", "")


@cache
def imports(module: str, functions: bool = True, type_checking: bool = True) -> dict[str, int]:
    """Full names of what a module imports, each with a line: import, from, import_module; on
    request without the bodies of functions or of ``if TYPE_CHECKING``."""
    found: dict[str, int] = {}
    for node, function, checking in nodes(module):
        if (function and not functions) or (checking and not type_checking):
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name: node.lineno for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = resolve_name("." * node.level + base, package_of(module))
            found |= {f"{base}.{alias.name}": node.lineno for alias in node.names}
        elif called(node) in ("import_module", "__import__") and (
            node.args and isinstance(node.args[0], ast.Constant)
        ):
            found[str(node.args[0].value)] = node.lineno
    return found


def own_module(imported: str) -> str | None:
    """The module of holoctl that an imported name lives in, or None for other packages."""
    top, _, name = imported.partition(".")
    if top != "holoctl":
        return None
    while name not in PATHS and name:
        name = name.rpartition(".")[0]
    return name


def where(module: str, line: int) -> str:
    path = next(path for path in FILES if module_name(path) == module)
    return f"{path.relative_to(ROOT.parent)}:{line}"


def complaints(found: list[str]) -> str:
    return "\n" + "\n".join(found)


# ------------------------------------------------------------------------------------ floors


def test_every_file_is_in_a_room():
    found = {room(module) for module in MODULES} - {""}
    assert found == set(FLOORS), "a new room needs its place in FLOORS"
    assert [m for m in MODULES if not room(m)] == ["__main__", "methods", "protocols", "results"]
    assert not WITHOUT_CODE & found


@pytest.mark.parametrize("floor", FLOORS)
def test_imports_from_lower_floors_only(floor):
    here, wrong = FLOORS.index(floor), []
    for module in MODULES_OF[floor]:
        for imported, line in imports(module).items():
            target = own_module(imported)
            there = room(target) if target else ""
            if there and there != floor and FLOORS.index(there) >= here:
                wrong.append(
                    f"{where(module, line)}: {imported} is on floor {there!r}, which stands above "
                    f"{floor!r}"
                )
    assert not wrong, complaints(wrong)


@pytest.mark.parametrize("folder", sorted(PACKAGES - {""} - WITHOUT_CODE))
def test_the_files_of_a_room_stand_on_each_other_in_one_order(folder):
    try:
        order = tuple(TopologicalSorter(units(folder)).static_order())
    except CycleError as circle:
        pytest.fail(f"holoctl/{folder}: these import each other: {' -> '.join(circle.args[1])}")
    assert order, f"holoctl/{folder} is empty"


@pytest.mark.parametrize("folder", sorted(PACKAGES - {""}))
def test_a_room_says_what_it_is_for_and_imports_nothing(folder):
    tree = parsed(folder)
    lines = (ast.get_docstring(tree) or "").splitlines()
    assert len(tree.body) == 1, f"holoctl/{folder}/__init__.py: a docstring, and nothing else"
    if folder not in WITHOUT_CODE:
        told = "what it is for; what comes in, what goes out; a habit of the room"
        assert len(lines) == 4, f"holoctl/{folder}/__init__.py: {told}"
        assert lines[2].startswith("In: "), f"holoctl/{folder}/__init__.py: {told}"
        assert "Out: " in lines[2], f"holoctl/{folder}/__init__.py: {told}"


@pytest.mark.parametrize("folder", sorted(PACKAGES - {""}))
def test_a_name_in_the_docstring_of_a_room_exists(folder):
    """A module or a folder of the room, a public name, or what a module of the room defines."""
    public = {name.rpartition(".")[2] for name in public_names()}
    known = set(units(folder)) | public | {"pin.Model", "casadi.Function", "holoctl"}
    for module in [m for m in MODULES if m.startswith(f"{folder}.")]:
        known |= {getattr(node, "name", "") for node in ast.iter_child_nodes(parsed(module))}
    named = re.findall(r"(?<!`)`([^`]+)`(?!`)", ast.get_docstring(parsed(folder)) or "")
    assert not {name for name in named if name.removeprefix("holoctl.") not in known}


def test_a_file_that_the_source_names_exists():
    files = {path.relative_to(ROOT.parent).as_posix() for path in FILES}
    for folder in "tests", "examples":
        files |= {
            p.relative_to(ROOT.parent).as_posix() for p in (ROOT.parent / folder).rglob("*.py")
        }
    wrong = [
        f"{path.relative_to(ROOT.parent)}: {name}"
        for path in FILES
        for name in re.findall(r"(?<![\w/.}-])[a-z_][\w/]*\.py\b", path.read_text("utf-8"))
        if not any(f"/{file}".endswith(f"/{name}") for file in files)
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
    consumers = ["dynamics.forward", "dynamics.inverse", "control.computed_torque"]
    assert not set(consumers) - set(MODULES)
    taken = {
        m: {own_module(i) for i in imports(m, type_checking=False)} - {None} for m in consumers
    }
    without = [m for m in consumers if "projector" not in {room(str(t)) for t in taken[m]}]
    assert not without, f"these do not import from holoctl/projector: {without}"


def test_a_class_name_has_one_meaning():
    """Also a private one: an underscore in front makes no other name of it."""
    of: dict[str, list[str]] = {}
    for module in MODULES:
        for node, _, _ in nodes(module):
            if isinstance(node, ast.ClassDef):
                of.setdefault(node.name.lstrip("_"), []).append(module)
    assert not {name: places for name, places in of.items() if len(places) > 1}


def test_no_room_bears_the_name_of_a_public_function():
    functions = {name for name in public_names() if inspect.isfunction(public(name))}
    assert functions
    shadowing = [m for m in PATHS if m in functions]
    assert not shadowing, f"importing these would hide the function of that name: {shadowing}"


# ------------------------------------------------------------------------------------ habits


@pytest.mark.parametrize("floor", MODULES_OF)
def test_heavy_packages_are_imported_where_they_are_used(floor):
    wrong = [
        f"{where(module, line)}: import {imported} inside the function that needs it"
        for module in MODULES_OF[floor]
        for imported, line in imports(module, functions=False, type_checking=False).items()
        if imported.split(".")[0] in SLOW_TO_IMPORT
    ]
    assert not wrong, complaints(wrong)


@pytest.mark.parametrize("floor", MODULES_OF)
def test_no_print_no_assert_no_inverse(floor):
    wrong = [x for module in MODULES_OF[floor] for x in prints_asserts_and_inverses(module)]
    assert not wrong, complaints(wrong)


def prints_asserts_and_inverses(module: str) -> list[str]:
    wrong = []
    for node, *_ in nodes(module):
        if isinstance(node, ast.Assert):
            wrong.append(
                f"{where(module, node.lineno)}: assert; raise an error of holoctl.base.errors"
            )
        if called(node) == "print" and module not in PRINTERS:
            wrong.append(f"{where(module, node.lineno)}: print; log it, or return it")
        if isinstance(node, ast.Attribute) and node.attr in ("inv", "pinv", "pinvh"):
            wrong.append(f"{where(module, node.lineno)}: {ast.unparse(node)}; factor and solve")
    for imported, line in imports(module).items():
        if imported.rpartition(".")[2] in ("inv", "pinv", "pinvh"):
            wrong.append(f"{where(module, line)}: import {imported}; factor and solve")
    return wrong


def test_each_tolerance_is_given_once():
    """A second one of the same name would count, and the first be read."""
    names = [
        node.id
        for node in ast.walk(parsed("base.tolerances"))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    assert len(names) > 100
    assert sorted({n for n in names if names.count(n) > 1}) == []


PRIVATE = re.compile(r"\._[^_\W]|\bimport\b[^\n]*\b_[^_\W]|^[\w ,]*\b_[^_\W][\w ,]*$", re.M)
"""What a private name may look like that comes from elsewhere; finds too much, and nothing less."""


def private(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Names with one underscore in front that are read from what is not self."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            names = [] if owner in ("self", "np") else [node.attr]
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from ((n, node.lineno) for n in names if n[0] == "_" and not n.startswith("__"))


def test_tests_use_public_names():
    """What they must look at inside is in one file, tests/inside.py."""
    files = [p for p in (ROOT.parent / "tests").rglob("*.py") if p.name != "inside.py"]
    assert files
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(files)}
    wrong = [
        f"{path.relative_to(ROOT.parent)}:{line}: {name}"
        for path, text in texts.items()
        if PRIVATE.search(text)  # to parse takes long
        for name, line in private(ast.parse(text))
    ]
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
