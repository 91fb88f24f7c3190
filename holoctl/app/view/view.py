"""`view` and `save_view`: a mechanism in the browser, from a server here or from a file."""

from __future__ import annotations

import atexit
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pinocchio as pin

from holoctl.app.plot_run import check_run
from holoctl.app.view.geometry import Geometry, shapes_of
from holoctl.app.view.page import Page
from holoctl.app.view.recorded_run import Recorded, recorded
from holoctl.app.view.scene import Scene
from holoctl.app.view.server import (
    HOST,
    PORT,
    address,
    start_server,
    stop_server,
    viser_or_error,
)
from holoctl.app.view.shown_posture import Posture, opened
from holoctl.app.view.standalone_page import standalone_page
from holoctl.base.checks import Vector, one_of, quiet
from holoctl.base.errors import InputError
from holoctl.mechanism.checks import check_configuration, check_mechanism
from holoctl.mechanism.mechanism import Mechanism
from holoctl.simulation.run import Run
from holoctl.tree.frozen_model import plain

if TYPE_CHECKING:
    import viser

__all__ = ["HOST", "PORT", "View", "save_view", "view"]


class View:
    """A page that shows a mechanism, served until it is closed. `view` makes it.

    It serves from threads of this process. Use it in a ``with`` statement, or call `close`; a
    script that should wait for its reader calls `wait`.

    Attributes
    ----------
    url : str
        Address of the page.
    words : tuple of str
        What could not be shown as it is, such as meshes that are not there.
    """

    def __init__(
        self, server: viser.ViserServer, page: Page, url: str, words: tuple[str, ...]
    ) -> None:
        self._server: viser.ViserServer | None = server
        self._page, self.url, self.words = page, url, words
        atexit.register(self.close)  # a thread that computes while Python ends may crash it

    @property
    def q(self) -> Vector:
        """(nq,): the configuration that is shown."""
        return self._page.q

    def wait(self) -> None:
        """Serve until Ctrl-C, then close."""
        try:
            while self._server is not None:
                time.sleep(0.2)
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """End the page; a second time nothing happens."""
        if self._server is not None:
            atexit.unregister(self.close)
            server, self._server = self._server, None
            self._page.close()
            stop_server(server)

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._server is None else f"at {self.url}"
        return f"<View of {self._page.posture.mech.name!r}, {state}>"


@quiet
def view(
    mech: Mechanism,
    run: Run | None = None,
    *,
    q: Any = None,
    geometry: str | Path | None = None,
    host: str = HOST,
    port: int = PORT,
) -> View:
    """Show a mechanism in the browser. Needs ``holoctl[view]``.

    A slider for each motor drags it along its closed motions; where these end, the slider stops,
    and the page says why. Beside it stand the efforts that hold it at rest, red past a limit, the
    doctor's words, and a button for each motion. All of this is of the configuration that is shown,
    also while a motion or a run plays; the doctor looks again when it comes to rest, and is marked
    as out of date until then. A mechanism that does not close is shown as it is nearest to closing,
    what does not meet in red. Up is against gravity.

    Nothing is fetched from elsewhere, and nothing is drawn on this side: the browser may be on
    another machine, at the end of an ssh tunnel (``ssh -L 8080:localhost:8080 robot``).

    Parameters
    ----------
    mech : Mechanism
    run : Run, optional
        Plays, with a time bar and the efforts below it.
    q : (nq,) array_like, optional
        Where it starts: the closed configuration nearest to this. Default: to the first instant of
        the run; without a run to its reference.
    geometry : str or Path, optional
        The description with the shapes of its bodies, URDF, MJCF or SDF: the file it was loaded
        from. A body without shapes is drawn as capsules between its joints and closures.
    host : str, optional
        Who can see it: by default those on this machine. ``"0.0.0.0"``: everyone who reaches it.
    port : int, optional
        Where to serve; the next ones if it is taken.

    Returns
    -------
    View

    Raises
    ------
    InputError
        For wrong arguments, a run of another mechanism, an address that cannot be served;
        without viser.
    LoadError
        For a description of the bodies that cannot be read. What it draws and cannot be shown,
        such as a mesh that is not there, is told in `View.words`.

    See Also
    --------
    save_view : a page in a file.
    draw, animate, plot_run : pictures.

    Examples
    --------
    In a script, until Ctrl-C::

        hc.view(mech).wait()
    """
    start, shapes, played = _checked(mech, run, q, geometry)
    server = start_server(host, port, mech.name)
    try:
        at, film = (start.q, ()) if played is None else (played.at(played.start), played.run.q)
        page = Page(server, Scene(server, mech, shapes, at, film), start, played, shapes.words)
    except BaseException:
        stop_server(server)
        raise
    return View(server, page, address(server, host), shapes.words)


@quiet
def save_view(
    mech: Mechanism,
    path: str | Path,
    run: Run | None = None,
    *,
    q: Any = None,
    geometry: str | Path | None = None,
) -> Path:
    """Write a page that shows a mechanism and stands alone. Needs ``holoctl[view]``.

    It plays the run, or each motion of the mechanism in turn, and can be looked at from all sides,
    without a server and without a network. The doctor's words are in it, and what holds the
    mechanism at rest, or the efforts of the run, and what could not be shown. It has no sliders:
    these need `view`.

    Parameters
    ----------
    mech : Mechanism
    path : str or Path
        A file ``.html``; one that is there is overwritten. Its folder is made.
    run, q, geometry
        As for `view`.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        As for `view`; for another suffix, and a file that cannot be written.
    LoadError
        As for `view`.
    """
    if not isinstance(path, (str, Path)):
        raise InputError(f"path must be that of a file; got {type(path).__name__}")
    path = Path(path)
    one_of("save_view: the suffix of path", path.suffix.lower(), (".html", ".htm"))
    start, shapes, played = _checked(mech, run, q, geometry)
    text = standalone_page(start, shapes, played)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from None
    return path


def _checked(
    mech: Any, run: Any, q: Any, geometry: Any
) -> tuple[Posture, Geometry, Recorded | None]:
    """Where it starts, what it looks like, and what plays."""
    check_mechanism(mech)
    if run is not None:
        check_run(run, mech)
        if not run.t.size:
            raise InputError("this run has no instants: there is nothing to show")
        if q is None:  # unit quaternions, as a configuration has them
            q = pin.normalize(plain(mech.model), run.q[0])
    guess = None if q is None else check_configuration(mech, q, "q")
    if geometry is not None and not isinstance(geometry, (str, Path)):
        raise InputError(f"geometry must be the path of a file; got {type(geometry).__name__}")
    viser_or_error()
    shapes = shapes_of(mech, geometry)
    return opened(mech, guess), shapes, None if run is None else recorded(mech, run)
