"""Maps of a mechanism over a grid: holding efforts, condition, velocities and forces, workspace.

Each point is reached from a neighbour, on the branch (elbows, assembly mode) of the start.
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
from holoctl.base.renamed import former_names
from holoctl.base.single_threaded_blas import one_thread
from holoctl.closing.assembly import assemble
from holoctl.control.tasks.task_terms import bound_to
from holoctl.design.maps.grid_coordinates import GridAxis, chart_of
from holoctl.design.maps.grid_filling import Filled, GridWorker, filled
from holoctl.design.maps.point_quantities import MapRequest
from holoctl.design.maps.result import QUANTITIES, MotorMap
from holoctl.design.sweeps.chunks import dealt_out
from holoctl.design.sweeps.workers import at_work, workers_of
from holoctl.mechanism.checks import check_configuration, check_mechanism
from holoctl.mechanism.default_limits import requested_limits
from holoctl.mechanism.limits import MODEL
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.mechanism.motor_units import motor_units
from holoctl.projector.partition import partition
from holoctl.tree.kinematics import kinematics

__all__ = ["motor_map"]

_WORDS = (*QUANTITIES, "reach")


@former_names(locked="hold")
@quiet
def motor_map(
    mech: Mechanism,
    grid: Any,
    what: str | Iterable[str] = ("torque", "condition"),
    *,
    start: Any = None,
    locked: Iterable[str] | None = None,
    task: Any = None,
    limits: Any = MODEL,
    t: float = 0.0,
    executor: Any = None,
    progress: bool = False,
) -> MotorMap:
    """Holding efforts and other quantities of the motors over a grid, and the workspace.

    Each point is reached from a neighbour by a continuation whose steps are proved to stay on the
    branch, so that the whole map is on the branch of the start. Points that are not reached are
    nan, with a reason. The result does not depend on the executor.

    Parameters
    ----------
    mech : Mechanism
    grid : mapping or tuple
        ``{coordinate: values}``: joints of one coordinate, ``joint[i]``, or closures that are
        joints, as `ClosedStateEstimator` takes them; rad or m. Or ``(task, values, values, ...)``
        with values for each row of the task, ``(hc.FrameTask("tool", "x y"), xs, ys)``; the values
        of rotational rows are components of a rotation vector, rad. Each array is an axis of the
        grid, in order; a number in place of an array is constant over the map.
    what : str or iterable of str, optional
        ``"torque"``: holding efforts; ``"condition"``: condition numbers; ``"velocity"`` and
        ``"force"``: ellipsoids of the task; ``"reach"``: the workspace alone, which every map has.
    start : (nq,) array_like, optional
        A configuration on the branch; it is closed first, as by `assemble`. Default:
        ``mech.reference``.
    locked : iterable of str, optional
        Coordinates that keep their values at the start, if the grid leaves motions open. Default:
        for a grid of coordinates, motors that are not in it, as many as are needed; for a task,
        none.
    task : Task, optional
        The task of the ellipsoids and the condition. Default: that of the grid.
    limits : "model", Limits or None, optional
        ``"model"``: those of the mechanism, ``hc.limits_of(mech)``; a `Limits`; None: no limits.
        Points beyond limits of positions are not reachable; efforts beyond their limits are
        reported in `reasons`.
    t : float, optional
        Time, s, for constraints that depend on it.
    executor : concurrent.futures.Executor or int, optional
        Worker processes, as for `sweep`. Default: this process.
    progress : bool, optional
        Show a progress bar, of tqdm.

    Returns
    -------
    MotorMap

    Raises
    ------
    InputError
        For a wrong type of grid, unknown names or words, rows that leave motions open or are
        dependent, ellipsoids without a task.
    NotActuatedError
        If the mechanism has no motors, and `what` is not ``"reach"`` alone.
    AssemblyError
        If the start does not close.
    SingularityError
        If the start is a singular configuration.

    See Also
    --------
    sweep : a function of your own over many items.
    inverse_kinematics : one pose.
    results.MotorMap : the result.

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
            "motor_map: ellipsoids need a task: give task=hc.FrameTask(...), or a grid of a task"
        )
    request = MapRequest(chart, words, requested_limits(mech, limits, "motor_map"), own, t)
    worker = GridWorker(request, axes, part)
    found = _run(worker, q, executor, progress)
    return _gathered(worker, axes, found)


