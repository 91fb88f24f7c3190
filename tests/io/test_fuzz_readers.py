"""Readers against anything: a mechanism or an error of ours, soon, and no other file is opened."""

from __future__ import annotations

import os
import socket
import sys
import time
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from xml.etree import ElementTree

import hypothesis
import numpy as np
import pytest
from documents import RICH, URDF
from documents_mjcf import ARM, GRIPPER, MODELS
from documents_sdf import GEARS, LOOP, SHEET
from hypothesis import given
from hypothesis import strategies as st
from random_losses import document

import holoctl as hc

SEEDS = {
    "urdf": [URDF],
    "xml": [
        ARM,
        GRIPPER,
        document(3),
        *(p.read_text("utf-8") for p in sorted(MODELS.glob("*.xml"))),
    ],
    "sdf": [LOOP, GEARS.format(m=("base", "motor"), w=("base", "wheel"), sm=1, sw=1)],
}
FORCES = """
forces:
  - {type: joint_friction, viscous: 0.1, coulomb: {a: 0.2, b: 0.3}, stribeck: {a: [0.4, 0.5]}}
  - {type: joint_spring, joint: b, stiffness: 4, rest: 0.5, damping: 0.6}
  - {type: spring, a: [universe, [0, 0, 1]], b: tip_a, stiffness: 7, length: 0.1}
rotor_inertia: {a: 0.001}
gear_ratio: {a: 50}
"""
SHEETS = {"urdf": RICH + FORCES, "sdf": SHEET}
SLOW = 3.0  # s, for one file of a few kB; the usual is 10 ms

# ------------------------------------------------------------------- what a reader may touch

opened: list[str] = []
watching = False


def _audit(event, arguments):
    if watching and event in ("open", "os.listdir", "os.scandir", "subprocess.Popen", "os.system"):
        opened.append(f"{event} {arguments[0]!r}")
    if watching and event.startswith(("socket.", "urllib.", "http.", "ftplib.")):
        opened.append(event)


sys.addaudithook(_audit)  # of the interpreter: sees files that are opened from C, too


@contextmanager
def nothing_but(*files):
    """No file is opened but these, and nothing else is done outside the process."""
    global watching  # noqa: PLW0603 (a hook cannot be taken away again)
    opened.clear()
    watching = True
    try:
        yield
    finally:
        watching = False
    allowed = {f"open {str(file)!r}" for file in files}
    assert set(opened) <= allowed, set(opened) - allowed


def outcome(directory, suffix, text, sheet=None, free_flyer=False):
    """Load a text: "loaded" or "refused"; anything else is an error of the test."""
    file, beside = directory / f"robot.{suffix}", directory / "robot.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    if sheet is not None:
        beside.write_bytes(sheet.encode("utf-8", "surrogatepass"))
    elif beside.exists():
        beside.unlink()
    start = time.perf_counter()
    try:
        with nothing_but(file, beside):
            mech = hc.load(file, free_flyer=free_flyer, losses=True)
    except hc.LoadError as error:
        blamed = error.file
        found = "refused"
    else:
        assert np.isfinite(mech.reference).all()
        assert np.isfinite(mech.model.gravity.vector).all()
        found = "loaded"
        blamed = str(file)
    assert blamed in (str(file), str(beside))
    assert time.perf_counter() - start < SLOW
    return found


@pytest.fixture(autouse=True)
def _warm_and_silent(tmp_path, capfd):
    """Modules that a reader imports when first used are there; nothing is printed."""
    for suffix, seeds in SEEDS.items():
        (tmp_path / f"robot.{suffix}").write_text(seeds[0], "utf-8")
        hc.load(tmp_path / f"robot.{suffix}")
        (tmp_path / f"robot.{suffix}").unlink()
    yield
    assert capfd.readouterr() == ("", "")


def test_the_watch_sees_files_and_sockets(tmp_path):
    for outside in (lambda: Path(os.devnull).read_bytes(), lambda: socket.socket().close()):
        with pytest.raises(AssertionError), nothing_but(tmp_path / "allowed"):
            outside()


