"""Exported C on microcontrollers and other processors, in QEMU; and as C++."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from exported import compilers, controller, run, short_self_test
from pages import FENCE
from support import ROOT

import holoctl as hc

sys.path.append(str(ROOT / "benchmarks"))

import boards

PAGE = (ROOT / "docs" / "boards.md").read_text(encoding="utf-8")
FILES = ("startup.c", "mps2.ld", "semihosting.c", "main.c")
PROCESSORS = {p.name: p for p in boards.PROCESSORS}
IN_CI = ("Cortex-M7", "Cortex-M4F", "AArch64")


def tools(*names):
    """The processors of these names; skips the test where their tools are not here, a failure with
    HOLOCTL_REQUIRE_BOARDS=1."""
    for name in names:
        if lost := boards.missing(PROCESSORS[name]):
            pytest.skip(f"no cross compiler or no QEMU is here: {lost}")
    return [PROCESSORS[name] for name in names]


# ------------------------------------------------------------------------- without cross tools


def test_all_robots_of_the_library_are_run():
    shipped = {path.stem for path in (ROOT / "holoctl" / "robots").glob("*.urdf")}
    assert set(boards.ROBOTS) == shipped


def test_a_tool_that_is_missing_is_told_with_its_package(monkeypatch, capsys):
    monkeypatch.setattr(boards.shutil, "which", lambda tool: None if "qemu" in tool else tool)
    monkeypatch.setattr(sys, "argv", ["boards.py", "five_bar", "--on", "Cortex-M7", "s390x"])
    assert boards.main() == 2
    told = capsys.readouterr().err
    assert "qemu-system-arm not found: apt-get install gcc-arm-none-eabi" in told
    assert "qemu-s390x not found: apt-get install gcc-s390x-linux-gnu" in told
    assert "Not counted: qemu-system-arm not found" in boards.section(quick=True)
    with pytest.raises(boards.BoardError, match="apt-get install"):
        boards.build(Path(), Path("x.c"), PROCESSORS["Cortex-M3"])


def test_a_folder_without_a_self_test_is_refused(tmp_path):
    with pytest.raises(boards.BoardError, match="expected one"):
        boards.prefix_of(tmp_path)


def test_the_page_has_the_files_of_the_examples():
    shown = {title: text for _, title, text in FENCE.findall(PAGE)}
    for name in FILES:
        assert shown[name] == (boards.BOARD / name).read_text(encoding="utf-8"), name
    assert {path.name for path in boards.BOARD.iterdir()} == set(FILES)


@pytest.mark.parametrize(
    ("name", "options"),
    [("five_bar", {}), pytest.param("four_bar", {"policy": "scale"}, marks=pytest.mark.slow)],
    ids=["nearest", "scale"],
)
def test_it_is_cplusplus_too(name, options, tmp_path):
    compilers()
    if not shutil.which("g++"):
        pytest.skip("no C compiler for C++ is here")
    mech = controller(name).mech
    ctl = hc.ComputedTorque(mech, kp=400.0, kd=40.0, limits=hc.limits_of(mech), **options)
    with short_self_test():
        paths = hc.export_c(ctl, tmp_path, plant=True)
    for path in paths:
        if path.suffix == ".c":
            assert not re.search(r"\b0x[\da-fA-F.]+p", path.read_text()), path.name
            run("g++", "-x", "c++", "-std=c++11", "-Wall", "-Werror", "-fsyntax-only", path)
    header = tmp_path / "header.cpp"
    prefix = paths[0].stem
    header.write_text(
        f'#include "{prefix}.h"\n#include "{prefix}_plant.h"\n'
        f"int main() {{ {prefix} c; return {prefix}_init(&c); }}\n"
    )
    run("g++", "-std=c++11", "-Wall", "-Wextra", "-Wconversion", "-Wold-style-cast", "-Werror",
        "-fsyntax-only", header)  # fmt: skip


# --------------------------------------------------------------------------- with cross tools


def exported(folder, precision):
    """As the command of the page exports it."""
    mech = controller("five_bar").mech
    ctl = hc.ComputedTorque(mech, kp=400.0, kd=40.0, limits=hc.limits_of(mech))
    hc.export_c(ctl, folder, plant=True, precision=precision)
    return folder


@pytest.fixture(scope="module")
def five_bar(tmp_path_factory):
    return exported(tmp_path_factory.mktemp("boards") / "five_bar_c", "double")


@pytest.fixture(scope="module")
def five_bar_single(tmp_path_factory):
    return exported(tmp_path_factory.mktemp("boards") / "five_bar_single", "single")


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_CI)
def test_the_self_test_passes_and_efforts_have_the_same_bits(name, five_bar):
    (processor,) = tools(name)
    expected = boards.ticks(five_bar, boards.HERE)[1]
    assert boards.check(five_bar, processor, expected).startswith("all is well")
    if boards.number_type(five_bar) in processor.rounds:
        with pytest.raises(boards.BoardError, match="other bits"):
            boards.check(five_bar, processor, "0123456789abcdef")


@pytest.mark.slow
def test_the_self_test_passes_in_single_precision(five_bar_single):
    (processor,) = tools("Cortex-M4F")
    expected = boards.ticks(five_bar_single, boards.HERE)[1]
    assert boards.check(five_bar_single, processor, expected) == "all is well, same bits as here"


@pytest.mark.slow
@pytest.mark.parametrize("flags", ["-ffp-contract=fast", "-O3", "-Os", "-O0"])
def test_flags_that_the_page_allows_pass(flags, five_bar):
    (processor,) = tools("Cortex-M7")
    assert "all is well" in boards.self_test(five_bar, processor, flags)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Cortex-M7", "AArch64"])
def test_a_wrong_torque_is_a_failure(name, five_bar, tmp_path):
    (processor,) = tools(name)
    folder = shutil.copytree(five_bar, tmp_path / "wrong")
    test = folder / "holoctl_five_bar_test.c"
    text = test.read_text(encoding="utf-8")
    first = re.search(r"expected_torque\[64\]\[2\] = \{\s*\{([^,]+),", text)
    test.write_text(text[: first.start(1)] + "0.125" + text[first.end(1) :], encoding="utf-8")
    with pytest.raises(boards.BoardError, match=r"(?s)returned 1\b.*checks failed"):
        boards.self_test(folder, processor)
    with pytest.raises(boards.BoardError, match="-ffast-math"):
        boards.self_test(folder, processor, "-ffast-math")


@pytest.mark.slow
def test_a_fault_and_a_stack_that_is_too_small_are_failures(five_bar, tmp_path):
    (processor,) = tools("Cortex-M7")
    fault = tmp_path / "fault.c"
    fault.write_text('int main(void) { __asm volatile("udf #0"); return 0; }\n')
    with pytest.raises(boards.BoardError, match="returned 125"):
        boards.run(boards.build(five_bar, fault, processor), processor)
    source = five_bar / "holoctl_five_bar_test.c"
    small = boards.build(five_bar, source, processor, "-Wl,--defsym=stack_size=512")
    with pytest.raises(boards.BoardError, match="returned"):
        boards.run(small, processor)


@pytest.mark.slow
def test_instructions_are_those_of_the_results(tmp_path):
    (processor,) = tools("Cortex-M7")
    found = boards.counts("five_bar", processor, "double")
    assert 0 < found["torque"].mean < found["from_motors"].mean <= found["from_motors"].most
    assert found["in_trouble"].statuses[0] == 0
    results = (ROOT / "benchmarks" / "RESULTS-exported.md").read_text(encoding="utf-8")
    table = results.partition("### Cortex-M7, double precision\n")[2]
    row = re.search(r"\| five_bar +\| +(\d+) \(\d+\) \| +(\d+) \(", table)
    for name, told in zip(("torque", "from_motors"), row.groups(), strict=True):
        assert abs(found[name].mean / int(told) - 1.0) < 0.1, name  # another gcc differs


@pytest.mark.slow
def test_the_commands_of_the_page_run(five_bar, five_bar_single, tmp_path):
    tools("Cortex-M7", "Cortex-M4F")
    for folder in (five_bar, five_bar_single):
        shutil.copytree(folder, tmp_path / folder.name)
    printed = {}
    for language, title, text in FENCE.findall(PAGE):
        if title in FILES:
            (tmp_path / title).write_text(text, encoding="utf-8")
        elif language == "sh" and title != "once":
            done = subprocess.run(
                ["bash", "-euc", text], cwd=tmp_path, text=True, check=False, timeout=100,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout
            assert "warning" not in done.stdout
            printed[title] = done.stdout
    self_test, loop = (text for language, _, text in FENCE.findall(PAGE) if language == "text")
    assert self_test in printed["self-test"]
    counts = r"1000 ticks, 1000 good, .*\na tick took at most (\d+) counts"
    for title, told in (("loop", re.search(counts, loop)[1]), ("single", 128), ("Cortex-M7", 137)):
        assert abs(int(re.search(counts, printed[title])[1]) / int(told) - 1.0) < 0.05
        assert f"the same tick is {told} counts" in PAGE or title == "loop"
