"""Maps of a mechanism over a grid: what its motors hold, move and push, and where it gets to.

Every point is reached from a neighbour, on the branch (elbows, assembly mode) of the start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import label

from holoctl.base.checks import Array, Vector, flag, name_list, number, one_of, quiet, read_only
from holoctl.base.errors import InputError, NotActuatedError
from holoctl.base.progress import progress_bar
from holoctl.base.renamed import formerly
from holoctl.base.single_threaded_blas import one_thread
from holoctl.closing.assembly import assemble
from holoctl.control.tasks.task_terms import bound_to
from holoctl.design.maps.grid_coordinates import GridAxis, chart_of
from holoctl.design.maps.grid_filling import Filled, GridWorker, filled
from holoctl.design.maps.point_quantities import MapRequest
from holoctl.design.maps.result import QUANTITIES, MotorMap
from holoctl.design.sweeps.chunks import dealt_out
from holoctl.design.sweeps.workers import at_work, workers_of
from holoctl.mechanism.bound_limits import applicable
from holoctl.mechanism.checks import check_configuration, check_mechanism
from holoctl.mechanism.default_limits import limits_of
from holoctl.mechanism.limits import Limits, checked_limits
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.projector.partition import partition
from holoctl.tree.kinematics import kinematics

__all__ = ["motor_map"]

_WORDS = (*QUANTITIES, "reach")


@formerly(locked="hold")
@quiet
def motor_map(
    mech: Mechanism,
    grid: Any,
    what: str | Iterable[str] = ("torque", "condition"),
    *,
    start: Any = None,
    locked: Iterable[str] | None = None,
    task: Any = None,
    limits: Any = "model",
    t: float = 0.0,
    executor: Any = None,
    progress: bool = False,
) -> MotorMap:
    """What the motors can do at each point of a grid, and where the mechanism gets to.

    Each point is reached from a neighbour by a continuation that takes no step it cannot vouch
    for, so that the whole map is on the branch of the start: what is not reached is nan, and says
    why. The result does not depend on who works.

    Parameters
    ----------
    mech : Mechanism
    grid : mapping or tuple
        ``{coordinate: values}``: joints of one coordinate, ``joint[i]``, or closures that are
        joints, as `ClosedStateEstimator` takes them; rad or m. Or ``(task, values, values, ...)``
        with values for each row of the task, ``(hc.FrameTask("tool", "x y"), xs, ys)``; the numbers
        of rows that turn are those of a rotation vector, rad. Each array is an axis of the grid, in
        order; a number in place of an array stays the same over the map.
    what : str or iterable of str, optional
        ``"torque"``: holding efforts; ``"condition"``; ``"velocity"`` and ``"force"``: ellipsoids
        of the task; ``"reach"``: nothing more than where it gets to, which is always told.
    start : (nq,) array_like, optional
        The branch: closed first, as by `assemble`. Default: ``mech.reference``.
    locked : iterable of str, optional
        Coordinates that are held as they are at the start, where the grid leaves motions open.
        Default: of a grid of coordinates, the motors that are not in it, as far as that takes; of
        a task, none.
    task : Task, optional
        Whose ellipsoids and condition are meant. Default: that of the grid.
    limits : "model", Limits or None, optional
        Default: ``hc.limits_of(mech)``. Points beyond limits of positions are not reachable;
        efforts beyond theirs are told in `reasons`.
    t : float, optional
        Time, s, for constraints that depend on it.
    executor : concurrent.futures.Executor or int, optional
        Who works, as for `sweep`. Default: this process.
    progress : bool, optional
        Show a progress bar, of tqdm.

    Returns
    -------
    MotorMap

    Raises
    ------
    InputError
        For what is no grid, unknown names or words, rows that leave motions open or repeat each
        other, ellipsoids without a task.
    NotActuatedError
        If the mechanism has no motors, and not only ``"reach"`` is asked for.
    AssemblyError
        If the start does not close.
    SingularityError
        If the start is a singular configuration.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> xs, zs = np.linspace(-0.2, 0.2, 5), np.linspace(0.3, 0.5, 3)
    >>> hc.motor_map(mech, (hc.FrameTask("tip_right", "x z"), xs, zs)).torque.shape
    (5, 3, 2)
    """
    check_mechanism(mech)
    flag("progress", progress)
    t = number("t", t, "time, s")
    words = _words(what)
    if mech.nu == 0 and words != ("reach",):
        raise NotActuatedError(f"{mech.name} has no motors: only what='reach' can be mapped")
    guess = mech.reference if start is None else check_configuration(mech, start, "start")
    q = assemble(mech, guess, t=t)[0]
    part = partition(mech, q, t=t)
    kin = kinematics(mech.model, workspace(mech), q, np.zeros(mech.nv), t)
    chart, axes = chart_of(mech, part, q, grid, locked, kin)
    own = chart.task if task is None else task
    bound = None if own is None else bound_to(mech, own)
    if bound is None and ({"velocity", "force"} & set(words)):
        raise InputError(
            "motor_map: ellipsoids are those of a task: give task=hc.FrameTask(...), or a grid of "
            "one"
        )
    request = MapRequest(chart, words, _limits(mech, limits), own, t)
    worker = GridWorker(request, axes, part)
    found = _run(worker, q, executor, progress)
    return _gathered(worker, axes, found)


def _words(what: Any) -> tuple[str, ...]:
    given = [what] if isinstance(what, str) else name_list("motor_map: what", what)
    words = {one_of("motor_map: what", word, _WORDS) for word in given}
    if not words:
        raise InputError("motor_map: what is empty: name 'torque', 'condition', ... or 'reach'")
    return tuple(word for word in _WORDS if word in words)


def _limits(mech: Mechanism, limits: Any) -> Limits | None:
    if limits is None:
        return None
    if isinstance(limits, str) and limits == "model":
        return limits_of(mech)
    return applicable(mech, checked_limits(limits, "motor_map"))


def _run(worker: GridWorker, start: Vector, executor: Any, progress: bool) -> Filled:
    """The grid, filled here where it is small, else by workers."""
    count = int(np.prod([axis.values.size for axis in worker.axes]))
    workers = None if executor is None else workers_of("motor_map", worker, executor, count)
    bar = progress_bar(0, "motor map", "items") if progress else None

    def run(items: Sequence[Any]) -> list[Any]:
        if bar is not None:
            bar.total += len(items)
            bar.refresh()
        if workers is not None:
            return dealt_out(workers, items, bar)[0]
        return [_tried(worker, item, bar) for item in items]

    beside: AbstractContextManager[Any] = nullcontext() if workers is None else at_work(workers)
    try:
        with one_thread(), beside:
            return filled(worker, start, run)
    finally:
        if bar is not None:
            bar.close()


def _tried(function: Callable[[Any], Any], item: Any, bar: Any) -> Any:
    try:
        found = function(item)
    except Exception as error:  # as in a sweep: an item that fails is its error
        found = error
    if bar is not None:
        bar.update(1)
    return found


# --------------------------------------------------------------------------------- the value


def _gathered(worker: GridWorker, axes: tuple[GridAxis, ...], found: Filled) -> MotorMap:
    request, mech = worker.request, worker.request.chart.mech
    shape = tuple(axis.values.size for axis in axes)
    arrays: dict[str, Array] = {"q": np.full((*shape, mech.nq), np.nan)}
    sizes: dict[str, tuple[int, ...]] = {"torque": (mech.nu,), "condition": ()}
    n = request.rows.size
    for name in ("velocity", "force"):
        sizes[name], sizes[f"{name}_directions"] = (n,), (n, n)
    for name, size in sizes.items():
        if name.removesuffix("_directions") in request.what:
            arrays[name] = np.full((*shape, *size), np.nan)
    reachable, reasons = np.zeros(shape, dtype=bool), np.full(shape, "", dtype=object)
    behind = _behind(found, shape)
    for index in np.ndindex(shape):
        point = found.points.get(index)
        if point is None:
            reasons[index] = found.why.get(index, "out of reach: no neighbour was reached")
            continue
        if point.beyond:
            reasons[index] = point.beyond
            continue
        reachable[index] = True
        said = [*point.remarks, found.apart.get(index, "")]
        said += ["behind a singular configuration of the motors"] if behind[index] else []
        said += ["reached past limits of positions only"] if index in found.past else []
        reasons[index] = "; ".join(word for word in said if word)
        arrays["q"][index] = point.q
        for name, value in point.numbers.items():
            arrays[name][index] = value
    labels = () if request.bound is None else request.bound.labels
    return MotorMap(
        mechanism=mech.name,
        axes=axes,
        what=request.what,
        motors=mech.actuator_names,
        rows=tuple(labels[i] for i in request.rows),
        scaled=(request.rate_units[1], request.effort_units[1]),
        reachable=read_only(reachable),
        behind=read_only(behind & reachable),
        reasons=read_only(reasons),
        **{name: read_only(array) for name, array in arrays.items()},
    )


def _behind(found: Filled, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Points that are not joined with the first one by points of its side; within limits of
    positions, where these do not keep them apart."""
    behind = np.zeros(shape, dtype=bool)
    if found.begun is None or (own := found.points[found.begun].side) == 0:
        return behind
    for past in (False, True):
        beside = np.zeros(shape, dtype=bool)
        for index, point in found.points.items():
            within = not point.beyond and index not in found.past
            beside[index] = point.side == own and (past or within)
        islands, _ = label(beside)
        for index, point in found.points.items():
            if not point.beyond and (index in found.past) == past:
                behind[index] = islands[index] == 0 or islands[index] != islands[found.begun]
    return behind
