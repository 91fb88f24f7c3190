"""Files that an MJCF includes: spliced in where they stand, and only from below its folder."""

from __future__ import annotations

import os

import numpy as np
import pytest
from documents_mjcf import ARM

import holoctl as hc
from holoctl.io import reader_limits
from holoctl.io.mjcf import read_mjcf

LOWER = ARM[ARM.index('      <body name="lower"') : ARM.index("    </body>\n  </worldbody>")]
MAIN = ARM.replace(LOWER, '<include file="{}"/>\n')


@pytest.fixture
def folder(tmp_path):
    """Write files into a folder below another one; return a function that loads ``arm.xml``."""
    top = tmp_path / "model"
    top.mkdir()

    def load(files=None, **others):
        for name, text in (files or {}).items() | others.items():
            path = top / (name if "." in name else f"{name}.xml")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        return hc.load(top / "arm.xml")

    load.path = top
    return load


def included(text, root="mujocoinclude"):
    return f"<{root}>{text}</{root}>"


@pytest.mark.parametrize("root", ["mujoco", "mujocoinclude", 'mujoco model="x"'])
@pytest.mark.parametrize("name", ["lower.xml", "parts/lower.xml", "./parts/../lower.xml"])
def test_what_is_included_stands_in_its_place(folder, name, root):
    text = f"<{root}>{LOWER}</{root.split()[0]}>"
    (folder.path / "parts").mkdir()
    mech = folder({"arm.xml": MAIN.format(name), name: text})
    whole = folder(arm=ARM)
    assert mech.name == "arm"
    assert mech.coordinate_names == whole.coordinate_names == ("shoulder", "elbow")
    q, v = [0.3, -0.4], [1.0, 2.0]
    assert (hc.terms(mech, q, v).M == hc.terms(whole, q, v).M).all()
    assert (hc.terms(mech, q, v).h == hc.terms(whole, q, v).h).all()


def test_the_order_of_bodies_is_that_of_the_whole(folder):
    body = '<body name="{0}"><joint name="{0}"/><geom size="1"/></body>'
    a, b, c, d, e = (body.format(x) for x in "abcde")
    mech = folder(
        arm=f'<mujoco><worldbody>{a}<include file="i.xml"/>{e}</worldbody></mujoco>',
        i=included(f'{b}<include file="sub/j.xml"/>{d}'),
        **{"sub/j.xml": included(c)},
    )
    assert "".join(mech.coordinate_names) == "abcde"


def test_settings_and_classes_of_an_included_file_hold_everywhere(folder):
    """A later <compiler> counts for all that is read before, as in MuJoCo."""
    settings = (
        '<compiler angle="radian"/><default><joint damping="3"/><default class="fast">'
        '<joint armature="0.5"/></default></default>'
    )
    mech = folder(
        arm='<mujoco><worldbody><body><joint name="a" class="fast" range="-1 1"/>'
        '<geom size="1"/></body></worldbody><include file="settings.xml"/></mujoco>',
        settings=included(settings),
    )
    assert mech.model.damping[0] == 3.0
    assert mech.model.armature[0] == 0.5
    assert mech.model.upperPositionLimit[0] == 1.0


def test_main_defaults_of_a_later_file_do_not_reach_classes_of_an_earlier_one(folder):
    mech = folder(
        arm='<mujoco><default><default class="fast"><joint armature="0.5"/></default></default>'
        '<include file="more.xml"/><worldbody><body><joint name="a" class="fast"/><geom size="1"/>'
        '</body><body><joint name="b"/><geom size="1"/></body></worldbody></mujoco>',
        more=included('<default><joint damping="3"/></default>'),
    )
    assert mech.model.damping.tolist() == [0.0, 3.0]


def test_a_file_in_a_folder_includes_from_there_if_the_main_folder_has_none(folder):
    body = '<body><joint name="{}"/><geom size="1"/></body>'
    files = {
        "arm.xml": '<mujoco><worldbody><include file="sub/i.xml"/></worldbody></mujoco>',
        "sub/i.xml": included('<include file="j.xml"/>'),
        "sub/j.xml": included(body.format("below")),
    }
    assert folder(files).coordinate_names == ("below",)
    assert folder(files | {"j.xml": included(body.format("top"))}).coordinate_names == ("top",)
    up = {"sub/i.xml": included('<include file="../k.xml"/>'), "k.xml": included(body.format("k"))}
    assert folder(files | up).coordinate_names == ("k",)


def test_errors_name_the_file_that_they_stand_in(folder):
    text = LOWER.replace('type="capsule"', 'type="capsul"')
    with pytest.raises(hc.LoadError, match="invalid keyword: 'capsul'") as error:
        folder(arm=MAIN.format("lower.xml"), lower=included("\n\n" + text))
    assert error.value.file == os.path.realpath(folder.path / "lower.xml")
    assert error.value.line == 5


def refused(folder, name, message, **files):
    with pytest.raises(hc.LoadError, match=message) as error:
        folder(arm=MAIN.format(name), **files)
    return error.value


