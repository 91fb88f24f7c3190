"""`view` and `save_view` from outside: what they give, what they refuse, and the command."""

from __future__ import annotations

import dataclasses
import importlib.abc
import json
import re
import sys
import threading
import urllib.request

import numpy as np
import pytest
import zoo

import holoctl as hc
from holoctl.app.cli import main

BOX = """<robot name="box"><link name="crate"><visual><geometry><box size="1 1 1"/></geometry>
  </visual></link></robot>"""
NO_CLOSURES = "closed_loop: []\ntype: []\nname_mot: []\n"


@pytest.fixture(scope="module")
def four_bar():
    return hc.load(hc.robot_file("four_bar"))


@pytest.fixture(scope="module")
def fall(four_bar):
    return hc.simulate(four_bar, None, *hc.assemble(four_bar), 0.1)


def pose_of(text):
    """(nq,) what a page says is shown."""
    found = re.search(r'data-q="([^"]*)"', text)
    return np.array(json.loads(found[1]))


# ------------------------------------------------------------------------------------ in Python


def test_a_page_is_served_here_alone_and_ends(four_bar, capsys):
    with hc.view(four_bar, port=0) as page:
        assert re.fullmatch(r"http://localhost:\d+|http://127\.0\.0\.1:\d+", page.url)
        assert urllib.request.urlopen(page.url, timeout=10).status == 200
        assert page.words == ()
        assert repr(page) == f"<View of 'four_bar', at {page.url}>"
        assert page.q == pytest.approx(hc.assemble(four_bar)[0])
        page.q[:] = 0.0  # a copy
        assert page.q.any()
    assert repr(page) == "<View of 'four_bar', closed>"
    page.close()
    page.wait()  # it is over
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(page.url, timeout=2)
    assert capsys.readouterr().out == ""
    assert not [t for t in threading.enumerate() if t.name.startswith("holoctl view")]


def test_it_starts_at_the_closed_configuration_nearest_to_q(four_bar):
    guess = four_bar.reference + np.array([0.3, 0.0, 0.0])
    with hc.view(four_bar, q=guess, port=0) as page:
        assert page.q == pytest.approx(hc.assemble(four_bar, guess)[0])


def test_bodies_that_cannot_be_shown_are_told(four_bar, tmp_path):
    other = tmp_path / "box.urdf"
    other.write_text(BOX, encoding="utf-8")
    other.with_suffix(".yaml").write_text(NO_CLOSURES, encoding="utf-8")
    with hc.view(four_bar, geometry=other, port=0) as page:
        assert "none of the mechanism" in page.words[0]
    saved = hc.save_view(four_bar, tmp_path / "page.html", geometry=other)
    assert "none of the mechanism" in saved.read_text("utf-8")


WRONG = [
    ({"mech": "four_bar"}, hc.InputError, "Mechanism"),
    ({"run": "run.npz"}, hc.InputError, "Run"),
    ({"q": [0.0]}, hc.InputError, "q"),
    ({"geometry": "no_such.urdf"}, hc.LoadError, "no_such"),
    ({"geometry": 3}, hc.InputError, "path"),
]
NOWHERE = [
    ({"host": "192.0.2.1"}, "cannot serve at '192.0.2.1'"),
    ({"host": ""}, "host must be an address"),
    ({"port": -1}, "port"),
    ({"port": 65536}, "at most 65535"),
    ({"port": 80.5}, "port"),
]


@pytest.mark.parametrize(("given", "error", "said"), WRONG)
def test_what_is_wrong_is_refused_by_both(four_bar, tmp_path, given, error, said):
    arguments = {"mech": four_bar} | given
    with pytest.raises(error, match=said):
        hc.view(**arguments)
    with pytest.raises(error, match=said):
        hc.save_view(path=tmp_path / "page.html", **arguments)
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(("given", "said"), NOWHERE)
def test_a_place_to_serve_that_is_none_is_refused(four_bar, given, said):
    with pytest.raises(hc.InputError, match=said):
        hc.view(four_bar, **given)


