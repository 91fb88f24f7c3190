"""Anything at all gives a proper result or an error of the family."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import signal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import relaxed
from support import few

import holoctl as hc

numbers = st.one_of(
    st.floats(), st.floats(-2.0, 2.0), st.integers(), st.sampled_from([1e300, -1e160, 10**400])
)


no_numbers = st.one_of(st.none(), st.text(max_size=2), st.sampled_from([np.nan, np.inf, 1e300]))


nothing_good = st.one_of(
    st.none(), st.text(max_size=5), st.booleans(), numbers, st.binary(max_size=3),
    st.complex_numbers(), st.dictionaries(st.text(max_size=3), numbers, max_size=2),
    st.recursive(
        st.one_of(numbers, st.none(), st.text(max_size=2)),
        lambda inner: st.lists(inner, max_size=4),
        max_leaves=12,
    ),
    st.sampled_from([Ellipsis, len, np.zeros((3, 3)), np.array("a"), np.ones(3, dtype=object)]),
)  # fmt: skip


def anything(size):
    """Junk of any kind, and arrays of the right size with all sorts of numbers in them."""
    if size == 0:  # motor efforts: anything but large numbers, which take their time to integrate
        return st.one_of(no_numbers, st.lists(no_numbers, max_size=3))
    right = st.lists(numbers, min_size=size, max_size=size)
    tame = st.lists(st.floats(-4.0, 4.0), min_size=size, max_size=size)
    return st.one_of(nothing_good, right, tame, tame.map(np.array))


def is_proper(value):
    """Finite arrays, or a certificate that warns."""
    certificate = getattr(value, "certificate", None)
    if certificate is not None and not certificate.ok:
        return True
    fields = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
    parts = [getattr(value, f.name) for f in fields] or list(np.atleast_1d(value))
    arrays = [x for x in parts if isinstance(x, np.ndarray | float) and np.size(x)]
    return bool(arrays) and all(np.isfinite(x).all() for x in arrays if np.asarray(x).dtype != bool)


SIZES = {
    "assemble": (3, 3, 3), "partition": (3,), "project": (3, 3), "forward_dynamics": (3, 3, 3, 6),
    "inverse_dynamics": (3, 3, 1, 6), "inverse_dynamics, all": (3, 3, 3, 6),
    "torque": (3, 3, 1, 1, 1), "ComputedTorque": (1, 1), "simulate": (3, 3),
    "controller": (0,), "Mechanism": (3, 3), "Coupling": (1, 1), "impulse": (3, 3, 2),
    "relaxed": (3, 3, 1, 1, 6), "acceleration": (3, 3, 3), "acceleration, weld": (8, 8, 8),
    "prepared torque": (3, 3, 1, 3), "constraint_wrenches": (3, 2), "corrected": (3, 3, 1),
    "constraint_errors": (3, 3), "assembly_modes": (1,),
}  # fmt: skip


FUNCTIONS = {
    "assemble": lambda s, q, v, w: hc.assemble(s.mech, q, v, weights=w, restarts=2, max_iter=30),
    "partition": lambda s, q: hc.partition(s.mech, q),
    "project": lambda s, q, v: hc.project(s.mech, q, v, partition=s.part),
    "forward_dynamics": lambda s, q, v, tau, f: hc.forward_dynamics(
        s.mech, q, v, tau, f_ext={"rocker": f}, partition=s.part
    ),
    "inverse_dynamics": lambda s, q, v, a, f: hc.inverse_dynamics(
        s.mech, q, v, a, f_ext={"rocker": f}, partition=s.part
    ),
    "inverse_dynamics, all": lambda s, q, v, a, f: hc.inverse_dynamics(
        s.mech,
        q,
        v,
        a,
        f_ext={"rocker": f},
        coordinates="all",
        inconsistent="project",
        partition=s.part,
    ),
    "torque": lambda s, *x: s.ctl.torque(*x),
    "ComputedTorque": lambda s, kp, kd: hc.ComputedTorque(s.mech, kp, kd, partition=s.part),
    "impulse": lambda s, q, v, v_plus: hc.impulse(s.mech, q, v, v_plus, partition=s.part),
    "relaxed": lambda s, q, v, a, W, f: relaxed(
        s, q=q, v=v, target=a, stiffness=W, f_ext={"rocker": f}
    ),
    "acceleration": lambda s, *x: s.forward.acceleration(*x),
    "acceleration, weld": lambda s, *x: s.welded.acceleration(*x),
    "prepared torque": lambda s, q, v, a, tau: s.inverse.torque(q, v, a, efforts=tau),
    "constraint_wrenches": lambda s, q, x: hc.constraint_wrenches(s.mech, q, x)["pin"][1].force,
    "corrected": lambda s, q, v, t: np.concatenate(hc.corrected(s.mech, q, v, t=t)),
    "constraint_errors": lambda s, q, v: hc.constraint_errors(s.mech, q, v),
    "assembly_modes": lambda s, u: hc.assembly_modes(s.mech, u, tries=3),
    "simulate": lambda s, q, v: hc.simulate(s.mech, lambda t, q, v: [0.0], q, v, 0.002),
    "controller": lambda s, u: hc.simulate(s.mech, lambda t, q, v: u, s.q, s.v, 0.002),
    "Mechanism": lambda s, q, B: hc.Mechanism(s.mech.model, reference=q, actuation=B),
    "Coupling": lambda s, c, b: hc.Mechanism(s.mech.model, [hc.Coupling({"crank": c}, b)]),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numbers beyond floats on the way
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("count", few([50, 150], [50]))
def test_anything_at_all_gives_a_proper_result_or_an_error_of_the_family(bench, function, count):
    @settings(max_examples=count)
    @given(data=st.data())
    def run(data):
        check(bench, function, data)

    run()


def check(bench, function, data):
    """One to all of the array arguments are junk; the others are what they should be."""
    s = bench
    good = {
        "assemble": (s.q, s.v, s.weights), "partition": (s.q,), "project": (s.q, s.v),
        "forward_dynamics": (s.q, s.v, s.tau, s.wrench),
        "inverse_dynamics": (s.q, s.v, s.one, s.wrench),
        "inverse_dynamics, all": (s.q, s.v, s.a, s.wrench),
        "torque": (s.q, s.v, s.one, s.one, s.one), "ComputedTorque": (s.one, s.one),
        "simulate": (s.q, s.v), "controller": (s.u,), "Mechanism": (s.q, s.B),
        "Coupling": (1.0, 0.0), "impulse": (s.q, s.v, np.zeros(2)),
        "relaxed": (s.q, s.v, s.one, np.eye(1), s.wrench), "acceleration": (s.q, s.v, s.tau),
        "acceleration, weld": (s.eight, np.zeros(8), np.ones(8)),
        "prepared torque": (s.q, s.v, s.one, s.tau), "constraint_wrenches": (s.q, np.ones(2)),
        "corrected": (s.q, s.v, 0.0), "constraint_errors": (s.q, s.v),
        "assembly_modes": (s.one,),
    }[function]  # fmt: skip
    first = data.draw(st.integers(0, len(good) - 1), "which")
    arguments = [
        data.draw(anything(n) if i == first or data.draw(st.booleans()) else st.just(x))
        for i, (n, x) in enumerate(zip(SIZES[function], good, strict=True))
    ]
    before = copy.deepcopy(arguments)
    result = None
    with contextlib.suppress(hc.HoloctlError):
        result = FUNCTIONS[function](s, *arguments)
    assert result is None or is_proper(result)
    np.testing.assert_equal(arguments, before)


# ------------------------------------------------- one hostile argument after the other, by name


class Odd:
    """What somebody else wrote, such as a tensor that wants gradients."""

    def __array__(self, *args, **kwargs):
        raise RuntimeError("not as an array")


class Mute:
    """What cannot be shown."""

    def __repr__(self):
        raise RuntimeError("not as text")


DIGITS = 10**5000  # Python refuses to write so many


HOSTILE = {
    "0-d": np.array(1.0), "0-d object": np.array(None), "ragged": [[1, 2], [3]],
    "bools": np.array([True, False]), "nan": np.nan, "inf": np.inf, "largest": 1e308,
    "smallest": 1e-320, "huge": 10**400, "text": "nonsense", "empty": "",
    "surrogate": "\ud800", "nul": "a\0b", "none": None, "objects": np.array([object(), None]),
    "long": np.zeros(1001), "zero": 0.0, "below": -1.0, "true": True, "nothing": [], "dict": {},
    "of nan": {"crank": np.nan}, "of ragged": {"crank": [[1, 2], [3]]},
    "of 0-d": {"crank": np.array(1.0)},
    "bytes": b"abc", "complex": 1j, "cube": np.zeros((2, 2, 2)), "odd": Odd(), "object": object(),
    "records": np.zeros(2, dtype=[("a", float)]), "date": np.datetime64("2020"), "set": {1, 2},
    "masked": np.ma.masked_all(3), "infs": np.full(3, np.inf), "large": np.full(3, 1e308),
    "small": np.array([1e-320]), "range": range(3), "names": ["a", "b"],
    "digits": DIGITS, "list of digits": [DIGITS], "of digits": {"crank": DIGITS},
    "digits by": {DIGITS: 1.0}, "pair of digits": (DIGITS, DIGITS), "mute": Mute(),
    "array of digits": np.array([DIGITS, None]), "list of mute": [Mute()],
    "of mute": {"crank": Mute()},
}  # fmt: skip
"""Values that no argument has in mind; a generator is made anew for each."""


def given_by_name(s):
    """Public callables, each with arguments that serve."""
    mech, q, v, part, crank = s.mech, s.q, s.v, s.part, s.mech.motor_positions(s.q)
    state, at = {"mech": mech, "q": q, "v": v}, {"partition": part}
    eq = hc.equilibrium(mech, partition=part)
    lin = hc.linearize(mech, eq.q, u=eq.u, partition=eq.partition)
    run = hc.simulate(mech, lambda t, q, v: [0.0], q, v, 0.002)
    way = hc.Trajectory.through(mech, [crank, crank + 0.2], [0.0, 0.5])
    task, limits = hc.FrameTask("rocker", "x"), hc.Limits(effort={"crank": 50.0})
    observer = hc.MomentumObserver(mech, 50.0, part)
    watching = hc.MomentumObserver(mech, 50.0, part, dt=1e-3)
    for _ in range(3):
        watching.update(q, v, s.one)
    rates, regulator = hc.RateFilter(300.0, 1e-3), hc.lqr(lin, 1.0, 1.0)
    goal = {"q_ref": crank, "v_ref": s.one, "a_ref": s.one}
    seen = {"q_motors": crank, "v_motors": s.one}
    loads = {"f_ext": None, "efforts": None}
    return {
        "assemble": (hc.assemble, {"mech": mech, "q_guess": q, "v_guess": v, "weights": None,
                                   "locked": (), "t": 0.0, "tol": 1e-12, "seed": 0}),
        "assembly_modes": (hc.assembly_modes, {"mech": mech, "motors": crank, "tries": 2}),
        "by_constraint": (hc.methods.by_constraint, {"mech": mech, "x": np.zeros(2)}),
        "constraint_errors": (hc.constraint_errors, state),
        "constraint_wrenches": (hc.constraint_wrenches,
                                {"mech": mech, "q": q, "multipliers": s.a[:2], "axes": "world"}),
        "corrected": (hc.corrected, state | at),
        "energy": (hc.energy, state | {"t": 0.0}),
        "equilibrium": (hc.equilibrium, {"mech": mech, "q_guess": q, "u": None, "fixed": (),
                                         "restarts": 0} | at),
        "forward_dynamics": (hc.forward_dynamics, state | at
                             | {"tau": s.tau, "method": "projection", "t_stab": None}),
        "gains_for": (hc.gains_for, {"lin": lin, "bandwidth": 20.0, "damping": 1.0, "rate": 1e3,
                                     "delay": 0.0}),
        "gains_for, continuous": (hc.gains_for, {"lin": lin, "bandwidth": 20.0, "delay": 1e-3}),
        "impulse": (hc.impulse, state | at | {"restitution": None}),
        "inverse_dynamics": (hc.inverse_dynamics, state | at | loads
                             | {"target": s.one, "coordinates": "actuated", "weights": None}),
        "relaxed": (hc.methods.inverse_dynamics_relaxed, state | at
                    | {"target": s.one, "stiffness": None}),
        "joint_motion": (hc.joint_motion, state | {"name": "crank"}),
        "limited": (hc.limited_inverse_dynamics, state
                    | {"target": s.one, "limits": limits, "partition": s.part}),
        "on contacts": (hc.contact_inverse_dynamics, state | at | loads
                        | {"target": s.one, "limits": limits, "solver": "daqp",
                           "contacts": [hc.UnilateralContact("rocker", friction=0.0)]}),
        "WithinLimits": (hc.WithinLimits, {"limits": limits, "policy": "nearest", "dt": 1e-3}),
        "linearize": (hc.linearize, {"mech": mech, "q": eq.q, "u": eq.u, "outputs": None,
                                     "along": "fixed"} | at),
        "lqr": (hc.lqr, {"lin": lin, "Q": 1.0, "R": 1.0, "dt": None, "ignore": ()}),
        "lqr in ticks": (hc.lqr, {"lin": lin, "Q": 1.0, "R": 1.0, "dt": 1e-3}),
        "discretized": (lin.discretized, {"dt": 1e-3}),
        "lqr_along": (hc.lqr_along, {"mech": mech, "trajectory": way, "Q": 1.0, "R": 1.0,
                                     "dt": 0.05, "models": 2}),
        "motor_map": (hc.motor_map, {"mech": mech, "grid": {"crank": [0.0, 0.1]},
                                     "what": ("torque",), "executor": None}),
        "partition": (hc.partition, {"mech": mech, "q": q, "independent": None}),
        "project": (hc.project, state | at | {"method": "auto", "t_stab": None}),
        "power": (hc.power, state | {"u": s.one}),
        "resolve_frame": (
            hc.protocols.resolve_frame,
            {"model": mech.model, "frame": "rocker", "owner": "x"},
        ),
        "renumbered": (hc.renumbered, {"model": mech.model}),
        "sweep": (hc.sweep, {"function": abs, "items": [], "executor": 1, "progress": False}),
        "task_terms": (hc.task_terms, {"P": s.P, "task": task}),
        "terms": (hc.terms, state | {"t_stab": None}),
        "through": (hc.Trajectory.through, {"mech": mech, "points": [crank, crank + 0.2],
                                            "times": [0.0, 0.5], "start": None}),
        "sampled": (way.sampled, {"dt": 0.1}),
        "state": (way.state, {"t": 0.1}),
        "Closure": (hc.Closure, {"a": "rocker", "b": "coupler", "joint": "revolute", "name": "x",
                                 "axes": None, "t_stab": None, "pitch": None}),
        "Rod": (hc.Rod, {"a": "rocker", "b": "coupler", "length": 1.0, "name": "x"}),
        "Contact": (hc.Contact, {"frame": "rocker", "normal": (0, 0, 1), "tangents": True,
                                 "ground": None, "t_stab": None}),
        "UnilateralContact": (hc.UnilateralContact, {"frame": "rocker", "points": [(0, 0, 0)],
                                                     "normal": (0, 0, 1), "friction": 0.6,
                                                     "facets": 4, "least": 0.0, "most": 9.0,
                                                     "name": "x"}),
        "Coupling": (hc.Coupling, {"coefficients": {"crank": 1.0}, "offset": 0.0}),
        "Custom": (hc.Custom, {"phi": first, "rows": 1, "time": False, "scale": 1.0,
                               "t_stab": None, "casadi": None}),
        "JointFriction": (hc.JointFriction, {"viscous": 0.1, "coulomb": 0.1, "stribeck": None,
                                             "transition": 0.01}),
        "JointSpring": (hc.JointSpring, {"joint": "crank", "stiffness": 1.0, "rest": 0.0}),
        "Spring": (hc.Spring, {"a": "universe", "b": "rocker", "stiffness": 1.0,
                               "length": 1.0, "unilateral": False}),
        "FrameTask": (hc.FrameTask, {"frame": "rocker", "axes": "x", "local": False}),
        "PostureTask": (hc.PostureTask, {"coordinates": "motors"}),
        "CustomTask": (hc.CustomTask, {"function": first, "rows": 1, "scale": 1.0}),
        "Limits": (hc.Limits, {"effort": {"crank": 1.0}, "velocity": None, "position": None,
                               "acceleration": None, "speed_torque": None}),
        "scaled": (limits.scaled, {"factor": 0.5}),
        "Sensors": (hc.Sensors, {"measured": ["crank"], "noise": (0.0, 0.0), "counts": None,
                                 "delay": 0.0, "rate_bandwidth": None}),
        "Mechanism": (hc.Mechanism, {"model": mech.model, "constraints": (), "actuated": ["crank"],
                                     "actuation": None, "reference": None, "name": "x",
                                     "tolerance": 0.0, "forces": (), "limits": None}),
        "RateFilter": (hc.RateFilter, {"bandwidth": 300.0, "dt": 1e-3, "turning": True}),
        "rate": (rates.rate, {"x": [1.0], "elapsed": None}),
        "ComputedTorque": (hc.ComputedTorque, {"mech": mech, "kp": 1.0, "kd": 1.0, "weights": None,
                                               "limits": None, "ki": 0.0, "dt": 1e-3} | at),
        "Impedance": (hc.Impedance, {"mech": mech, "task": task, "stiffness": 1.0, "damping": 1.0,
                                     "inertia": None, "dt": 1e-3} | at),
        "TaskSpaceControl": (hc.TaskSpaceControl, {"mech": mech, "tasks": [task], "kp": 1.0,
                                                   "kd": 1.0, "posture": None} | at),
        "MomentumObserver": (hc.MomentumObserver, {"mech": mech, "gain": 50.0, "dt": 1e-3} | at),
        "track": (s.ctl.track, {"reference": way.reference}),
        "wrench": (watching.wrench, {"frame": "crank", "axes": "rz"}),
        "closed state": (hc.ClosedStateEstimator(mech, start=q).state,
                         {"q_measured": crank, "v_measured": s.one, "out": None}),
        "update": (observer.update, {"q": q, "v": v, "u": s.one, "dt": None, "efforts": None}),
        "ClosedStateEstimator": (hc.ClosedStateEstimator,
                                 {"mech": mech, "measured": None, "start": q}),
        "torque": (s.ctl.torque, {"q": q, "v": v, "t": 0.0, "out": None} | goal | loads),
        "from motors": (s.ctl.torque_from_motors, seen | goal | {"t": 0.0, "out": None}),
        "acceleration": (s.forward.acceleration, {"q": q, "v": v, "tau": s.tau, "out": None}),
        "holding": (s.inverse.holding, {"q": q, "t": 0.0}),
        "regulator": (regulator.torque, {"q": q, "v": v, "t": 0.0, "out": None}),
        "save": (run.save, {"path": "run.npz"}),
        "read": (hc.Run.read, {"path": "run.npz"}),
        "motor_positions": (mech.motor_positions, {"q": q}),
        "with_model": (mech.with_model, {"model": mech.model}),
        "add_body": (lambda **x: hc.Linkage().add_body(**x),
                     {"name": "a", "mass": 1.0, "com": (0, 0, 0), "inertia": None}),
    }  # fmt: skip


BY_NAME = [
    "assemble", "assembly_modes", "by_constraint", "constraint_errors", "constraint_wrenches",
    "corrected", "energy", "equilibrium", "forward_dynamics", "gains_for", "gains_for, continuous",
    "impulse", "inverse_dynamics", "relaxed", "joint_motion", "limited", "linearize", "lqr",
    "lqr in ticks", "discretized", "lqr_along", "motor_map", "partition", "project", "power",
    "resolve_frame", "renumbered", "sweep", "task_terms", "terms", "through", "sampled", "state",
    "on contacts", "UnilateralContact",
    "Closure", "Rod", "Contact", "Coupling", "Custom", "JointFriction", "JointSpring", "Spring",
    "FrameTask", "PostureTask", "CustomTask", "Limits", "WithinLimits", "scaled", "Sensors",
    "Mechanism",
    "RateFilter", "rate", "ComputedTorque", "Impedance", "TaskSpaceControl", "MomentumObserver",
    "track", "wrench", "closed state", "update", "ClosedStateEstimator", "torque", "from motors",
    "acceleration", "holding", "regulator", "save", "read", "motor_positions",
    "with_model", "add_body",
]  # fmt: skip


def first(q):
    return [q[0]]


class Late(BaseException):
    """A call has not come back."""


@pytest.fixture
def bell():
    """Rings after so many seconds, which are those of the process: others may be busy beside."""

    def rung(*_):
        raise Late

    before = signal.signal(signal.SIGPROF, rung)
    yield lambda seconds: signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_PROF, 0.0)
    signal.signal(signal.SIGPROF, before)


@pytest.fixture(scope="module")
def by_name(bench):
    table = given_by_name(bench)
    assert set(table) == set(BY_NAME)
    return table


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.filterwarnings("ignore")
def test_a_hostile_argument_is_answered_or_refused_in_our_words(
    by_name, name, bell, tmp_path, monkeypatch
):
    """Each argument in turn; nothing but errors of the family comes out, and soon."""
    monkeypatch.chdir(tmp_path)
    function, good = by_name[name]
    found = []
    if name == "read":
        by_name["save"][0](path="run.npz")
    function(**good)
    for argument in good:
        for what, value in [*HOSTILE.items(), ("generator", (x for x in [1.0]))]:
            bell(20.0)
            try:
                with contextlib.suppress(hc.HoloctlError):
                    function(**{**good, argument: value})
            except (Exception, Late) as error:
                found.append(f"{argument}={what}: {type(error).__name__}: {str(error)[:80]}")
            finally:
                bell(0.0)
    assert not found, "\n".join(found)
