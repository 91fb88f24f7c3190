"""Beside MuJoCo itself, where it is installed: its numbers are ours, and its compiler is asked."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import numpy as np
import pytest

import holoctl as hc
from holoctl.io.mjcf import read_mjcf

mujoco = pytest.importorskip(
    "mujoco", minversion="4.0", reason="MuJoCo 4 is missing: pip install 'holoctl[mjcf]'"
)

from compare_mujoco import compared, model_of, survey  # noqa: E402
from random_mjcf import document  # noqa: E402

FOLDER = os.environ.get("HOLOCTL_MJCF")

MESH = '<asset><mesh name="wedge" vertex="0 0 0  0.3 0 0  0 0.2 0  0 0 0.1  0.3 0.2 0"/></asset>'
WEDGE = '<geom type="mesh" mesh="wedge" pos="0.1 0.2 0" euler="10 20 30"/>'
LINK = '<body name="{0}" pos="0.1 0 0.3"><joint name="{0}" axis="1 1 0"/>{1}</body>'


def hinged(geoms, name="a"):
    return LINK.format(name, geoms)


def mjcf(world, rest="", head=MESH):
    return f"<mujoco>{head}<worldbody>{world}</worldbody>{rest}</mujoco>"


FILES = {
    # ---- inertias that the compiler is asked for
    "mesh": mjcf(hinged(WEDGE)),
    "mesh among primitives": mjcf(hinged(WEDGE + '<geom size="0.1" pos="0 0 0.2"/>')),
    "mesh with mass": mjcf(hinged(WEDGE.replace("/>", ' mass="2"/>'))),
    "mesh without mass": mjcf(hinged('<geom size="0.1"/>' + WEDGE.replace("/>", ' mass="0"/>'))),
    "mesh in a group that does not count": mjcf(
        hinged('<geom size="0.1"/>' + WEDGE.replace("/>", ' group="3"/>')),
        head=MESH + '<compiler inertiagrouprange="0 2"/>',
    ),
    "mesh and inertial": mjcf(
        hinged(WEDGE + '<inertial pos="0 0 0.1" mass="1" diaginertia="1 1 1"/>')
    ),
    "mesh over inertial": mjcf(
        hinged(WEDGE + '<inertial pos="0 0 0.1" mass="1" diaginertia="1 1 1"/>'),
        head=MESH + '<compiler inertiafromgeom="true"/>',
    ),
    "box fitted to a mesh": mjcf(hinged(WEDGE.replace('type="mesh"', 'type="box"'))),
    "hull": mjcf(hinged('<geom size="0.1" shellinertia="true"/>')),
    "total mass": mjcf(
        hinged(WEDGE) + hinged('<geom size="0.1"/>', "b") + '<geom size="0.2"/>',
        head=MESH + '<compiler boundmass="0.1"/>',
    ),
    "fused bodies": mjcf(
        "<body><body>" + WEDGE + hinged('<body pos="1 0 0">' + WEDGE + "</body>" + WEDGE, "c")
        + "</body></body>" + hinged(WEDGE, "d"),
        head=MESH + '<compiler fusestatic="true"/>',
    ),
    "bodies without names": mjcf(
        '<body><joint/><geom size="0.1"/><body pos="1 0 0">' + WEDGE
        + '<joint axis="0 1 0"/></body><body pos="0 1 0"><joint/><geom size="0.2"/></body></body>'
        + "<body><joint/>" + WEDGE + "</body>",
    ),
    "mesh in copies": mjcf(
        '<replicate count="3" offset="0.1 0.2 0.3" euler="10 20 30">'
        + hinged(WEDGE + '<replicate count="2" sep="-" offset="0 0 1" euler="0 40 5">'
                 + hinged(WEDGE, "b") + "</replicate>") + "</replicate>" + hinged(WEDGE, "z")
    ),
    "mesh in a class": mjcf(
        hinged('<geom class="m"/>'),
        head=MESH + '<default><default class="m"><geom type="mesh" mesh="wedge" density="7"/>'
        "</default></default>",
    ),
    "free wedge": mjcf('<body name="f" pos="1 2 3" euler="5 6 7"><freejoint/>' + WEDGE + "</body>"),
    "a body in the axes of its inertia": mjcf(
        '<body name="f" pos="1 2 3" euler="5 6 7"><freejoint align="true"/><geom type="box" '
        'size="0.1 0.2 0.3" pos="0.3 0.2 0.1" euler="30 20 10"/><site name="s" pos="1 0 0"/></body>'
        + hinged('<geom size="0.1"/>'),
        '<equality><connect site1="s" site2="w"/></equality>', '<compiler alignfree="true"/>',
    ).replace("<worldbody>", '<worldbody><site name="w" pos="1 1 1"/>'),
    "bounds of a body without mass": mjcf(
        '<frame pos="1 2 3"><body name="a" pos="0.1 0.2 0.3" euler="10 20 30"><joint/><body '
        'pos="0.4 0.5 0.6"><joint axis="1 1 0"/><geom size="1" group="4"/></body></body></frame>',
        head='<compiler boundmass="0.3" boundinertia="0.01" inertiagrouprange="0 2"/>',
    ),
    "an inertial where no geom has a mass": mjcf(
        hinged('<inertial pos="0 0 0.1" mass="1" diaginertia="1 1 1"/><geom size="1" mass="0"/>'),
        head='<compiler inertiafromgeom="true"/>',
    ),
    "one orientation replaces another": mjcf(
        hinged('<geom class="c"/>')
        + hinged('<geom class="d"/><geom class="d" zaxis="1 2 3"/>', "b"),
        head='<default><geom type="box" size="0.1 0.2 0.3" quat="1 2 3 4"/><default class="c">'
        '<geom euler="10 20 30"/><default class="d"><geom quat="4 3 2 1"/></default></default>'
        "</default>",
    ),
    # ---- equalities and motors
    "welds": mjcf(
        hinged('<geom size="0.1"/>' + hinged('<geom size="0.1" pos="0.2 0 0"/>', "b"))
        + '<site name="s" pos="1 2 3" euler="30 40 50"/>',
        '<equality><weld body1="a" body2="b" relpose="0.1 0.2 0.3 1 0.1 0.2 0.3" anchor="1 0 0"/>'
        '<weld body1="a" torquescale="0" anchor="0.1 0.2 0.3"/>'
        '<weld name="w" body1="b" torquescale="0.2"/>'
        '<weld body1="b" body2="a" torquescale="0" relpose="0.1 0.2 0.3 1 0.1 0.2 0.3"/>'
        '<connect body1="b" body2="a" anchor="0.3 0.2 0.1"/></equality>',
    ),
    "tendons": mjcf(
        hinged('<geom size="0.1"/>' + hinged('<geom size="0.1" pos="0.2 0 0"/>', "b"))
        + '<body><joint name="s" type="slide" ref="0.7"/><geom size="0.1"/></body>',
        '<tendon><fixed name="t"><joint joint="a" coef="2"/><joint joint="s" coef="-3"/></fixed>'
        '<fixed name="u" armature="0.3"><joint joint="b" coef="0.5"/></fixed></tendon><equality>'
        '<tendon tendon1="t" tendon2="u" polycoef="0.1 0.4"/><tendon tendon1="t"/></equality>'
        '<actuator><motor tendon="t" gear="5"/><motor joint="b" gear="2" armature="0.2"/>'
        '<general tendon="u" gear="3" armature="0.4"/></actuator>',
    ),
    "a hand that is put": mjcf(
        hinged('<geom size="0.1"/>') + '<body name="hand" mocap="true" pos="1 2 3" euler="1 2 3"/>',
        '<equality><weld body1="hand" body2="a"/></equality>',
    ),
    "copies with references": mjcf(
        '<replicate count="3" sep="_" offset="0 1 0" euler="0 0 30">'
        + hinged('<geom size="0.1"/>' + hinged('<geom size="0.1" pos="0.2 0 0"/>', "b"))
        + "</replicate>",
        '<equality><connect body1="b" anchor="0.1 0 0"/><joint joint1="a" joint2="b"/></equality>'
        '<actuator><motor joint="b" gear="3"/></actuator>',
    ),
    # ---- classes and settings
    "classes": mjcf(
        '<frame euler="10 20 30" childclass="in"><body name="a"><joint name="a" class="main"/>'
        '<geom/><frame childclass="main" pos="0 0 1"><geom size="0.2"/><body><joint class="in"/>'
        '<geom/></body></frame><body childclass="deep"><joint pos="0.1 0 0"/><geom/></body></body>'
        "</frame>",
        head='<default><geom size="0.1 0.2 0.3"/><default class="in"><geom type="box"/>'
        '<joint axis="0 1 0" armature="0.1"/><default class="deep"><geom density="10"/>'
        '</default></default></default><default><joint type="slide"/></default>',
    ),
    "the later setting counts": mjcf(
        hinged('<geom type="box" size="0.1 0.2 0.3" euler="0.5 0.2 0.1"/>'),
        '<compiler angle="radian" eulerseq="XZY"/>', '<compiler angle="degree"/>',
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_numbers_are_those_of_mujoco(name, tmp_path):
    path = tmp_path / "model.xml"
    path.write_text(FILES[name], "utf-8")
    worst = compared(mujoco, model_of(mujoco, path), hc.load(path))
    assert max(worst.values()) < 1e-11, worst


@pytest.mark.parametrize("seed", range(40))
def test_random_documents_are_read_as_by_mujoco(seed, tmp_path):
    """Those that MuJoCo reads; what is refused is not compared."""
    path = tmp_path / "model.xml"
    path.write_text(document(seed, meshes=seed % 2 == 1), "utf-8")
    try:
        model = model_of(mujoco, path)
    except ValueError as error:
        pytest.skip(f"MuJoCo refuses it: {error}")
    try:
        mech = hc.load(path, actuators="skip")
    except hc.LoadError as error:
        if "armature of a free joint" not in str(error):
            raise
        return
    worst = compared(mujoco, model, mech)
    assert max(worst.values()) < 1e-9, worst


def test_included_files_are_read_as_by_mujoco(tmp_path):
    """A compiler and classes in included files, an included file in a folder, one in a body."""
    (tmp_path / "parts").mkdir()
    files = {
        "model.xml": '<mujoco><include file="settings.xml"/><worldbody>'
        '<include file="parts/arm.xml"/></worldbody><include file="parts/rest.xml"/></mujoco>',
        "settings.xml": '<mujocoinclude><default><joint armature="0.2"/><default class="c">'
        '<joint axis="1 0 0"/></default></default></mujocoinclude>',
        "parts/arm.xml": '<mujoco model="x"><body name="a" euler="0.1 0.2 0.3" childclass="c">'
        '<joint name="a" ref="0.5"/><geom size="0.1" pos="0.2 0 0"/>'
        '<include file="lower.xml"/></body></mujoco>',
        "parts/lower.xml": '<mujoco><body name="b" pos="0 0 1"><joint name="b" axis="0 1 1"/>'
        '<geom size="0.1"/></body></mujoco>',
        "parts/rest.xml": '<mujoco><compiler angle="radian"/><default><geom density="30"/><joint '
        'armature="0.7"/></default><equality><joint joint1="a" joint2="b" polycoef="1 2"/>'
        "</equality></mujoco>",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    worst = compared(
        mujoco, model_of(mujoco, tmp_path / "model.xml"), hc.load(tmp_path / "model.xml")
    )
    assert max(worst.values()) < 1e-11, worst


def test_the_total_mass_counts_meshes(tmp_path, caplog):
    """MuJoCo scales what it compiles; what is asked of it here is scaled once, not twice."""
    world = hinged(WEDGE) + hinged('<geom size="0.1"/>', "b") + '<geom size="0.2"/>'
    (tmp_path / "a.xml").write_text(mjcf(world))
    (tmp_path / "b.xml").write_text(mjcf(world, head=MESH + '<compiler settotalmass="5"/>'))
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "a.xml"))
    masses = np.array(model.body_mass) * 5.0 / sum(model.body_mass)
    mech = hc.load(tmp_path / "b.xml")
    assert [i.mass for i in mech.model.inertias.tolist()[1:]] == pytest.approx(masses[1:])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (mjcf(hinged(WEDGE.replace("wedge", "none"))), "mesh 'none' not found"),
        (
            mjcf(hinged(WEDGE), head='<asset><mesh name="wedge" file="no.stl"/></asset>'),
            r"<mesh> 'wedge': MuJoCo's compiler refuses this: there is no mesh 'no\.stl'",
        ),
    ],
)
def test_what_mujoco_does_not_compile_is_refused_at_the_geom(text, message, tmp_path):
    (tmp_path / "model.xml").write_text("\n\n" + text)
    with pytest.raises(hc.LoadError, match=message) as error:
        hc.load(tmp_path / "model.xml")
    assert error.value.line == 3


def test_a_text_without_a_file_is_compiled_too():
    assert read_mjcf(mjcf(hinged(WEDGE)), "text").model.inertias[1].mass == pytest.approx(
        2.0, rel=1e-6
    )


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER, reason="HOLOCTL_MJCF names no folder with MJCF files")
@pytest.mark.filterwarnings("ignore")
def test_all_files_of_a_folder_are_read_as_by_mujoco_or_refused(
    tmp_path, monkeypatch, capfd, caplog, record_property
):
    folder = Path(str(FOLDER)).resolve()
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log where it stands
    caplog.set_level(logging.ERROR, "holoctl")
    found = survey(folder, actuators="skip", include_root=folder)
    capfd.readouterr()  # and it prints
    for outcome, files in found.items():
        record_property(outcome, len(files))
    assert found
    assert set(found) <= {"equal", "refused", "large"}, found
