"""What a reader refuses to take: what is no regular file, what is too much, what is too large."""

from __future__ import annotations

import os
import time

import pytest

import holoctl as hc
from holoctl.io import reader_limits

HINGE = '<mujoco><worldbody><body><joint axis="0 0 1"/>{}</body></worldbody>{}</mujoco>'
SDF = '<sdf version="1.9"><model name="m">{}</model></sdf>'
ARM = (
    '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/><inertia ixx="1" '
    'ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link><joint name="j" '
    'type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint></robot>'
)
EMPTY = "closed_loop: []\ntype: []\nname_mot: []\n"


@pytest.fixture
def refused(tmp_path):
    """Load a file, which must be refused with these words, and soon."""

    def refuse(words, suffix, text, sheet=None):
        (tmp_path / f"x.{suffix}").write_text(text, "utf-8")
        if sheet is not None:
            (tmp_path / "x.yaml").write_text(sheet, "utf-8")
        start = time.perf_counter()
        with pytest.raises(hc.LoadError, match=words) as caught:
            hc.load(tmp_path / f"x.{suffix}")
        assert time.perf_counter() - start < 10.0  # on a busy machine; a second is usual
        assert len(str(caught.value)) < 2000
        return caught.value

    return refuse


# ---------------------------------------------------------------------------- what is no file


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system with pipes and devices")
@pytest.mark.parametrize("beside", [False, True])
def test_pipes_and_devices_are_not_opened(beside, tmp_path):
    pipe = tmp_path / "pipe.urdf"
    os.mkfifo(pipe)
    (tmp_path / "x.urdf").write_text(ARM, "utf-8")
    (tmp_path / "d.urdf").mkdir()
    (tmp_path / "d.urdf" / "robot.urdf").mkdir()  # for a directory stands the robot.urdf in it
    kinds = {pipe: "a pipe", "/dev/zero": "a device", tmp_path / "d.urdf": "a directory"}
    for path, kind in kinds.items():
        arguments = {"path": tmp_path / "x.urdf", "closures": path} if beside else {"path": path}
        with pytest.raises(hc.LoadError, match=f"{kind}.*only regular files") as caught:
            hc.load(**arguments)
        assert caught.value.file.startswith(str(path))


def test_a_file_that_becomes_a_pipe_does_not_block(tmp_path, monkeypatch):
    """Between the look at it and the opening: the second look, at what is open, sees it."""
    path = tmp_path / "x.urdf"
    path.write_text(ARM, "utf-8")
    regular = os.stat(path)
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr(reader_limits.os, "stat", lambda *_, **__: regular)
    with pytest.raises(hc.LoadError, match="a pipe"):
        reader_limits.content(path, 100)


@pytest.mark.parametrize("size", [reader_limits.MOST_BYTES, reader_limits.MOST_BYTES + 1])
def test_a_file_may_have_so_many_bytes(size, tmp_path):
    path = tmp_path / "x.urdf"
    with path.open("wb") as file:
        file.write(ARM.encode())
        file.write(b" " * (size - len(ARM)))
    if size == reader_limits.MOST_BYTES:
        assert hc.load(path).nv == 1
    else:
        with pytest.raises(hc.LoadError, match="more than 16000000 bytes"):
            hc.load(path)


def test_a_sheet_may_have_less(refused):
    found = refused("more than 1000000 bytes", "urdf", ARM, EMPTY + "#" * 1_000_000)
    assert found.file.endswith("x.yaml")


# ------------------------------------------------------------------------- what is too much


def many(n, text):
    return "".join(text.format(i) for i in range(n))


def robot(links):
    return f"<robot name='r'>{links}</robot>"


ATTRIBUTES = many(101, " a{}=''")
CLASSES = many(1001, "<default class='c{}'/>")
KEYS = f"<keyframe>{'<key/>' * 1001}</keyframe>"
TOO_MUCH = {
    "links": ("3000 links and joints", "urdf", robot(many(3001, "<link name='l{}'/>"))),
    "2e5 links": ("100000 elements", "urdf", robot(many(200_000, "<link name='l{}'/>"))),
    "attributes": ("100 attributes", "sdf", f"<sdf{ATTRIBUTES}/>"),
    "SDF": ("3000 links, joints and frames", "sdf", SDF.format(many(3001, "<link name='l{}'/>"))),
    "bodies": ("3000 bodies", "xml", HINGE.format("<body/>" * 3000, "")),
    "geoms": ("20000 geoms", "xml", HINGE.format("<geom size='1'/>" * 20_001, "")),
    "keys": ("1000 keys", "xml", HINGE.format("", KEYS)),
    "equalities": (
        "500 equalities", "xml", HINGE.format("", f"<equality>{'<weld/>' * 501}</equality>"),
    ),
    "classes": (
        "1000 default classes", "xml", HINGE.format("", f"<default>{CLASSES}</default>"),
    ),
    "actuators": (
        "3000 actuators", "xml", HINGE.format("", f"<actuator>{'<motor/>' * 3001}</actuator>"),
    ),
    "a height field": (
        "nrow of more than 2000", "xml", HINGE.format(
            "", '<asset><hfield name="h" size="1 1 1 1" nrow="100000" ncol="100000"/></asset>'
        ),
    ),
    "a mesh that MuJoCo makes": (
        "params of more than 2000", "xml", HINGE.format(
            "", '<asset><mesh name="h" builtin="supersphere" params="1000000 1 1"/></asset>'
        ),
    ),
    "a number with a letter behind": (
        "must be a finite number", "urdf", ARM.replace('"1"', f'"{"1" * 1_000_000}x"', 1),
    ),
    "words": ("must be three", "urdf", ARM.replace("0 0 1", "1 " * 1_000_000)),
}  # fmt: skip
PAIRS = "[a, b], " * 501
MOMENTS = 'diaginertia="1e308 1e308 1e308"'