def test_a_run_of_another_mechanism_or_of_no_time_is_refused(four_bar, fall):
    with pytest.raises(hc.InputError, match="another mechanism"):
        hc.view(zoo.five_bar(), fall)
    nothing = {name: getattr(fall, name)[:0] for name in ("t", "q", "v", "u", "closure")}
    with pytest.raises(hc.InputError, match="no instants"):
        hc.view(four_bar, dataclasses.replace(fall, **nothing))


@pytest.mark.parametrize("path", ["page.pdf", "page", 3, None])
def test_a_file_that_is_no_page_is_refused(four_bar, path):
    with pytest.raises(hc.InputError, match="path"):
        hc.save_view(four_bar, path)


def test_a_file_that_cannot_be_written_is_told(four_bar, tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(hc.InputError, match="cannot be written"):
        hc.save_view(four_bar, tmp_path / "taken" / "page.html")


def test_what_does_not_close_is_saved_as_it_is(tmp_path):
    bars = zoo.four_bar(lengths=(0.2, 0.5, 0.4, 2.0))
    text = hc.save_view(bars, tmp_path / "new" / "page.html").read_text("utf-8")
    assert 'data-closed="false"' in text
    assert "no configuration closes it" in text
    assert "holoctl-holding" not in text


class Missing(importlib.abc.MetaPathFinder):
    """viser, where it is not installed."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "viser":
            raise ImportError(name)


def test_without_viser_the_door_says_what_to_install(four_bar, monkeypatch, capsys):
    for name in [n for n in sys.modules if n.partition(".")[0] == "viser"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    with pytest.raises(hc.InputError, match=r"pip install 'holoctl\[view\]'"):
        hc.view(four_bar)
    with pytest.raises(SystemExit) as ended:
        main(["view", "--help"])
    assert ended.value.code == 0
    assert "holoctl view stewart" in capsys.readouterr().out


# ------------------------------------------------------------------------------------ the command


def test_the_command_saves_a_page_of_a_run(four_bar, fall, tmp_path, capsys):
    fall.save(tmp_path / "fall.npz")
    page = tmp_path / "fall.html"
    assert main(["view", "four_bar", "--run", str(tmp_path / "fall.npz"), "--save", str(page)]) == 0
    assert capsys.readouterr().out == f"four_bar: written: {page}\n"
    text = page.read_text("utf-8")
    assert 'id="holoctl-chart"' in text
    assert "101 instants" in text
    assert "https://" not in re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("kind", ["missing", "text", "another"])
def test_a_recording_that_is_none_of_it_is_refused(kind, fall, tmp_path, capsys):
    file = tmp_path / "run.npz"
    if kind == "text":
        file.write_text("t, q")
    if kind == "another":
        fall.save(file)
    assert main(["view", "five_bar", "--run", str(file), "--save", str(tmp_path / "x.html")]) == 1
    said = capsys.readouterr().err
    assert ("another mechanism" if kind == "another" else "is not a saved run") in said


def test_joints_that_are_set_stay_where_they_are_set(tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["view", "five_bar", "--set", "motor_left=2.3", "--save", str(page)]) == 0
    mech = hc.load(hc.robot_file("five_bar"))
    i = mech.coordinate_names.index("motor_left")
    assert pose_of(page.read_text("utf-8"))[i] == 2.3
    wrong = ["--set", "motor_left=0", "--set", "elbow_left=0", "--set", "motor_right=3"]
    assert main(["view", "five_bar", *wrong, "--save", str(page)]) == 1
    assert "AssemblyError" in capsys.readouterr().err


def test_the_command_says_where_the_page_is_and_waits(monkeypatch, capsys):
    waited = []
    monkeypatch.setattr(hc.View, "wait", lambda page: waited.append(page.url))
    assert main(["view", "four_bar", "--port", "0"]) == 0
    assert waited[0] in capsys.readouterr().out
