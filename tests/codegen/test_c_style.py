"""The style of exported C: braces, names that are of one library, functions of a bounded length."""

from __future__ import annotations

import re
import shutil

import pytest
from exported import STRICT, compilers, controller, robot, run

import holoctl as hc
from holoctl.codegen.c_style import braced, finished, prefixed

pytest.importorskip("casadi")

SHORT = """
static int found(const double *x, int n) {
  for (int i = 0; i < n; i++)
    if (x[i] > 0.0) return i; /* the first; if none, */
    else if (x[i] < -1.0)
      for (int j = 0; j < i; j++) n += j;
  do n--; while (n > 0);
  if (n) {
    double y[2] = {0.0, 1.0};
    while (y[0] < 1.0) y[0] += y[1];
    if (y[0] > 2.0) do n--; while (n > 0);
    else n = 1;
  } else n = 2;
  return -1;
}
"""

LONG = """
static int found(const double *x, int n) {
  for (int i = 0; i < n; i++) {
    if (x[i] > 0.0) {
      return i;
    } /* the first; if none, */
    else if (x[i] < -1.0) {
      for (int j = 0; j < i; j++) {
        n += j;
      }
    }
  }
  do {
    n--;
  } while (n > 0);
  if (n) {
    double y[2] = {0.0, 1.0};
    while (y[0] < 1.0) {
      y[0] += y[1];
    }
    if (y[0] > 2.0) {
      do {
        n--;
      } while (n > 0);
    } else {
      n = 1;
    }
  } else {
    n = 2;
  }
  return -1;
}
"""


def plain(code):
    """Without comments."""
    return re.sub(r"/\*.*?\*/", " ", code, flags=re.DOTALL)


def bodies(code):
    """What follows the condition of each branch and loop."""
    code = plain(code)
    for found in re.finditer(r"\b(?:if|for|while) \(", code):
        rest, depth = code[found.end() : found.end() + 400], 1
        for at, letter in enumerate(rest):
            depth += (letter == "(") - (letter == ")")
            if not depth:
                yield rest[at + 1 :].lstrip()[:1]
                break


def test_every_body_gets_braces_and_nothing_else_changes():
    made = braced(SHORT)
    assert re.sub(r"\s+", " ", made) == re.sub(r"\s+", " ", LONG)
    assert braced(made) == made
    assert set(bodies(made)) == {"{", ";"}  # that of do


def test_names_of_a_file_get_its_prefix_and_fields_and_comments_do_not():
    text = (
        "#define MOST 3\nenum { ONE, TWO = 2 };\ntypedef struct { int size; } box;\n"
        "static int size(const box *b) { return b->size + MOST + TWO; /* size */ }\n"
    )
    made = prefixed(text, "leg")
    assert "#define LEG_MOST 3\nenum { LEG_ONE, LEG_TWO = 2 };\n" in made
    assert "{ return b->size + LEG_MOST + LEG_TWO; /* size */ }" in made
    assert "leg_box;\nstatic int leg_size(const leg_box *b)" in made
    assert "x_c_rate(" in prefixed("static double rate(double x_rate) { return x_rate; }\n", "x")


def test_an_export_has_braces_and_short_functions(leg):
    code = leg.paths[1].read_text()
    assert set(bodies(code)) == {"{"}
    assert max(len(x.splitlines()) for x in code.split("\n}\n")) < 1000
    for name in re.findall(r"^#define (\w+)|^static (?:\w+ )+\**(\w+)\(", code, re.MULTILINE):
        assert "".join(name).lower().startswith("leg_")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["delta", "stewart"])
def test_functions_of_large_robots_are_short(name, tmp_path):
    paths = hc.export_c(controller(name), tmp_path)
    assert max(len(x.splitlines()) for x in paths[1].read_text().split("\n}\n")) < 1000


def test_two_libraries_are_one_translation_unit(five_bar, leg, tmp_path):
    both = tmp_path / "both.c"
    both.write_text("".join(f'#include "{x.paths[1]}"\n' for x in (five_bar, leg)))
    folders = [f"-I{x.paths[0].parent}" for x in (five_bar, leg)]
    run(compilers()[0], *STRICT, "-O0", *folders, "-c", both, "-o", tmp_path / "both.o")


def test_headers_are_those_of_cpp_too(five_bar, leg, tmp_path):
    if not shutil.which("g++"):
        pytest.skip("no C++ compiler is here")
    text = "".join(f'#include "{x.paths[0]}"\n' for x in (five_bar, leg))
    text += "int main() { holoctl_leg c; return holoctl_leg_init(&c) + HOLOCTL_LEG_MOTOR_ANKLE; }\n"
    (tmp_path / "main.cpp").write_text(text)
    flags = "-std=c++11", "-Wall", "-Wextra", "-Wconversion", "-Wold-style-cast", "-Werror"
    run("g++", *flags, "-c", tmp_path / "main.cpp", "-o", tmp_path / "main.o")


def test_motors_and_sensors_are_named_in_the_header(leg):
    header, code = (x.read_text() for x in leg.paths[:2])
    mech = robot("leg")
    motors = list(mech.actuator_names)
    assert f"const char holoctl_leg_motors[{len(motors)}]" in code
    assert re.findall(r'"([^"]+)"', code[code.index("holoctl_leg_motors") :])[:4] == motors
    for i, name in enumerate(motors):
        assert f"HOLOCTL_LEG_MOTOR_{name.upper()} = {i}" in header
        assert f"HOLOCTL_LEG_SENSOR_{name.upper()}" in header
        at = mech.model.idx_vs[mech.model.getJointId(name)]
        assert re.findall(r"leg_motor_v\[\] = \{([^}]*)\}", code)[0].split(", ")[i] == str(at)


def test_no_field_of_a_header_is_a_single_letter(leg):
    fields = re.findall(r"^  (?:double|int) ([^;()]*);", leg.paths[0].read_text(), re.MULTILINE)
    names = [x for line in fields for x in re.findall(r"(\w+)(?:\[[^\]]*\])?(?:, |$)", line)]
    assert {"position", "closure", "guard"} <= set(names)
    assert not [x for x in names if len(x) == 1]


def test_the_finished_text_is_both():
    made = finished(SHORT, "holoctl_leg")
    assert made == prefixed(braced(SHORT), "leg")
    assert "static int leg_found(" in made
    assert "static int c_5bar_found(" in finished(SHORT, "holoctl_5bar")