@pytest.mark.parametrize("case", TOO_MUCH)
def test_too_much(case, refused):
    refused(*TOO_MUCH[case])


@pytest.mark.parametrize(
    ("words", "sheet"),
    [
        ("more than 20000 values", EMPTY + f"cut: [{'a, ' * 21_000}]"),
        ("nested too deeply, more than 20 levels", "- " * 1000),
        ("more than 500 closed_loop", EMPTY.replace("[]", f"[{PAIRS}]", 1)),
        ("more than 500 couplings", EMPTY + f"couplings: [{'{}, ' * 501}]"),
        ("expected a finite number", EMPTY + f"reference: {{j: {'1' * 200_000}x}}"),
        ("a finite number of at most 1e.12", EMPTY + "reference: {j: 1e13}"),
    ],
)  # fmt: skip
def test_too_much_in_the_sheet(words, sheet, refused):
    assert refused(words, "urdf", ARM, sheet).line


# ------------------------------------------------------------------------ what is too large

SHAPES = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", ["1e-320", "1e-300", "1e-16", "1e6", "1e12", "1e200", "1e308"])
def test_absurd_sizes_of_geoms(shape, size, refused):
    sizes = " ".join([size] * SHAPES[shape])
    words = "at least 1e-15 m|more than 1e.12"
    refused(words, "xml", HINGE.format(f'<geom type="{shape}" size="{sizes}"/>', ""))


@pytest.mark.parametrize(
    "geom",
    ['density="1e300"', 'density="1e308"', 'mass="1e308"', 'pos="1e308 0 0"',
     'type="capsule" fromto="1e308 0 0 -1e308 0 0"'],
)  # fmt: skip
def test_absurd_masses_and_places_of_geoms(geom, refused):
    assert refused("more than 1e.12", "xml", HINGE.format(f'<geom size="0.1" {geom}/>', "")).line


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        ("xml", HINGE.format('<inertial mass="1" pos="0 0 0" ' + MOMENTS + "/>", "")),
        ("xml", HINGE.format('<geom size="1"/>', '<compiler settotalmass="1e308"/>')),
        ("xml", HINGE.format('<geom size="1"/>', '<option gravity="0 0 -1e308"/>')),
        ("urdf", ARM.replace('<mass value="1"/>', '<mass value="1e13"/>')),
        ("urdf", ARM.replace('ixx="1"', 'ixx="1e300"')),
        ("sdf", SDF.format('<link name="a"><pose>1e308 0 0 0 0 0</pose></link>')),
        ("sdf", SDF.format('<link name="a"><inertial><mass>1e300</mass></inertial></link>')),
    ],
)  # fmt: skip
def test_absurd_numbers(suffix, text, refused):
    assert refused("1e.12", suffix, text).line


def test_a_file_that_has_nothing_to_give_yet(tmp_path, monkeypatch):
    """As a log of the kernel, which gives None to those who do not wait."""

    class Waiting:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def fileno(self):
            return self.file.fileno()

        def read(self, _):
            return None

    path = tmp_path / "x.urdf"
    path.write_text(ARM, "utf-8")
    with path.open("rb") as file:
        Waiting.file = file
        monkeypatch.setattr(reader_limits, "open", lambda *_, **__: Waiting(), raising=False)
        with pytest.raises(hc.LoadError, match="do not wait"):
            hc.load(path)


def test_long_chains_of_frames_are_walked_once(tmp_path):
    """Frames fixed to frames, the last of the chain first: the time must not grow with the cube."""
    n = 2500
    frames = "".join(
        f'<frame name="f{i}" attached_to="{f"f{i + 1}" if i + 1 < n else "a"}"/>' for i in range(n)
    )
    joint = '<joint name="j" type="revolute"><parent>f0</parent><child>b</child><axis/></joint>'
    joints = joint + joint.replace('"j"', '"k"').replace(">f0<", ">f1<").replace(">b<", ">c<")
    mass = "<inertial><mass>1</mass></inertial></link>"
    links = "".join(f'<link name="{name}">{mass}' for name in "abc")
    path = tmp_path / "x.sdf"
    path.write_text(SDF.format(links + frames + joints), "utf-8")
    start = time.perf_counter()
    assert hc.load(path).nv == 2
    assert time.perf_counter() - start < 10.0
