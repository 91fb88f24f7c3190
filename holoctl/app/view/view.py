"""`view` and `save_view`: a mechanism in the browser, from a local server or from a file."""

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
from holoctl.app.view.shown_motions import sweep
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

__all__ = ["HOST", "PORT", "View", "save_view", "view", "write_page"]


class View:
    """A page that shows a mechanism, served until it is closed; the result of `view`.

    It serves from threads of this process. Use it in a ``with`` statement, or call `close`; a
    script that should wait for its reader calls `wait`.

    Attributes
    ----------
    url : str
        Address of the page.
    words : tuple of str
        Sentences on shapes that could not be shown, such as missing meshes.

    See Also
    --------
    view : returns it.
    save_view : a page without a server.

    Examples
    --------
    >>> import holoctl as hc
    >>> with hc.view(hc.load(hc.robot_file("four_bar"))) as page:
    ...     page.words
    ()
    """

    def __init__(
        self, server: viser.ViserServer, page: Page, url: str, words: tuple[str, ...]
    ) -> None:
        self._server: viser.ViserServer | None = server
        self._page, self.url, self.words = page, url, words
        atexit.register(self.close)  # a thread that computes while Python exits may crash it

    @property
    def q(self) -> Vector:
        """(nq,): the shown configuration."""
        return self._page.q

    def wait(self) -> None:
        """Serve until Ctrl-C, then close."""
        try:
            while self._server is not None:
                time.sleep(0.2)
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Close the page; a second call has no effect."""
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

    A slider for each motor drags the mechanism along its closed motions; at the end of a motion the
    slider stops, and the page says why. The page also has the misfit of closures, the efforts that
    hold the mechanism at rest, red past a limit, singular values of type 1 and type 2, the doctor's
    report, and a button for each motion. All of these are about the shown configuration, also while
    a motion or a run plays; the doctor's report is updated when the mechanism comes to rest, and
    marked as out of date until then. A mechanism that does not close is shown at its smallest
    closure error, with open constraints in red. Weight, motor efforts and constraint forces can be
    shown as arrows, also the centre of mass, and traces of frames. Up is against gravity.

    Nothing is downloaded, and nothing is rendered in this process: the browser may be on another
    computer, connected by an ssh tunnel (``ssh -L 8080:localhost:8080 robot``).

    Parameters
    ----------
    mech : Mechanism
    run : Run, optional
        A run that can be played, with a time bar and curves of its efforts and positions.
    q : (nq,) array_like, optional
        The first configuration is the closed one nearest to this. Default: the first instant of the
        run; without a run the reference.
    geometry : str or Path, optional
        The description with the shapes of the bodies, URDF, MJCF or SDF: the file of the mechanism.
        A body without shapes is drawn as capsules between its joints and closures.
    host : str, optional
        The address to serve at: by default only this computer can reach it. ``"0.0.0.0"``: every
        computer that reaches this one.
    port : int, optional
        The port to serve at; the next free one if it is taken.

    Returns
    -------
    View

    Raises
    ------
    InputError
        For wrong arguments, a run of another mechanism, an address that cannot be served; if viser
        is missing.
    LoadError
        For a description of the bodies that cannot be read. Shapes that cannot be shown, such as a
        missing mesh, are reported in `View.words`.

    See Also
    --------
    save_view : a page in a file.
    draw : a picture.
    animate : a film.
    plot_run : a run over time.

    Examples
    --------
    In a script, ``hc.view(mech).wait()`` serves until Ctrl-C.

    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> with hc.view(mech) as page:
    ...     page.url.startswith("http://127.0.0.1")
    True
    """
    start, shapes, played = _checked(mech, run, q, geometry)
    server = start_server(host, port, mech.name)
    try:
        at = start.q if played is None else played.at(played.start)
        film = sweep(start) if played is None else played.run.q
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
    """Write a standalone page that shows a mechanism. Needs ``holoctl[view]``.

    It plays the run, or one motion of the mechanism after the other, and can be viewed from all
    sides, without a server and without a network. It has curves of efforts and positions, a loop
    and keys for the time, the doctor's report, the efforts that hold
    the mechanism at rest or those of the run, and a list of shapes that could not be shown. It has
    no sliders, which need `view`.

    Parameters
    ----------
    mech : Mechanism
    path : str or Path
        A file ``.html``; an existing one is overwritten. Its folder is created.
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

    See Also
    --------
    view : a live page, with sliders.
    animate : a film.

    Examples
    --------
    >>> import pathlib, tempfile, holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hc.save_view(mech, path=pathlib.Path(folder, "four_bar.html")).name
    'four_bar.html'
    """
    return write_page(mech, path, run, q=q, geometry=geometry)[0]


@quiet
def write_page(
    mech: Mechanism,
    path: str | Path,
    run: Run | None = None,
    *,
    q: Any = None,
    geometry: str | Path | None = None,
) -> tuple[Path, tuple[str, ...]]:
    """`save_view`, with sentences on shapes that could not be shown."""
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
    return path, shapes.words


def _checked(
    mech: Any, run: Any, q: Any, geometry: Any
) -> tuple[Posture, Geometry, Recorded | None]:
    """The first posture, the shapes, and the run that is played."""
    check_mechanism(mech)
    if run is not None:
        check_run(run, mech)
        if not run.t.size:
            raise InputError("this run has no instants, so there is nothing to show")
        if q is None:  # configurations need unit quaternions
            q = pin.normalize(plain(mech.model), run.q[0])
    guess = None if q is None else check_configuration(mech, q, "q")
    if geometry is not None and not isinstance(geometry, (str, Path)):
        raise InputError(f"geometry must be the path of a file; got {type(geometry).__name__}")
    viser_or_error()
    shapes = shapes_of(mech, geometry)
    return opened(mech, guess), shapes, None if run is None else recorded(mech, run)
