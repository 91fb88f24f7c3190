"""What `view` and `save_view` take, give and refuse; no browser."""

from __future__ import annotations

import contextlib
import re
import socket
import sys
from urllib.request import urlopen

import numpy as np
import pytest
import zoo

import holoctl as hc


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
        ({"port": 70000}, "65535"),
        ({"port": "8080"}, "port"),
        ({"host": 3}, "host must be an address"),
        ({"host": "203.0.113.7"}, "this machine alone"),
    ],
)
def test_what_is_wrong_is_said(mech, given, said):
    with pytest.raises(hc.HoloctlError, match=re.escape(said)), contextlib.ExitStack() as open_pages:
        open_pages.enter_context(hc.view(**{"mech": mech, "port": 0} | given))


def test_without_viser_the_extra_is_named(mech, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(hc.InputError, match=r"holoctl\[view\]"):
        hc.view(mech)
    with pytest.raises(hc.InputError, match=r"holoctl\[view\]"):
        hc.save_view(mech, tmp_path / "x.html")


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
