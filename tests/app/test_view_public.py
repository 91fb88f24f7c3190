"""What `view` and `save_view` take, give and refuse; no browser."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import socket
import sys
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pytest
import zoo

import holoctl as hc
from holoctl.app.cli import main

BOX = """<robot name="box"><link name="crate"><visual><geometry><box size="1 1 1"/></geometry>
  </visual></link></robot>"""
NO_CLOSURES = "closed_loop: []\ntype: []\nname_mot: []\n"


@pytest.fixture(scope="module")
def mech():
    return hc.load(hc.robot_file("five_bar"))


def test_a_page_is_served_here_alone_until_it_is_closed(mech, capfd):
    with hc.view(mech, port=0) as page:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", page.url)
        assert repr(page) == f"<View of 'five_bar', at {page.url}>"
        assert urlopen(page.url).status == 200
        assert hc.constraint_errors(mech, page.q).closure < 1e-12
        port = int(page.url.rpartition(":")[2])
        with pytest.raises(OSError, match="refused"):  # another address of this machine
            socket.create_connection(("127.0.0.2", port), timeout=1.0).close()
    assert repr(page) == "<View of 'five_bar', closed>"
    with pytest.raises(OSError, match="refused"):
        urlopen(page.url)
    page.close()  # once more: nothing
    page.wait()  # nor does it wait for what is closed
    assert capfd.readouterr() == ("", "")


def test_it_starts_where_it_is_told(mech):
    there = hc.assemble(mech, mech.reference + 0.1)[0]
    with hc.view(mech, q=there, port=0) as page:
        np.testing.assert_allclose(page.q, there, atol=1e-9)
        page.q[:] = 0.0  # a copy
        np.testing.assert_allclose(page.q, there, atol=1e-9)


def test_a_port_that_is_taken_is_not_taken_twice(mech):
    with hc.view(mech, port=0) as one:
        port = int(one.url.rpartition(":")[2])
        with hc.view(mech, port=port) as other:
            assert other.url != one.url
            assert urlopen(other.url).status == 200


def test_what_does_not_close_is_shown_all_the_same():
    with hc.view(zoo.four_bar(lengths=(0.2, 0.5, 0.4, 2.0)), port=0) as page:
        assert np.isfinite(page.q).all()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mech": "five_bar"}, "Mechanism"),
        ({"q": [0.0]}, "q"),
        ({"run": 3}, "run must be a Run"),
        ({"geometry": "no_such.urdf"}, "no_such.urdf"),
        ({"geometry": 3}, "geometry must be the path of a file"),
        ({"port": 70000}, "65535"),
        ({"port": "8080"}, "port"),
        ({"host": 3}, "host must be an address"),
        ({"host": "203.0.113.7"}, "this computer alone"),
    ],
)
def test_what_is_wrong_is_said(mech, given, said):
    with (
        pytest.raises(hc.HoloctlError, match=re.escape(said)),
        contextlib.ExitStack() as pages,
    ):
        pages.enter_context(hc.view(**{"mech": mech, "port": 0} | given))


def test_without_viser_the_extra_is_named(mech, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(hc.InputError, match=r"holoctl\[view\]"):
        hc.view(mech)
    with pytest.raises(hc.InputError, match=r"holoctl\[view\]"):
        hc.save_view(mech, tmp_path / "x.html")
    with pytest.raises(SystemExit, match="0"):
        main(["view", "--help"])
    assert "holoctl view stewart" in capsys.readouterr().out


def test_a_page_in_a_file(tmp_path):
    mech = zoo.four_bar()
    mech = hc.Mechanism(
        mech.model, mech.constraints, mech.actuated, reference=mech.reference,
        name="<script>alert(1)</script>",
    )  # fmt: skip
    path = hc.save_view(mech, tmp_path / "new" / "page.html")
    text = path.read_text("utf-8")
    assert 'id="holoctl-doctor"' in text
    assert "It closes" in text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text


@pytest.mark.parametrize(("path", "said"), [(3, "path"), ("page.png", "suffix"), ("", "suffix")])
def test_a_file_that_is_none(mech, path, said):
    with pytest.raises(hc.InputError, match=said):
        hc.save_view(mech, path)


def test_a_folder_that_cannot_be_written(mech, tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(hc.InputError, match="cannot be written"):
        hc.save_view(mech, tmp_path / "taken" / "page.html")


# ---------------------------------------------------------------- runs, bodies, the command


@pytest.fixture(scope="module")
def four_bar():
    return hc.load(hc.robot_file("four_bar"))


@pytest.fixture(scope="module")
def fall(four_bar):
    return hc.simulate(four_bar, None, *hc.assemble(four_bar), 0.1)


def test_bodies_that_cannot_be_shown_are_told(four_bar, tmp_path):
    other = tmp_path / "box.urdf"
    other.write_text(BOX, encoding="utf-8")
    other.with_suffix(".yaml").write_text(NO_CLOSURES, encoding="utf-8")
    with hc.view(four_bar, geometry=other, port=0) as page:
        assert "do not belong to the mechanism" in page.words[0]
    saved = hc.save_view(four_bar, tmp_path / "page.html", geometry=other)
    assert "do not belong to the mechanism" in saved.read_text("utf-8")


def test_a_run_of_another_mechanism_or_of_no_time_is_refused(four_bar, fall):
    with pytest.raises(hc.InputError, match="another mechanism"):
        hc.view(zoo.five_bar(), fall)
    nothing = {name: getattr(fall, name)[:0] for name in ("t", "q", "v", "u", "closure")}
    with pytest.raises(hc.InputError, match="no instants"):
        hc.view(four_bar, dataclasses.replace(fall, **nothing))


def test_what_does_not_close_is_saved_as_it_is(tmp_path):
    bars = zoo.four_bar(lengths=(0.2, 0.5, 0.4, 2.0))
    text = hc.save_view(bars, tmp_path / "new" / "page.html").read_text("utf-8")
    assert 'data-closed="false"' in text
    assert "no configuration closes it" in text
    assert "holoctl-holding" not in text


def test_the_command_saves_a_page_of_a_run(four_bar, fall, tmp_path, capsys):
    fall.save(tmp_path / "fall.npz")
    page = tmp_path / "fall.html"
    assert main(["view", "four_bar", "--run", str(tmp_path / "fall.npz"), "--out", str(page)]) == 0
    assert capsys.readouterr().out == f"four_bar: written: {page}\n"
    text = page.read_text("utf-8")
    assert 'id="holoctl-chart"' in text
    assert "101 instants" in text
    assert "https://" not in re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)


def test_the_command_prints_what_a_saved_page_does_not_show(tmp_path, capsys):
    file, page = tmp_path / "four_bar.urdf", tmp_path / "page.html"
    for suffix in (".urdf", ".yaml"):
        text = Path(hc.robot_file("four_bar")).with_suffix(suffix).read_text("utf-8")
        mesh = '<visual><geometry><mesh filename="none.stl"/></geometry></visual>'
        text = text.replace('<link name="crank_bar">', f'<link name="crank_bar">{mesh}')
        file.with_suffix(suffix).write_text(text, "utf-8")
    assert main(["view", str(file), "--out", str(page)]) == 0
    note, written = capsys.readouterr().out.splitlines()
    assert note.startswith("four_bar: ")
    assert "none.stl" in note
    assert written == f"four_bar: written: {page}"
    assert "none.stl" in page.read_text("utf-8")


@pytest.mark.parametrize("kind", ["missing", "text", "another"])
def test_a_recording_that_is_none_of_it_is_refused(kind, fall, tmp_path, capsys):
    file = tmp_path / "run.npz"
    if kind == "text":
        file.write_text("t, q")
    if kind == "another":
        fall.save(file)
    assert main(["view", "five_bar", "--run", str(file), "--out", str(tmp_path / "x.html")]) == 1
    said = capsys.readouterr().err
    assert ("another mechanism" if kind == "another" else "is not a saved run") in said


def test_a_saved_page_names_missing_meshes_on_the_terminal_too(tmp_path, capsys):
    main_file, page = tmp_path / "five_bar.urdf", tmp_path / "page.html"
    mesh = '<visual><geometry><mesh filename="package://gone/bar.stl"/></geometry></visual></link>'
    text = hc.robot_file("five_bar").read_text()
    main_file.write_text(text.replace("</link>", mesh, 1))
    sheet = hc.robot_file("five_bar").with_suffix(".yaml").read_text()
    main_file.with_suffix(".yaml").write_text(sheet)
    assert main(["view", str(main_file), "--out", str(page)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "there is no mesh 'package://gone/bar.stl'" in said[0]
    assert said[1:] == [f"five_bar: written: {page}"]
    assert "package://gone/bar.stl" in page.read_text()


def test_joints_that_are_set_stay_where_they_are_set(tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["view", "five_bar", "--set", "motor_left=2.3", "--out", str(page)]) == 0
    mech = hc.load(hc.robot_file("five_bar"))
    i = mech.coordinate_names.index("motor_left")
    shown = re.search(r'data-q="([^"]*)"', page.read_text("utf-8"))
    assert json.loads(shown[1])[i] == 2.3
    wrong = ["--set", "motor_left=0", "--set", "elbow_left=0", "--set", "motor_right=3"]
    assert main(["view", "five_bar", *wrong, "--out", str(page)]) == 1
    assert "AssemblyError" in capsys.readouterr().err


def test_the_command_says_where_the_page_is_and_waits(monkeypatch, capsys):
    waited = []
    monkeypatch.setattr(hc.results.View, "wait", lambda page: waited.append(page.url))
    assert main(["view", "four_bar", "--port", "0"]) == 0
    assert waited[0] in capsys.readouterr().out
