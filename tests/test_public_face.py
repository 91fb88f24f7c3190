"""What a caller meets: arguments that are given by name, results that print a sentence."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import math
import pickle
import pydoc
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from xml.etree import ElementTree

import numpy as np
import pytest
from support import closed_states, mechanism, public, public_names, shared_partition

import holoctl as hc
from holoctl.base.renamed import RENAMED

LAWS = [
    hc.forward_dynamics,
    hc.inverse_dynamics,
    hc.methods.inverse_dynamics_relaxed,
    hc.impulse,
    hc.methods.fdgq,
]


@pytest.mark.parametrize("law", LAWS)
def test_what_comes_after_the_target_is_given_by_name(law):
    kinds = [p.kind for p in inspect.signature(law).parameters.values()]
    positional = kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD)
    assert positional == (5 if law is hc.methods.fdgq else 4)
    assert kinds[positional:] == [inspect.Parameter.KEYWORD_ONLY] * (len(kinds) - positional)
    with pytest.raises(TypeError, match="positional"):
        law(*[None] * (positional + 1))


def test_type_checkers_and_documentation_see_every_public_name():
    """They read the imports that are there for them alone."""
    tree = ast.parse(inspect.getsource(hc))
    (block,) = (x for x in tree.body if isinstance(x, ast.If) and "TYPE_CHECKING" in ast.dump(x))
    seen = {name.asname or name.name for x in ast.walk(block) if isinstance(x, ast.ImportFrom)
            for name in x.names}  # fmt: skip
    assert {x for x in dir(hc) if not x.startswith("_")} <= seen | {"annotations"}


PLANS_AND_SHOWS = {"connect", "motor_map", "inverse_kinematics", "retime", "excitation", "plot_run"}
"""What has the limits of the mechanism by default. What commands or simulates motors has none."""

DESCRIBE = {"Mechanism"}
"""What is given limits to have them."""


def test_limits_have_one_meaning_and_two_defaults():
    found = set()
    for name in public_names():
        given = public(name)
        if not callable(given) or name in DESCRIBE:
            continue
        try:
            limits = inspect.signature(given).parameters.get("limits")
        except ValueError:  # without a signature
            continue
        if limits is None or name.startswith("results."):
            continue
        found.add(name)
        default = "model" if name in PLANS_AND_SHOWS else None
        assert limits.default in (default, inspect.Parameter.empty), name
        text = " ".join(inspect.getdoc(given).split())
        if name not in {"TaskSpaceControl", "Impedance"}:  # "As in `ComputedTorque`."
            assert (
                '``"model"``: those of the mechanism, ``hc.limits_of(mech)``; a `Limits`; None: no'
                in text
            ), name
    assert found >= {*PLANS_AND_SHOWS, "ComputedTorque", "Plant", "export_c", "WithinLimits"}


def test_limits_of_the_mechanism_are_those_of_its_description():
    mech = hc.load(hc.robot_file("four_bar"))
    own, q = hc.limits_of(mech), hc.assemble(mech)[0]
    for law in (
        lambda limits: hc.ComputedTorque(mech, 400.0, 40.0, limits=limits),
        lambda limits: hc.Impedance(
            mech, hc.FrameTask("rocker", "rz", local=True), 400.0, 40.0, limits=limits
        ),
    ):
        assert law("model").limits == own
        assert law(None).limits is None
        with pytest.raises(hc.InputError, match='limits must be "model", None or'):
            law("none")
    low = hc.Limits(effort=0.1)
    for limits, most in (("model", own), (low, low)):
        found = [
            hc.limited_inverse_dynamics(mech, q, np.zeros(mech.nv), [9e4], x).u
            for x in (limits, most, hc.WithinLimits(limits))
        ]
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0], found[2])
    free = hc.limited_inverse_dynamics(mech, q, np.zeros(mech.nv), [9e4], None)
    assert free.saturated == ()
    here = mech.motor_positions(q)
    with pytest.raises(hc.InputError, match='limits="model"'):
        hc.retime(mech, [here, here + 0.1], None)
    with pytest.raises(hc.InputError, match="limits must be"):
        hc.simulate(
            mech, lambda t, q, v: np.zeros(1), q, np.zeros(mech.nv), 0.01,
            plant=hc.Plant(limits="all"),
        )  # fmt: skip


@pytest.fixture(scope="module")
def results():
    """One of each, of the four-bar."""
    mech, part = mechanism("four_bar"), shared_partition("four_bar")
    q, v = closed_states("four_bar")[0]
    return {
        "partition": part,
        "projection": hc.project(mech, q, v, partition=part),
        "orthonormal": hc.project(mech, q, v, "orthonormal", partition=part),
        "terms": hc.terms(mech, q, v, t_stab=0.1),
        "inverse": hc.inverse_dynamics(mech, q, v, [1.0], partition=part),
        "relaxed": hc.methods.inverse_dynamics_relaxed(mech, q, v, [1.0], partition=part),
        "forward": hc.forward_dynamics(mech, q, v, np.zeros(mech.nv), partition=part),
        "open": hc.forward_dynamics(mech, q + 0.1, v, np.zeros(mech.nv), partition=part),
        "impact": hc.impulse(mech, q, np.ones(mech.nv), partition=part),
        "errors": hc.constraint_errors(mech, q + 1e-3, v),
        "modes": hc.assembly_modes(mech, mech.motor_positions(q), tries=5),
        "joined": hc.joined_modes(
            mech, hc.assembly_modes(mech, mech.motor_positions(q), tries=5), steps=5
        ),
        "task": hc.task_terms(
            hc.project(mech, q, v, partition=part), hc.FrameTask("rocker", "rz x", local=True)
        ),
        **designed(),
        "sweep": hc.sweep(math.sqrt, [4.0, -1.0], ThreadPoolExecutor(1)),
        "connected": hc.connect(mech, q, hc.assemble(mech)[0]),
        "sheet": hc.sheet(mech, q),
        "map": hc.motor_map(mech, {"crank": np.linspace(0.0, 0.2, 3)}),
        "run": hc.simulate(mech, lambda t, q, v: np.zeros(1), q, v, 0.002),
    }


def designed():
    """What is designed about the equilibrium of the four-bar."""
    mech = mechanism("four_bar")
    eq = hc.equilibrium(mech, partition=shared_partition("four_bar"))
    lin = hc.linearize(mech, eq.q, u=eq.u, partition=eq.partition)
    return {
        "equilibrium": eq,
        "linear": lin,
        "mode": lin.modes()[0],
        "regulator": hc.lqr(lin, 1.0, 1.0, dt=1e-3),
        "gains": hc.gains_for(lin, 20.0, 1.0, frequency=1e3),
        "trajectory": hc.Trajectory.through(
            mech, np.array([[0.0], [0.2]]) + mech.motor_positions(eq.q), [0.0, 0.5]
        ),
    }


def test_former_names_serve_and_say_the_name_of_now():
    assert RENAMED["PreparedAssembly"] == "ClosedStateEstimator"
    assert {"CompiledLoop", "CompiledTaskLoop", "TaskLoop", "TaskTracking", "snapped"} <= {*RENAMED}
    for former, now in RENAMED.items():
        for _ in range(2):
            with pytest.warns(DeprecationWarning, match=f"holoctl.{now} now"):
                assert getattr(hc, former) is public(now)
        assert former not in hc.__all__


@pytest.mark.parametrize(
    "name", ["Certificate", "Rows", "SweepError", "kinds", "Loop", "by_constraint"]
)
def test_names_that_moved_to_a_module_serve_and_say_where(name):
    places = {"results": hc.results, "protocols": hc.protocols, "methods": hc.methods}
    (place,) = (place for place, module in places.items() if name in module.__all__)
    with pytest.warns(DeprecationWarning, match=rf"holoctl\.{place}\.{name} now"):
        assert getattr(hc, name) is public(f"{place}.{name}")
    assert name not in hc.__all__
    assert len(hc.__all__) <= 114  # 110, the three modules and the version


def test_what_remembers_and_what_measures_print_themselves():
    sensors = hc.Sensors(["left", "right"], noise=(0.0, 1e-3), counts=[4096, 1e4], delay=1e-3)
    assert eval(repr(sensors), {"Sensors": hc.Sensors}) == sensors  # our own
    said = repr(hc.RateFilter(300.0, 1e-3))
    assert said.startswith("<RateFilter: bandwidth 300 rad/s, every 0.001 s; 4.29 ms late")
    assert said.endswith(">")


SENTENCES = {
    "partition": ["<Partition: rank 2, 1 of 3 coordinates independent: 'crank'; condition"],
    "projection": ["<Projection of 'four_bar': 1 motion of 'crank', method 'split', condition"],
    "orthonormal": ["<Projection of 'four_bar': 1 motion, method 'orthonormal', condition number"],
    "terms": ["<Terms of 'four_bar' at t = 0 s: ", "closure error ", "(scaled), stabilised>"],
    "inverse": ["<InverseDynamics: 1 effort up to ", "{u} N m or N, certified>"],
    "relaxed": ["<InverseDynamics: 1 effort up to ", "{u} N m or N, certified>"],
    "forward": ["<ForwardDynamics: 3 accelerations up to {a} rad/s^2 or m/s^2, certified>"],
    "open": ["<ForwardDynamics: 3 accelerations up to ", ", NOT certified (closure, "],
    "impact": ["<Impact: 3 velocities up to {v} rad/s or m/s after it, kinetic energy changed by"],
    "errors": ["<ConstraintErrors: 2 rows, largest error ", " 1/s (scaled), worst 'pin."],
    "joined": ["<JoinedModes of 'four_bar': of 1 pair of modes 0 joined, 1 parted, 0 not known"],
    "modes": ["<AssemblyModes of 'four_bar': 2 modes found from 5 starts: ", "; 0 did not close"],
    "task": ["<TaskTerms: 2 rows of 1 motion, condition number inf>"],
    "equilibrium": ["<Equilibrium of 'four_bar': efforts up to {u} N m or N, 1 held, not stable>"],
    "linear": [
        "<Linearization of 'four_bar': 1 motion, 1 motor, 2 outputs, in continuous time, at an equ"
    ],
    "mode": ["<Mode: diverges by a factor of e in ", " s: 'crank'>"],
    "regulator": ["<StateFeedback of 'four_bar': 1 motion, 1 motor, in ticks of 0.001 s, about a"],
    "gains": [
        "<Gains: bandwidth 20 rad/s (limit 1e+03), damping ratio 1 (1 with sampling and delay); ",
        "1000 Hz>",
    ],
    "trajectory": [
        "<Trajectory of 'four_bar': 0.5 s in 51 nodes, rates up to {v}, efforts up to {u}>"
    ],
    "sweep": ["<Sweep: 2 items, 1 failed: item 1, ValueError: math domain error>"],
    "connected": ["<ConnectedPath of 'four_bar': ", " way-points, smallest singular value "],
    "sheet": ["<SheetSigns: type 2: 'coupler', 'rocker': -1; smallest singular value "],
    "map": ["<MotorMap of 'four_bar': 3 = 3 points over crank: 3 reachable, efforts up to "],
    "run": ["<Run: 3 coordinates and 1 motor over 0.002 s, 3 instants, largest closure error "],
}


@pytest.mark.parametrize("name", SENTENCES)
def test_a_result_prints_a_sentence(results, name):
    result = results[name]
    said, whole = repr(result), "".join(SENTENCES[name])
    sizes = {x: np.abs(getattr(result, x)).max() for x in "uav" if f"{{{x}}}" in whole}
    for part in SENTENCES[name]:
        assert part.format(**{x: f"{size:.3g}" for x, size in sizes.items()}) in said
    assert said.startswith("<")
    assert said.endswith(">")
    assert "\n" not in said
    assert "array" not in said
    assert str(result) == said


def test_closed_states_have_names_and_unpack():
    mech = mechanism("four_bar")
    closed = hc.assemble(mech)
    q, v = closed
    assert q is closed.q is closed[0]
    assert v is closed.v is closed[1]
    assert repr(closed) == "<ClosedState: 3 coordinates, at rest>"
    off = hc.corrected(mech, q + 1e-4, np.ones(mech.nv))
    assert isinstance(off, hc.results.ClosedState)
    assert (
        repr(off)
        == f"<ClosedState: 3 coordinates, rates up to {np.abs(off.v).max():.3g} rad/s or m/s>"
    )
    for state in (closed, off):
        copied = pickle.loads(pickle.dumps(state))
        assert type(copied) is type(state)
        np.testing.assert_array_equal(copied.q, state.q)
    found = hc.inverse_kinematics(
        mech, [(hc.PostureTask("motors"), mech.motor_positions(q))], a=[1.0]
    )
    assert isinstance(found, hc.results.ClosedMotion)
    q, v, a = found
    assert a is found.a
    said = f"at rest, accelerations up to {np.abs(a).max():.3g} rad/s^2 or m/s^2>"
    assert repr(found) == f"<ClosedMotion: 3 coordinates, {said}"
    eq = hc.equilibrium(mech)
    q, v, u = eq
    assert (q is eq.q, v is eq.v, u is eq.u) == (True, True, True)


TABLES = {
    "mechanism": ["four_bar", "crank", "pin (2 rows)"],
    "report": ["four_bar", "1 of 3 coordinates", "1 motor: fully actuated", "in sentences"],
    "certificate": ["certified", "closure", "1e-06", "rank"],
    "off": ["NOT certified (power)", "The power balance fails"],
    "batch": ["BatchCertificate of 2 states", "closure", "1.0e-03"],
    "run": ["Run: 3 coordinates", "kinetic energy", "time of the controller"],
    "linear": ["Linearization", "crank", "diverges"],
}


@pytest.fixture(scope="module")
def shown(results):
    """What a notebook shows as a table."""
    certificate = results["inverse"].certificate
    zero = np.zeros(2)
    return {
        "mechanism": mechanism("four_bar"),
        "report": hc.mobility(mechanism("four_bar")),
        "certificate": certificate,
        "off": dataclasses.replace(certificate, power=math.nan),
        "batch": hc.results.BatchCertificate(np.array([0.0, 1e-3]), zero, zero, zero, zero),
        "run": results["run"],
        "linear": results["linear"],
    }


def table(value):
    """What a notebook shows, as it asks for it; well-formed."""
    page = getattr(value, "_repr_html_")()  # noqa: B009
    ElementTree.fromstring(page)
    return unescape(page)


@pytest.mark.parametrize("name", TABLES)
def test_a_notebook_shows_a_table(shown, name):
    page = table(shown[name])
    for said in TABLES[name]:
        assert said in page


@pytest.mark.filterwarnings("error")
def test_a_table_is_escaped_and_never_an_error(shown):
    nasty = dataclasses.replace(shown["mechanism"], name="<b>&'</b>")
    assert "<b>&" in table(nasty)
    for name, wrong in (
        ("certificate", {"closure": None}),
        ("run", {"t": None}),
        ("run", {"energy": {}}),
        ("run", {"tick_time": np.full_like(shown["run"].tick_time, np.nan)}),
        ("report", {"counts": None}),
        ("batch", {"tolerance": None}),
        ("linear", {"A": np.full((2, 2), np.nan)}),
    ):
        assert table(dataclasses.replace(shown[name], **wrong))
    run = shown["run"]
    none = {f: getattr(run, f)[:0] for f in ("t", "q", "v", "u", "closure", "tick_time")}
    assert "no time" in table(dataclasses.replace(run, **none))


@pytest.mark.parametrize("name", SENTENCES)
def test_a_result_is_one_of_its_kind_and_survives_a_pickle(results, name):
    result = results[name]
    copied = pickle.loads(pickle.dumps(result))
    assert result == result  # noqa: PLR0124
    assert copied != result
    assert repr(copied) == repr(result)
    for field in dataclasses.fields(result):
        mine, other = getattr(result, field.name), getattr(copied, field.name)
        if isinstance(mine, np.ndarray):
            np.testing.assert_array_equal(mine, other)


PUBLIC_CLASSES = [n for n in public_names() if inspect.isclass(public(n))]


@pytest.mark.parametrize("name", PUBLIC_CLASSES)
def test_help_shows_no_comment_of_somebody_else(name):
    """Where a method has no docstring, pydoc takes the comment above its wrapper."""
    shown = public(name)
    for method, given in vars(shown).items():
        if inspect.isfunction(given) and not method.startswith("__subclass"):
            assert not pydoc.getdoc(given).startswith("#"), method


FROZEN = ["partition", "projection", "orthonormal", "terms", "equilibrium", "linear", "regulator",
          "gains", "trajectory", "map", "modes"]  # fmt: skip
"""What later calls read: a number that is changed in one would be another state, silently."""


def arrays_of(value, depth=3):
    for f in dataclasses.fields(value):
        x = None if f.name.startswith("_") else getattr(value, f.name)
        if isinstance(x, np.ndarray):
            yield f.name, x
        elif dataclasses.is_dataclass(x) and type(x) is not hc.Mechanism and depth:
            yield from ((f"{f.name}.{n}", y) for n, y in arrays_of(x, depth - 1))


@pytest.mark.parametrize("name", FROZEN)
def test_arrays_that_later_calls_read_cannot_be_written_to(results, name):
    for value in (results[name], pickle.loads(pickle.dumps(results[name]))):
        assert not [n for n, x in arrays_of(value) if x.flags.writeable]
        for axis in getattr(value, "axes", ()):
            assert not axis.values.flags.writeable
        for mode in value.modes if name == "modes" else ():
            assert not mode.q.flags.writeable
    terms = getattr(results[name], "terms", results[name])
    for what in ("M", "h", "F_v", "scaled", "sizes") if isinstance(terms, hc.results.Terms) else ():
        assert not getattr(terms, what).flags.writeable, what


def test_a_projection_leaves_what_it_was_given_as_it_was():
    mech, part = mechanism("four_bar"), shared_partition("four_bar")
    q, v = (x.copy() for x in closed_states("four_bar")[0])
    P = hc.project(mech, q, v, partition=part)
    q[0], v[0] = q[0] + 1.0, v[0] + 1.0  # the caller's own
    assert P.q[0] != q[0]
    with pytest.raises(ValueError, match="read-only"):
        P.gamma[0] = 1.0