# --------------------------------------------------------------------------------- mutations

WORDS = st.sampled_from([
    "", " ", "nan", "inf", "-inf", "1e999", "-1e308", "1e-320", "0", "-1", "0 0 0", "1 2", "0x10",
    "1_0", "1,2", "true", "false", "auto", "1e9 1e9 1e9", "world", "universe", "__model__", "main",
    "free", "ball", "hinge", "slide", "mesh", "fixed", "universal", "gearbox", "screw", "lower",
    "upper", "base", "a", "b[0]", "root_joint", "../../etc/passwd", "http://localhost/x",
    "file:///etc/passwd", "model://x", "x" * 3000, "\u0661", "\u00e9\u4e2d", "1 " * 500, "%s{}",
])  # fmt: skip
TAGS = st.sampled_from([
    "include", "body", "joint", "freejoint", "geom", "inertial", "site", "frame", "default",
    "mujoco",
    "worldbody", "compiler", "equality", "connect", "weld", "actuator", "motor", "key", "plugin",
    "composite", "link", "model", "sdf", "world", "pose", "axis", "axis2", "mimic", "parent",
    "child",
    "robot", "origin", "mass", "inertia", "limit", "x", "xi_include", "option", "flag",
])  # fmt: skip
KINDS = st.sampled_from(
    ["delete", "double", "rename", "move", "attribute", "unset", "name", "text", "swap"]
)
EDITS = st.lists(
    st.tuples(KINDS, st.floats(0, 0.999), st.floats(0, 0.999), WORDS, TAGS), min_size=1, max_size=4
)


def at(items, where):
    return items[int(where * len(items))]


def mutated(text, edits):
    """A well-formed document near `text`."""
    root = ElementTree.fromstring(text)
    for kind, first, second, word, tag in edits:
        pairs = [(parent, child) for parent in root.iter() for child in parent]
        if not pairs:
            break
        (parent, element), (_, other) = at(pairs, first), at(pairs, second)
        names = sorted(element.attrib)
        if kind == "delete":
            parent.remove(element)
        elif kind == "double":
            parent.append(deepcopy(element))
        elif kind == "rename":
            element.tag = tag
        elif kind == "move":
            other.append(deepcopy(element))
        elif kind == "attribute" and names:
            element.set(at(names, second), word)
        elif kind == "unset" and names:
            del element.attrib[at(names, second)]
        elif kind == "name" and names:
            name = at(names, second)
            element.set(tag, element.attrib.pop(name))
        elif kind == "text":
            element.text = word
        elif kind == "swap":
            element.attrib, other.attrib = other.attrib, element.attrib
    return ElementTree.tostring(root, encoding="unicode")


def fuzz_tree(directory, suffix, examples):
    outcomes = {"loaded": 0, "refused": 0}

    @hypothesis.settings(max_examples=examples)
    @given(st.sampled_from(SEEDS[suffix]), EDITS, st.booleans())
    def run(seed, edits, free_flyer):
        outcomes[outcome(directory, suffix, mutated(seed, edits), free_flyer=free_flyer)] += 1

    run()
    return outcomes


RAW = st.lists(
    st.tuples(
        st.floats(0, 1),
        st.sampled_from([0, 0, 1, 3, 8, 40, 10**6]),
        st.one_of(
            st.binary(max_size=4),
            st.sampled_from([b"<", b">", b"/>", b'"', b"&", b"&a;", b"<!--", b"<![CDATA[", b"\x00",
                             b"<!DOCTYPE x>", b"\xff\xfe", b"<?xml?>", b"nan", b"1e999"]),
        ),
    ),
    min_size=1,
    max_size=3,
)  # fmt: skip


def fuzz_bytes(directory, suffix, examples):
    @hypothesis.settings(max_examples=examples)
    @given(st.sampled_from(SEEDS[suffix]), RAW)
    def run(seed, edits):
        text = seed.encode()
        for place, length, new in edits:
            i = int(place * len(text))
            text = text[:i] + new + text[i + length :]
        outcome(directory, suffix, text)

    run()