OUT = r"leads out of the folder '.*model', and only files below it are .* include_root="


@pytest.mark.parametrize("name", ["../out.xml", "sub/../../out.xml", "link.xml", "linked/out.xml"])
def test_nothing_outside_of_the_folder_is_opened(folder, name):
    outside = folder.path.parent
    (outside / "out.xml").write_text(included(LOWER))
    (folder.path / "sub").mkdir()
    (folder.path / "link.xml").symlink_to(outside / "out.xml")
    (folder.path / "linked").symlink_to(outside)
    error = refused(folder, name, OUT)
    assert error.file == str(folder.path / "arm.xml")
    assert error.line == 1 + MAIN[: MAIN.index("<include")].count("\n")


def test_another_folder_may_be_named(folder, tmp_path):
    (tmp_path / "out.xml").write_text(included(LOWER))
    refused(folder, "../out.xml", OUT)
    mech = hc.load(folder.path / "arm.xml", include_root=tmp_path)
    assert mech.coordinate_names == ("shoulder", "elbow")
    inner = folder.path / "inner"
    inner.mkdir()
    with pytest.raises(hc.LoadError, match=r"leads out of the folder '.*inner'"):
        hc.load(folder.path / "arm.xml", include_root=str(inner))
    with pytest.raises(hc.InputError, match="include_root must be a path; got 3"):
        hc.load(folder.path / "arm.xml", include_root=3)
    with pytest.raises(hc.InputError, match="include_root= is for an MJCF"):
        hc.load(folder.path / "arm.urdf", include_root=tmp_path)


def test_a_link_within_the_folder_is_followed(folder):
    (folder.path / "link.xml").symlink_to(folder.path / "lower.xml")
    mech = folder(arm=MAIN.format("link.xml"), lower=included(LOWER))
    assert mech.coordinate_names == ("shoulder", "elbow")


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "{}/arm.xml", r"sub\lower.xml", "C:lower.xml", "file:lower.xml"]
)
def test_only_relative_paths_are_read(folder, name):
    refused(folder, name.format(folder.path), "file= must be a path relative to")


@pytest.mark.parametrize(
    ("element", "message"),
    [
        ("<include/>", "has one attribute, file=, and no elements"),
        ('<include file=""/>', "has one attribute, file=, and no elements"),
        ('<include file="lower.xml" prefix="a"/>', "and no elements; got 'prefix'"),
        ('<include file="lower.xml"><body/></include>', "and no elements"),
        ('<include file="none.xml"/>', "there is no file 'none.xml' in the folder"),
        ('<include file="."/>', "this is a directory"),
        ('<include file="pipe"/>', "this is a pipe"),
        ('<include file="bytes.xml"/>', "this is not a text in UTF-8"),
        ('<include file="empty.xml"/>', "'empty.xml' is empty"),
        ('<include file="text.xml"/>', r"text\.xml:1: this is not XML"),
        ('<include file="robot.xml"/>', "starts with <mujoco> or <mujocoinclude>; this one with"),
        ('<include file="doctype.xml"/>', "document types and entities are not read"),
        ('<include file="arm.xml"/>', "included twice, or includes itself"),
        ('<include file="lower.xml"/><include file="sub/../lower.xml"/>', "included twice"),
        ('<include file="self.xml"/>', "included twice, or includes itself"),
    ],
)
def test_what_is_no_file_to_include(folder, element, message):
    (folder.path / "sub").mkdir()
    os.mkfifo(folder.path / "pipe")
    (folder.path / "bytes.xml").write_bytes(b"<mujoco>\xff</mujoco>")
    with pytest.raises(hc.LoadError, match=message):
        folder(
            arm=ARM.replace(LOWER, element),
            lower=included(LOWER),
            empty="<mujoco/>",
            text="what is this",
            robot="<robot><link/></robot>",
            doctype='<!DOCTYPE m [<!ENTITY a "b">]><mujoco><body name="&a;"/></mujoco>',
            **{"self.xml": included('<include file="self.xml"/>')},
        )


def test_a_text_without_a_file_includes_nothing():
    with pytest.raises(hc.LoadError, match="this MJCF is a text without a folder"):
        read_mjcf(MAIN.format("lower.xml"), "text")


def test_counts_of_files_are_limited(folder, monkeypatch):
    chain = {f"f{i}.xml": included(f'<include file="f{i + 1}.xml"/>') for i in range(21)}
    with pytest.raises(hc.LoadError, match="each other more than 20 deep are not read"):
        folder(chain | {"arm.xml": MAIN.format("f0.xml"), "f21.xml": included(LOWER)})
    flat = {f"f{i}.xml": included("<worldbody/>") for i in range(201)}
    all_of_them = "".join(f'<include file="f{i}.xml"/>' for i in range(201))
    with pytest.raises(hc.LoadError, match="more than 200 included files are not read"):
        folder(flat | {"arm.xml": f"<mujoco>{all_of_them}</mujoco>"})


