"""The server of a page: viser, on this machine alone unless told, and silent."""

from __future__ import annotations

import io
import socket
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

from holoctl.base.checks import whole
from holoctl.base.errors import InputError

if TYPE_CHECKING:
    import viser

__all__ = ["EVERYWHERE", "HOST", "PORT", "start_server", "stop_server", "viser_or_error"]

HOST, PORT = "127.0.0.1", 8080
"""This machine alone; the first port that is free from here on."""

EVERYWHERE = ("0.0.0.0", "::")
"""Addresses at which all that reach this machine are served."""


def viser_or_error() -> None:
    """Raise `InputError` where viser is missing."""
    try:
        import viser  # noqa: F401
    except ImportError:
        raise InputError(
            "the view needs viser, which is not installed: pip install 'holoctl[view]'"
        ) from None


def start_server(host: Any = HOST, port: Any = PORT, name: str = "") -> viser.ViserServer:
    """A server with an empty scene; the next free port where this one is taken, any for 0.

    Raises
    ------
    InputError
        For an address that this machine does not have, and no port.
    """
    import viser

    if not isinstance(host, str) or not host:
        raise InputError(f"host must be an address, such as {HOST!r}; got {host!r}")
    port = whole("port", port, 0)
    if port > 65535:
        raise InputError(f"port must be at most 65535; got {port}")
    _check_host(host)
    with redirect_stdout(io.StringIO()):  # it prints its address, whatever it is told
        server = viser.ViserServer(host=host, port=port, label=name, verbose=False)
    # A page could ask for a tunnel to the outside. It stays here.
    server.request_share_url = _no_tunnel  # type: ignore[method-assign]
    return server


def stop_server(server: viser.ViserServer) -> None:
    """End it, in silence."""
    with redirect_stdout(io.StringIO()):
        server.stop()


def _check_host(host: str) -> None:
    try:
        family = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family[0], family[1]) as probe:
            probe.bind(family[4])
    except OSError as error:
        raise InputError(
            f"host: cannot serve at {host!r}: {error.strerror or error}; {HOST!r} is this machine "
            f"alone, {EVERYWHERE[0]!r} is everyone who reaches it"
        ) from None


def _no_tunnel(verbose: bool = True) -> None:
    """In the place of viser's tunnel to the outside: none."""