SHEET_EDITS = st.lists(
    st.tuples(
        st.floats(0, 1),
        st.sampled_from([0, 0, 1, 3, 8, 40]),
        st.one_of(
            WORDS, st.sampled_from(["[", "]", "{", "}", ":", "- ", "&a ", "*a", "!!x ", "\t"])
        ),
    ),
    min_size=1,
    max_size=3,
)


def fuzz_sheet(directory, suffix, examples):
    @hypothesis.settings(max_examples=examples)
    @given(SHEET_EDITS)
    def run(edits):
        sheet = SHEETS[suffix]
        for place, length, new in edits:
            i = int(place * len(sheet))
            sheet = sheet[:i] + new + sheet[i + length :]
        outcome(directory, suffix, SEEDS[suffix][0], sheet)

    run()


@pytest.mark.parametrize("suffix", SEEDS)
def test_mutated_documents(suffix, tmp_path):
    outcomes = fuzz_tree(tmp_path, suffix, 75)
    assert min(outcomes.values()) >= 5, outcomes


@pytest.mark.parametrize("suffix", SEEDS)
def test_mutated_bytes(suffix, tmp_path):
    fuzz_bytes(tmp_path, suffix, 40)


@pytest.mark.parametrize("suffix", SHEETS)
def test_mutated_sheets(suffix, tmp_path):
    fuzz_sheet(tmp_path, suffix, 40)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SEEDS)
def test_many_mutated_documents(suffix, tmp_path):
    fuzz_tree(tmp_path, suffix, 5000)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SEEDS)
def test_many_mutated_bytes(suffix, tmp_path):
    fuzz_bytes(tmp_path, suffix, 5000)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SHEETS)
def test_many_mutated_sheets(suffix, tmp_path):
    fuzz_sheet(tmp_path, suffix, 5000)


# ----------------------------------------------------------------------------------- attacks

LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))
ROOTS = {"urdf": "robot", "xml": "mujoco", "sdf": "sdf"}
ATTACKS = {
    "billion laughs": '<!DOCTYPE r [<!ENTITY l0 "ha">' + LAUGHS + "]><{root} name='&l11;'/>",
    "quadratic": '<!DOCTYPE r [<!ENTITY a "' + "x" * 10**5 + '">]><{root}>' + "&a;" * 10**4 + (
        "</{root}>"),
    "external entity": '<!DOCTYPE r [<!ENTITY a SYSTEM "{secret}">]><{root} name="&a;"/>',
    "external entity by URL": '<!DOCTYPE r [<!ENTITY a SYSTEM "http://127.0.0.1:9/">]><{root}>&a;'
    "</{root}>",
    "parameter entity": '<!DOCTYPE r [<!ENTITY % a SYSTEM "{secret}">%a;]><{root}/>',
    "external DTD": '<!DOCTYPE r SYSTEM "{secret}"><{root}/>',
    "public DTD": '<!DOCTYPE r PUBLIC "-//x//y" "http://127.0.0.1:9/x.dtd"><{root}/>',
    "XInclude": '<{root} xmlns:xi="http://www.w3.org/2001/XInclude" version="1.9">'
    '<xi:include href="{secret}" parse="text"/></{root}>',
    "include": '<{root} version="1.9"><include file="{secret}"><uri>{secret}</uri></include>'
    "</{root}>",
    "stylesheet": '<?xml-stylesheet href="{secret}"?><{root}/>',
    "unknown entity": "<{root}>&x;</{root}>",
    "UTF-16": "\ufeff<{root}/>",
    "other encoding": '<?xml version="1.0" encoding="utf-7"?><{root}/>',
    "deep": "<{root}>" * 10**5,
    "deep bodies": '<{root} version="1.9"><worldbody>' + "<body>" * 10**4,
    "wide": '<{root} version="1.9">' + "<x/>" * 10**5 + "</{root}>",
    "many attributes": "<{root} " + " ".join(f'a{i}="1"' for i in range(10**4)) + "/>",
    "long name": '<{root} name="' + "x" * 10**6 + '"/>',
    "nothing": "",
    "null": "\x00",
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("suffix", SEEDS)
def test_attacks(suffix, attack, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("<do-not-read/>", "utf-8")
    text = ATTACKS[attack].replace("{root}", ROOTS[suffix]).replace("{secret}", str(secret))
    assert outcome(tmp_path, suffix, text) == "refused"


def test_deep_trees_that_are_allowed(tmp_path):
    """As deep as the limit allows: no recursion gives up, on either side of it."""

    def chain(n):
        first = '<body><joint axis="0 0 1"/><geom size="0.1"/>'
        bodies = first + '<body><geom size="0.1"/>' * (n - 1) + "</body>" * n
        return f"<mujoco><worldbody>{bodies}</worldbody></mujoco>"

    assert outcome(tmp_path, "xml", chain(397)) == "loaded"
    assert outcome(tmp_path, "xml", chain(400)) == "refused"
    defaults = "".join(f'<default class="c{i}">' for i in range(300)) + "</default>" * 300
    text = f"<mujoco><default>{defaults}</default><worldbody/></mujoco>"
    assert outcome(tmp_path, "xml", text) == "refused"  # nothing moves


def test_a_long_chain_of_links(tmp_path):
    kinds = ["revolute", *["fixed"] * 598]
    links = "".join(f'<link name="l{i}"/>' for i in range(600))
    joints = "".join(
        f'<joint name="j{i}" type="{kind}"><parent>l{i}</parent><child>l{i + 1}</child>'
        "<axis><xyz>0 0 1</xyz></axis></joint>"
        for i, kind in enumerate(kinds)
    )
    frames = "".join(
        f'<frame name="f{i}"><pose relative_to="f{i + 1}">0 0 0.1 0 0 0</pose></frame>'
        for i in range(600)
    )
    text = f'<sdf version="1.9"><model name="m">{links}{joints}{{}}</model></sdf>'
    assert outcome(tmp_path, "sdf", text.format("")) == "loaded"
    assert outcome(tmp_path, "sdf", text.format(frames)) == "refused"
    last = '<frame name="f600"/>'
    assert outcome(tmp_path, "sdf", text.format(frames + last)) == "loaded"


def test_too_many_coordinates_are_refused_before_memory_runs_out(tmp_path):
    joint = '<joint name="j{0}" type="ball"><parent>l</parent><child>l{0}</child></joint>'
    links = "".join(f'<link name="l{i}"/>' + joint.format(i) for i in range(1000))
    texts = {
        "xml": "<mujoco><worldbody>" + '<body><freejoint/><geom size="1"/></body>' * 3000
        + "</worldbody></mujoco>",
        "sdf": f'<sdf version="1.9"><model name="m"><link name="l"/>{links}</model></sdf>',
        "urdf": '<robot name="r"><link name="l"/>' + "".join(
            f'<link name="l{i}"/><joint name="j{i}" type="continuous"><parent link="l"/>'
            f'<child link="l{i}"/></joint>' for i in range(300)
        ) + "</robot>",
    }  # fmt: skip
    for suffix, text in texts.items():
        (tmp_path / f"robot.{suffix}").write_text(text, "utf-8")
        with pytest.raises(hc.LoadError, match="more than 250 coordinates"):
            hc.load(tmp_path / f"robot.{suffix}")


def test_too_many_links_are_refused(tmp_path):
    links = "".join(f'<link name="l{i}"/>' for i in range(3001))
    (tmp_path / "robot.sdf").write_text(
        f'<sdf version="1.9"><model name="m">{links}</model></sdf>', "utf-8"
    )
    with pytest.raises(hc.LoadError, match="more than 3000 links, joints and frames"):
        hc.load(tmp_path / "robot.sdf")


def test_names_of_directories_and_missing_files(tmp_path):
    for suffix in SEEDS:
        with pytest.raises(hc.LoadError, match="there is no such file"):
            hc.load(tmp_path / f"none.{suffix}")
        os.makedirs(tmp_path / f"directory.{suffix}")
        with pytest.raises(hc.LoadError):
            hc.load(Path(tmp_path / f"directory.{suffix}"))