def test_sizes_of_files_are_limited_together(folder, monkeypatch):
    monkeypatch.setattr(reader_limits, "MOST_BYTES", 1000)
    files = {f"f{i}.xml": included("<worldbody/>" + i * " ") for i in (900, 901)}
    text = '<mujoco><include file="f900.xml"/><include file="f901.xml"/></mujoco>'
    with pytest.raises(hc.LoadError, match="bytes, too many to read"):
        folder(files | {"arm.xml": text})


def test_elements_and_levels_are_limited_together(folder):
    many = included("<body/>" * 60_000)
    with pytest.raises(hc.LoadError, match="more than 100000 elements are not read"):
        folder(
            arm='<mujoco><include file="a.xml"/><include file="b.xml"/></mujoco>', a=many, b=many
        )
    deep = included("<body>" * 300 + '<include file="{}"/>' + "</body>" * 300)
    files = {
        "a.xml": deep.format("b.xml"),
        "b.xml": deep.format("c.xml"),
        "c.xml": included("<body/>"),
    }
    with pytest.raises(hc.LoadError, match="nested more than 400 deep"):
        folder(
            files | {"arm.xml": '<mujoco><worldbody><include file="a.xml"/></worldbody></mujoco>'}
        )


# -------------------------------------------------------------------------- attached models

CHILD = (
    '<mujoco model="child"><compiler angle="degree" meshdir="{meshdir}"/>'
    '<default><joint armature="0.3"/></default><asset>{asset}</asset><worldbody>'
    '<body name="b" pos="1 0 0"><joint name="j" range="-90 90"/><geom {geom}/>{inside}</body>'
    '</worldbody><actuator><motor name="m" joint="j" gear="3"/></actuator></mujoco>'
)
ATTACHED = (
    '<mujoco><asset><model name="c" file="{file}"/></asset><worldbody><frame euler="0 90 0">'
    '<attach model="c" body="b" prefix="x_"/></frame><body name="o"><joint name="o"/>'
    '<geom size="1"/><attach model="c" body="b" prefix="y_"/></body></worldbody></mujoco>'
)
CUBE = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"


def child(meshdir="", asset="", geom='size="0.1" pos="0.2 0 0"', inside=""):
    return CHILD.format(meshdir=meshdir, asset=asset, geom=geom, inside=inside)


def test_models_are_attached_as_by_mujoco(folder):
    mujoco = pytest.importorskip("mujoco", minversion="4.0")
    from compare_mujoco import compared, model_of

    mesh = child("m", '<mesh name="k" file="k.obj"/>', 'type="mesh" mesh="k"')
    for text in (child(), mesh):
        mech = folder(
            {"arm.xml": ATTACHED.format(file="sub/c.xml"), "sub/c.xml": text, "sub/m/k.obj": CUBE}
        )
        assert mech.coordinate_names == ("x_j", "o", "y_j")
        assert mech.actuator_names == ("u[0]", "u[1]")
        assert mech.limits.position["y_j"] == pytest.approx(np.pi / 2)
        worst = compared(mujoco, model_of(mujoco, folder.path / "arm.xml"), mech)
        assert max(worst.values()) < 1e-11, worst


def test_errors_in_an_attached_model_name_its_file_and_line(folder):
    text = "\n\n" + child().replace("<body", "\n<body").replace('size="0.1"', 'size="-1"')
    with pytest.raises(hc.LoadError, match="must be positive") as error:
        folder({"arm.xml": ATTACHED.format(file="c.xml"), "c.xml": text})
    assert error.value.file == os.path.realpath(folder.path / "c.xml")
    assert error.value.line == 4


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"arm.xml": ATTACHED.format(file="../out.xml")}, OUT),
        ({"arm.xml": ATTACHED.format(file="none.xml")}, "there is no file 'none.xml'"),
        ({"arm.xml": ATTACHED.format(file="arm.xml")}, "more than 20 deep are not read"),
        (
            {"c.xml": '<!DOCTYPE m [<!ENTITY a "b">]><mujoco model="&a;"/>'},
            "document types and entities",
        ),
        ({"c.xml": child(inside='<plugin plugin="p"/>')}, "the effect of a plugin is unknown"),
        ({"c.xml": child(geom='size="nan"')}, "size must be finite numbers"),
        (
            {"c.xml": child(inside="<site/>" * 999 + "<replicate count='99'><site/></replicate>"),
             "arm.xml": ATTACHED.format(file="c.xml").replace(
                 "<frame ", "<replicate count='99'>", 1).replace("</frame>", "</replicate>")
                 .replace("euler='0 90 0'>", "")},
            "elements, all copies written out",
        ),
        ({"c.xml": child(asset='<mesh name="k" file="pipe"/>', geom='type="mesh" mesh="k"')},
         "this is a pipe"),
    ],
)  # fmt: skip
def test_what_is_not_attached(folder, files, message):
    (folder.path.parent / "out.xml").write_text(child())
    os.mkfifo(folder.path / "pipe")
    with pytest.raises(hc.LoadError, match=message):
        folder({"arm.xml": ATTACHED.format(file="c.xml"), "c.xml": child()} | files)
