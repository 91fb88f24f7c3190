"""Where a view is served, to whom, and what is left when it ends."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading

import pytest
from support import ROOT

import holoctl as hc

pytest.importorskip("viser")


@pytest.fixture(scope="module")
def mech():
    return hc.load(hc.robot_file("four_bar"))


def test_views_of_several_threads_leave_the_output_of_the_process_alone(mech):
    before, there = sys.stdout, set(threading.enumerate())

    def look():
        with hc.view(mech, port=0):
            pass

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sys.stdout is before
    assert {t for t in threading.enumerate() if t.is_alive()} <= there


def test_it_says_nothing_by_itself(mech, capfd):
    with hc.view(mech, port=0) as view:
        view.close()
    assert capfd.readouterr() == ("", "")


def test_the_next_port_or_an_error_where_there_is_none(mech):
    with socket.socket() as taken, socket.socket() as last:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with hc.view(mech, port=taken.getsockname()[1]) as view:
            assert int(view.url.rpartition(":")[2]) > taken.getsockname()[1]
        try:
            last.bind(("127.0.0.1", 65535))
            last.listen()
        except OSError:  # somebody else has it
            pass
        with pytest.raises(hc.InputError, match="none is free from 65535"):
            hc.view(mech, port=65535)


def test_hosts(mech):
    for host in ("x..y", "a" * 300, "no.such.host.invalid", "192.0.2.1"):
        with pytest.raises(hc.InputError, match="host"):
            hc.view(mech, host=host, port=0)
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("no IPv6 on this machine")
    with hc.view(mech, host="::1", port=0) as view:
        assert view.url.startswith("http://[::1]:")


@pytest.mark.parametrize(
    ("host", "origin", "let_in"),
    [
        ("127.0.0.1", None, True),  # no page of a browser
        ("127.0.0.1", "http://{at}", True),
        ("127.0.0.1", "http://elsewhere.example", False),
        ("127.0.0.1", "http://127.0.0.1:1", False),
        ("127.0.0.1", "null", False),
        ("localhost", "http://{at}", True),
    ],
)
def test_pages_from_elsewhere_are_not_let_in(mech, host, origin, let_in):
    import viser
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    with hc.view(mech, host=host, port=0) as view:
        at = view.url.removeprefix("http://")
        origin = origin and origin.format(at=at)
        version = f"viser-v{viser.__version__}"
        with connect(f"ws://{at}", origin=origin, subprotocols=[version]) as page:
            if let_in:
                assert page.recv(timeout=5.0)
            else:
                with pytest.raises(ConnectionClosed, match="a page from elsewhere"):
                    page.recv(timeout=5.0)


def test_a_name_that_was_made_to_lead_here_is_not_let_in(mech):
    import viser
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    with hc.view(mech, port=0) as view, socket.socket() as line:
        port = int(view.url.rpartition(":")[2])
        line.connect(("127.0.0.1", port))
        name, version = f"led.here.example:{port}", f"viser-v{viser.__version__}"
        with connect(
            f"ws://{name}", sock=line, origin=f"http://{name}", subprotocols=[version]
        ) as page, pytest.raises(ConnectionClosed, match="elsewhere"):  # fmt: skip
            page.recv(timeout=5.0)


@pytest.mark.slow
def test_a_view_that_is_left_open_ends_in_silence():
    left = "import holoctl as hc; v = hc.view(hc.load(hc.robot_file('four_bar')), port=0)"
    done = subprocess.run(
        [sys.executable, "-c", left], capture_output=True, text=True, timeout=60,
        env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
