"""The server of a page: viser without its output, by default reachable from this computer alone."""

from __future__ import annotations

import atexit
import errno
import ipaddress
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from holoctl.base.checks import quoted, whole
from holoctl.base.errors import InputError

if TYPE_CHECKING:
    import viser

__all__ = ["HOST", "PORT", "address", "start_server", "stop_server", "viser_or_error"]

HOST, PORT = "127.0.0.1", 8080
"""Default host, this computer alone, and the first port that is tried."""

EVERYWHERE = ("0.0.0.0", "::")
"""Addresses at which all computers that reach this one are served."""

LAST_PORT = 65535

Addresses = list[tuple[Any, tuple[Any, ...]]]


def viser_or_error() -> None:
    """Raise `InputError` if viser is missing."""
    try:
        import viser  # noqa: F401
    except ImportError:
        raise InputError(
            "the view needs viser, which is not installed: pip install 'holoctl[view]'"
        ) from None


def start_server(host: Any = HOST, port: Any = PORT, name: str = "") -> viser.ViserServer:
    """A server with an empty scene at the first free port from `port` on, any port for 0.

    Raises
    ------
    InputError
        For an address that this computer does not have, an invalid port, or if no port is free.
    """
    import viser

    if not isinstance(host, str) or not host:
        raise InputError(f"host must be an address, such as {quoted(HOST)}; got {quoted(host)}")
    port = whole("port", port, 0)
    if port > LAST_PORT:
        raise InputError(f"port must be at most {LAST_PORT}; got {port}")
    port = _free_port(host, port)
    with _silent():
        server = viser.ViserServer(host=host, port=port, label=name, verbose=False)
    # A page could request a tunnel to the outside, which is disabled.
    server.request_share_url = _no_tunnel  # type: ignore[method-assign]
    _own_pages_only(server, host)
    for stop in (server.stop, server._websock_server.stop, _stop_all):
        atexit.unregister(stop)
    _RUNNING.add(server)
    atexit.register(_stop_all)
    return server


def stop_server(server: viser.ViserServer) -> None:
    """End a server, without output."""
    _RUNNING.discard(server)
    with _silent():
        server.stop()


_RUNNING = set[Any]()


def _stop_all() -> None:
    """End all servers that are still open at the end of the process."""
    for server in list(_RUNNING):
        stop_server(server)


def address(server: viser.ViserServer, host: str) -> str:
    """The address for a browser on this computer."""
    shown = "localhost" if host in EVERYWHERE else f"[{host}]" if ":" in host else host
    return f"http://{shown}:{server.get_port()}"


# ----------------------------------------------------------------------------------- no output

_SILENCE, _SILENT = threading.Lock(), list[bool]()


@contextmanager
def _silent() -> Iterator[None]:
    """Suppress the output of viser through rich, which ignores its own option.

    ``sys.stdout`` is not replaced, as it belongs to all threads: two threads that replace and
    restore it would restore the wrong one.
    """
    import rich

    console = rich.get_console()
    with _SILENCE:
        _SILENT.append(console.quiet)
        console.quiet = True
    try:
        yield
    finally:
        with _SILENCE:
            before = _SILENT[0]
            _SILENT.pop()
            if not _SILENT:
                console.quiet = before


# ------------------------------------------------------------------------------ where to serve


def _free_port(host: str, port: int) -> int:
    """The first port from this one on that is free at all addresses of a host; any for 0."""
    there = _addresses(host)
    for p in range(port, LAST_PORT + 1) if port else [0] * 20:
        found = _bound(there, p, host)
        if found:
            return found
    raise InputError(f"port: none is free from {port} to {LAST_PORT} at {host!r}")


def _addresses(host: str) -> Addresses:
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise _not_here(host, error) from None
    return list({family: (family, place) for family, _, _, _, place in reversed(found)}.values())


def _bound(there: Addresses, port: int, host: str) -> int:
    """The port, if it is free at all addresses; else 0."""
    with ExitStack() as probes:
        for family, place in there:
            probe = probes.enter_context(socket.socket(family, socket.SOCK_STREAM))
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                probe.bind((place[0], port, *place[2:]))
            except OSError as error:
                if error.errno in (errno.EADDRINUSE, errno.EACCES):
                    return 0
                raise _not_here(host, error) from None
            port = probe.getsockname()[1]
    return port


def _not_here(host: str, error: Exception) -> InputError:
    why = getattr(error, "strerror", None) or error
    return InputError(
        f"host: cannot serve at {host!r}: {why}; {HOST!r} is this computer alone, "
        f"{EVERYWHERE[0]!r} is every computer that reaches it"
    )


# --------------------------------------------------------------------------- permitted pages


def _own_pages_only(server: viser.ViserServer, host: str) -> None:
    """Close connections from pages of other origins: a browser lets any page connect to this
    computer.

    The Origin of such a page differs from the Host that it connects to. If its domain name resolves
    to this computer (DNS rebinding), both are equal, but are no name of this computer.
    """
    served = server._websock_server
    alone = all(ipaddress.ip_address(place[0]).is_loopback for _, place in _addresses(host))

    async def check(client: Any) -> None:
        connection = served._live_connections[client.client_id]
        headers = connection.request.headers  # type: ignore[union-attr]
        origin = headers.get("Origin")
        if origin is None:  # not a page
            return
        name = urlsplit(origin).hostname or ""
        same = urlsplit(origin).netloc.lower() == headers.get("Host", "").lower()
        if not same or (alone and name != host.lower() and not _names_this_machine(name)):
            await connection.close(1008, "a page from elsewhere")

    served.on_client_connect(check)


def _names_this_machine(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _no_tunnel(verbose: bool = True) -> None:
    """Replaces viser's tunnel to the outside, and does nothing."""