def _words(what: Any) -> tuple[str, ...]:
    given = [what] if isinstance(what, str) else name_list("motor_map: what", what)
    words = {one_of("motor_map: what", word, _WORDS) for word in given}
    if not words:
        raise InputError("motor_map: what is empty: name 'torque', 'condition', ... or 'reach'")
    return tuple(word for word in _WORDS if word in words)


def _run(worker: GridWorker, start: Vector, executor: Any, progress: bool) -> Filled:
    """The grid, filled in this process or by workers."""
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

    working: AbstractContextManager[Any] = nullcontext() if workers is None else at_work(workers)
    try:
        with one_thread(), working:
            return filled(worker, start, run)
    finally:
        if bar is not None:
            bar.close()


def _tried(function: Callable[[Any], Any], item: Any, bar: Any) -> Any:
    try:
        found = function(item)
    except Exception as error:  # as in a sweep, the result of an item that fails is its error
        found = error
    if bar is not None:
        bar.update(1)
    return found


# --------------------------------------------------------------------------------- the result


def _gathered(worker: GridWorker, axes: tuple[GridAxis, ...], found: Filled) -> MotorMap:
    request, mech = worker.request, worker.request.chart.mech
    shape = tuple(axis.values.size for axis in axes)
    arrays: dict[str, Array] = {"q": np.full((*shape, mech.nq), np.nan)}
    sizes: dict[str, tuple[int, ...]] = {"torque": (mech.nu,), "condition": ()}
    arrays["smallest_singular_value"] = np.full(shape, np.nan)
    n = request.rows.size
    for name in ("velocity", "force"):
        sizes[name], sizes[f"{name}_directions"] = (n,), (n, n)
    for name, size in sizes.items():
        if name.removesuffix("_directions") in request.what:
            arrays[name] = np.full((*shape, *size), np.nan)
    reachable, reasons = np.zeros(shape, dtype=bool), np.full(shape, "", dtype=object)
    behind, side = _behind(found, shape), np.zeros(shape, dtype=int)
    start = 0 if found.origin is None else found.points[found.origin].side
    for index in np.ndindex(shape):
        point = found.points.get(index)
        if point is None:
            reasons[index] = found.reasons.get(index, "out of reach: no neighbour was reached")
            continue
        if point.beyond:
            reasons[index] = point.beyond
            continue
        reachable[index] = True
        remarks = [*point.remarks, found.branch_remarks.get(index, "")]
        remarks += ["behind a singular configuration of the motors"] if behind[index] else []
        remarks += ["reached past limits of positions only"] if index in found.past_limits else []
        reasons[index] = "; ".join(remark for remark in remarks if remark)
        arrays["q"][index], side[index] = point.q, start * point.side
        for name, value in point.numbers.items():
            arrays[name][index] = value
    labels = () if request.bound is None else request.bound.labels
    return MotorMap(
        mechanism=mech.name,
        axes=axes,
        what=request.what,
        motors=mech.actuator_names,
        units=tuple(motor_units(mech)),
        rows=tuple(labels[i] for i in request.rows),
        scaled=(request.rate_units[1], request.effort_units[1]),
        reachable=read_only(reachable),
        behind=read_only(behind & reachable),
        side=read_only(side),
        reasons=read_only(reasons),
        **{name: read_only(array) for name, array in arrays.items()},
    )


def _behind(found: Filled, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Points that are not connected with the first one by points with its sign of the determinant.

    Points that were reached past limits of positions may be connected past them; others not.
    """
    behind = np.zeros(shape, dtype=bool)
    if found.origin is None or (sign := found.points[found.origin].side) == 0:
        return behind
    for past_limits in (False, True):
        same_sign = np.zeros(shape, dtype=bool)
        for index, point in found.points.items():
            within = not point.beyond and index not in found.past_limits
            same_sign[index] = point.side == sign and (past_limits or within)
        islands, _ = label(same_sign)
        for index, point in found.points.items():
            if not point.beyond and (index in found.past_limits) == past_limits:
                behind[index] = islands[index] == 0 or islands[index] != islands[found.origin]
    return behind
