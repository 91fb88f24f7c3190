"""Constraints of one's own: the same answer on every path, or the same refusal."""

from __future__ import annotations

import ast
import contextlib
import copy
import dataclasses
import importlib.util
import io
import pickle
import re
import sys
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from support import difference, mechanism, relative
from zoo import ZOO

import holoctl as hc
from holoctl import protocols
from holoctl.constraints import user_constraints, wrench_rows
from holoctl.protocols import kinds

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "write_your_own.py"
ANY = {"closure_limit": None, "velocity_limit": None}
CASADI = importlib.util.find_spec("casadi") is not None


@pytest.fixture(scope="module")
def example():
    """The example, run."""
    spec = importlib.util.spec_from_file_location("write_your_own", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["write_your_own"] = module  # dataclasses look themselves up
    with contextlib.redirect_stdout(io.StringIO()):
        spec.loader.exec_module(module)
    return module


def test_the_example_needs_public_names_only():
    tree = ast.parse(EXAMPLE.read_text(encoding="utf-8"))
    imported = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
    named = {a.name for n in imported if isinstance(n, ast.Import) for a in n.names}
    assert named <= {"holoctl", "numpy", "pinocchio", "casadi"}
    assert {n.module for n in imported if isinstance(n, ast.ImportFrom)} <= {
        "collections.abc", "dataclasses", "holoctl.protocols", "typing",
    }  # fmt: skip
    used = {n.attr for n in ast.walk(tree)
            if isinstance(n, ast.Attribute) and ast.unparse(n.value) == "hc"}  # fmt: skip
    assert used <= set(hc.__all__)
    taken = {a.name for n in imported if isinstance(n, ast.ImportFrom) for a in n.names
             if n.module == "holoctl.protocols"}  # fmt: skip
    assert taken <= set(hc.protocols.__all__)
    assert {"kinds", "wrench_rows", "resolve_frame", "Rows", "Kinematics", "LiveMotion"} <= taken


class Asked:
    """How often rows were evaluated by the general way."""

    count = 0


def counted(bound, asked):
    """The same bound rows, which count how often they are asked; what they offer stays theirs."""
    rows = type(bound).rows

    def counting(self, kin):
        asked.count += 1
        return rows(self, kin)

    given = {k: v for k, v in vars(type(bound)).items() if k in ("tick", "expression", "linear")}
    cls = type("Counted", (type(bound),), {"rows": counting, **given})
    return cls(**{f.name: getattr(bound, f.name) for f in dataclasses.fields(bound)})


@dataclasses.dataclass(frozen=True)
class Bound:
    """Any bound rows, as a constraint."""

    make: object
    name: str = "own"
    t_stab: float | None = None

    @property
    def default_name(self):
        return self.name

    def bind(self, model, name, reference):
        return self.make(model, name, reference)


def variant(example, **methods):
    """The nut on the screw, with other methods; None takes one away."""
    cls = type("Other", (example.BoundScrew,), methods)

    def make(model, name, reference):
        bound = example.Screw("carriage", "spindle", 0.02, 0.01).bind(model, name, reference)
        return cls(**{f.name: getattr(bound, f.name) for f in dataclasses.fields(bound)})

    return dataclasses.replace(example.own, constraints=[Bound(make)])


def states(mech, count=4):
    """Closed states, and others well off the manifold."""
    rng = np.random.default_rng(3)
    for i in range(count):
        q, v = hc.assemble(mech, 0.5 * rng.normal(size=mech.nq), rng.normal(size=mech.nv))
        yield (
            (q, v) if i % 2 else (q + 0.05 * rng.normal(size=mech.nv), v + rng.normal(size=mech.nv))
        )


@pytest.mark.parametrize("which", ["own", "drum"])
def test_it_is_exact_on_every_path(example, which):
    mech = getattr(example, which)
    part = hc.partition(mech, hc.assemble(mech)[0])
    prepared = hc.PreparedInverseDynamics(mech, part, **ANY)
    forward = hc.PreparedForwardDynamics(mech, part)
    assert not prepared.general
    compiled = CASADI and hc.compile(
        mech,
        ["inverse_dynamics", "forward_dynamics", "terms"],
        partition=part,
        flags=["-O0"],
        **ANY,
    )
    for q, v in states(mech):
        target = np.linspace(1.0, 2.0, mech.nu)
        result = hc.inverse_dynamics(mech, q, v, target, partition=part)
        assert np.abs(result.u).max() > 1e-3
        assert relative(prepared.torque(q, v, target), result.u) < 1e-10
        tau = mech.B @ result.u
        a = hc.forward_dynamics(mech, q, v, tau, partition=part).a
        assert relative(forward.acceleration(q, v, tau), a) < 1e-9
        T = hc.terms(mech, q, v)
        rate = difference(lambda s: hc.terms(mech, q + s * v, v).error, 1e-3)  # noqa: B023
        drift = difference(lambda s: hc.terms(mech, q + s * v, v).rate, 1e-3)  # noqa: B023
        assert np.abs(rate - T.rate).max() < 1e-8
        assert np.abs(drift - T.drift).max() < 1e-7 * (1.0 + np.abs(T.drift).max())
        assert np.abs(T.drift).max() > 1e-4
        if compiled:
            assert relative(compiled.inverse_dynamics(q, v, target), result.u) < 1e-10
            assert relative(compiled.forward_dynamics(q, v, tau), a) < 1e-9
            found = compiled.terms(q, v)
            for what in ("error", "rate", "jacobian", "drift"):
                assert np.abs(getattr(found, what) - getattr(T, what)).max() < 1e-12
    assert not compiled or compiled.fallbacks == 0


@pytest.mark.skipif(not CASADI, reason="the extra holoctl[codegen] is not installed")
@pytest.mark.parametrize("which", ["own", "drum"])
def test_it_is_exact_in_exported_c(example, which, tmp_path):
    compilers = pytest.importorskip("exported")
    if not compilers.compilers():
        pytest.skip("no C compiler")
    mech = getattr(example, which)
    part = hc.partition(mech, hc.assemble(mech)[0])
    made = compilers.Exported(mech, tmp_path, name=which, partition=part, **ANY)
    for q, v in states(mech):
        target = np.linspace(1.0, 2.0, mech.nu)
        u = hc.inverse_dynamics(mech, q, v, target, partition=part).u
        status, found = made.call("inverse_dynamics", q, v, target)
        assert status == "OK"
        assert relative(found, u) < 1e-10


def test_a_tick_takes_the_place_of_rows_in_a_loop(example):
    asked, (q, v) = Asked(), hc.assemble(example.own, v_guess=np.ones(3))
    mech = dataclasses.replace(example.own, constraints=[Bound(
        lambda model, name, reference: counted(
            example.Screw("carriage", "spindle", 0.02, 0.01).bind(model, name, reference), asked
        )
    )])  # fmt: skip
    for law in (hc.PreparedInverseDynamics(mech), hc.PreparedForwardDynamics(mech)):
        call = law.torque if isinstance(law, hc.PreparedInverseDynamics) else law.acceleration
        given = np.ones(mech.nu if isinstance(law, hc.PreparedInverseDynamics) else mech.nv)
        call(q, v, given)
        before = asked.count
        for _ in range(5):
            call(q, v, given)
        assert asked.count == before


def test_without_a_tick_the_rows_are_asked(example):
    """Also where a subclass has rows of its own, which the tick need not be of."""

    def rows(self, kin):
        r = example.BoundScrew.rows(self, kin)
        return dataclasses.replace(r, error=2.0 * r.error, rate=2.0 * r.rate,
                                   jacobian=2.0 * r.jacobian, drift=2.0 * r.drift)  # fmt: skip

    for mech in (variant(example, tick=None), variant(example, rows=rows)):
        part = hc.partition(mech, hc.assemble(mech)[0])
        prepared = hc.PreparedInverseDynamics(mech, part, **ANY)
        assert not prepared.general
        for q, v in states(mech):
            u = hc.inverse_dynamics(mech, q, v, [1.0], partition=part).u
            assert relative(prepared.torque(q, v, [1.0]), u) < 1e-10


@pytest.mark.skipif(not CASADI, reason="the extra holoctl[codegen] is not installed")
@pytest.mark.parametrize("methods", [{"expression": None}, {"rows": lambda self, kin: None}])
def test_without_an_expression_it_is_refused_by_name(example, methods, tmp_path):
    if "rows" in methods:  # rows of its own, the same in this case
        methods = {"rows": lambda self, kin: example.BoundScrew.rows(self, kin)}
    mech = variant(example, **methods)
    for call in (lambda: hc.compile(mech), lambda: hc.export_c(mech, tmp_path / "c")):
        with pytest.raises(hc.InputError, match=r"'own' cannot be compiled: rows of a Other"):
            call()
    assert not (tmp_path / "c").exists()


def wrong_tick(what, factor=1.1):
    def tick(self, motion, rows):
        evaluate = type(self).__mro__[1].tick(self, motion, rows)

        def off(q, v, t):
            evaluate(q, v, t)
            getattr(rows, what)[:] *= factor

        return off

    return tick


@pytest.mark.parametrize("what", ["error", "rate", "jacobian", "drift"])
@pytest.mark.parametrize("factor", [1.1, np.nan])
def test_a_tick_that_is_not_its_rows_is_refused(example, what, factor):
    mech = variant(example, tick=wrong_tick(what, factor))
    for make in (hc.PreparedInverseDynamics, hc.PreparedForwardDynamics):
        with pytest.raises(
            hc.InputError, match=rf"tick of constraint 'own'.*{what} of row 'own.nut'"
        ):
            make(mech)


def test_a_tick_that_says_it_is_linear_and_is_not_is_refused(example):
    with pytest.raises(hc.InputError, match="tick of constraint 'own'"):
        hc.PreparedInverseDynamics(variant(example, linear=True))


@pytest.mark.skipif(not CASADI, reason="the extra holoctl[codegen] is not installed")
def test_an_expression_that_is_not_its_rows_is_refused(example):
    base = example.BoundScrew.expression
    wrong = {
        "is not its phi": lambda self, q, t, place: 1.1 * base(self, q, t, place),
        "casadi.SX of 1 entries; got float": lambda self, q, t, place: 1.0,
        "casadi.SX of 1 entries; got": lambda self, q, t, place: q,
    }
    for words, expression in wrong.items():
        with pytest.raises(hc.InputError, match=words):
            hc.compile(variant(example, expression=expression))


@pytest.mark.skipif(not CASADI, reason="the extra holoctl[codegen] is not installed")
def test_an_expression_may_ask_where_frames_are(example):
    """The peg once more, as an expression of the places of its frames, against its rows as data."""

    def expression(self, q, t, place):
        R, p1 = place(self.frames1[0])
        _, p2 = place(self.frames2[0])
        d = R.T @ (p2 - p1)
        return (d[0] ** 2 + d[1] ** 2 - 0.15**2) / 0.3

    cls = type("Placed", (wrench_rows.WrenchRows,), {
        "expression": expression, "rows": lambda self, kin: wrench_rows.WrenchRows.rows(self, kin),
    })  # fmt: skip

    def make(model, name, reference):
        table = example.Peg("first", "tip", 0.15).bind(model, name, reference)
        return cls(**{f.name: getattr(table, f.name) for f in dataclasses.fields(table)})

    mech = dataclasses.replace(example.drum, constraints=[Bound(make)])
    f = hc.compile(mech, ["inverse_dynamics"], flags=["-O0"], **ANY)
    part = hc.partition(example.drum, hc.assemble(example.drum)[0])
    for q, v in states(example.drum):
        u = hc.inverse_dynamics(example.drum, q, v, np.ones(2), partition=part).u
        assert relative(f.inverse_dynamics(q, v, np.ones(2)), u) < 1e-10
    assert f.fallbacks == 0


# ---------------------------------------------------------------------- kinds nobody knows yet


@dataclasses.dataclass(frozen=True)
class Reversed:
    """A sort of rows that was not there: linear ones of opposite sign."""

    point: bool = True


@pytest.fixture
def reversed_rows(monkeypatch):
    """The five-bar, its loop held by rows of a sort that only the general evaluation knows."""

    def evaluate(table, geometry, i):
        d = geometry.p[1, table.pair[i]] - geometry.p[0, table.pair[i]]
        R, pdot = geometry.R[0, table.pair[i]], geometry.pdot[1, table.pair[i]]
        n = (R @ table.a[i][:, :, None])[:, :, 0]
        ndot = np.cross(geometry.omega[0, table.pair[i]], n)
        s = geometry.p[1, table.pair[i]]
        w = np.hstack([n, np.cross(s, n)])
        wdot = np.hstack([ndot, np.cross(pdot, n) + np.cross(s, ndot)])
        return -(n * d).sum(axis=1), -w, -wdot, np.zeros(len(i))

    monkeypatch.setitem(wrench_rows.EVALUATIONS, Reversed, evaluate)
    base = mechanism("five_bar")
    loop = base.constraints[0]

    def make(model, name, reference):
        table = loop.bind(model, name, reference)
        return dataclasses.replace(
            table,
            kinds=tuple(Reversed() if k == kinds.LINEAR else k for k in table.kinds),
        )

    return base, dataclasses.replace(base, constraints=[Bound(make, loop.default_name)])


def test_a_sort_that_a_path_does_not_know_goes_the_general_way_or_is_refused(
    reversed_rows, tmp_path
):
    base, mech = reversed_rows
    rng = np.random.default_rng(0)
    part = hc.partition(base, hc.assemble(base)[0])
    part_of_own = hc.partition(mech, hc.assemble(mech)[0])
    prepared, forward = (
        law(mech, part_of_own) for law in (hc.PreparedInverseDynamics, hc.PreparedForwardDynamics)
    )
    assert not prepared.general
    for _ in range(3):
        q, v = hc.assemble(base, base.reference + 0.1 * rng.normal(size=4), rng.normal(size=4))
        target, tau = rng.normal(size=2), rng.normal(size=4)
        expected = hc.inverse_dynamics(base, q, v, target, partition=part)
        found = hc.inverse_dynamics(mech, q, v, target, partition=part_of_own)
        assert found.certificate.ok
        assert relative(found.u, expected.u) < 1e-9
        assert relative(prepared.torque(q, v, target), expected.u) < 1e-9
        a = hc.forward_dynamics(base, q, v, tau, partition=part).a
        assert relative(forward.acceleration(q, v, tau), a) < 1e-9
        here, there = (hc.constraint_wrenches(m, q, r.multipliers)
                       for m, r in ((base, expected), (mech, found)))  # fmt: skip
        for one, other in zip(here.values(), there.values(), strict=True):
            assert relative(other[1].force, one[1].force) < 1e-8
    with pytest.raises(hc.InputError, match="proximal"):
        hc.forward_dynamics(mech, q, v, tau, method="proximal")
    direct = hc.forward_dynamics(mech, q, v, tau, partition=part_of_own, method="direct").a
    assert relative(direct, a) < 1e-9
    assert hc.mobility(mech).generic_rank == hc.mobility(base).generic_rank
    if CASADI:
        for call in (lambda: hc.compile(mech), lambda: hc.export_c(mech, tmp_path / "c")):
            with pytest.raises(hc.InputError, match=r"cannot be compiled: .*sort Reversed"):
                call()


@pytest.mark.parametrize("wrong", ["gradient", "curvature", "count"])
def test_a_kind_with_derivatives_that_are_not_its_own_is_refused(example, wrong):
    right = example.ON_CYLINDER
    change = {
        "gradient": {"gradient": lambda x, r: (x[0] / r, 1.01 * x[1] / r)},
        "curvature": {"curvature": lambda x, xdot, r: -right.curvature(x, xdot, r)},
        "count": {"gradient": lambda x, r: (x[0] / r,)},
    }[wrong]
    kind = dataclasses.replace(right, **change)

    def make(model, name, reference):
        a, b = (protocols.resolve_frame(model, f, "own") for f in ("first", "tip"))
        return protocols.wrench_rows(model, a, b, [kinds.Row(kind, "r", size=0.15)], name)

    with pytest.raises(hc.InputError, match=r"'own': row 'r': .*(gradient|curvature)"):
        dataclasses.replace(example.drum, constraints=[Bound(make)])


def test_a_composed_row_is_made_of_rows_along_vectors():
    for parts in ((), (kinds.orientation("x", 0),)):
        with pytest.raises(hc.InputError, match="rows along vectors"):
            kinds.Composed(parts, *[lambda *x: 0.0] * 4)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1j, None])
@pytest.mark.parametrize("which", ["value", "gradient", "curvature", "guard"])
@pytest.mark.parametrize("analytic", [False, True])
def test_functions_of_a_kind_give_finite_numbers(example, which, bad, analytic):
    found = (bad, bad) if which == "gradient" else bad
    kind = dataclasses.replace(example.ON_CYLINDER, analytic=analytic, **{which: lambda *x: found})

    def make(model, name, reference):
        a, b = (protocols.resolve_frame(model, f, "own") for f in ("first", "tip"))
        return protocols.wrench_rows(model, a, b, [kinds.Row(kind, "r", size=0.15)], name)

    with pytest.raises(hc.InputError, match="'own': row 'r'"):
        dataclasses.replace(example.drum, constraints=[Bound(make)])


def test_a_kind_with_dwells_is_checked_whatever_it_says(example):
    """`analytic` is about rows that vanish, not about whose kind it is."""
    kind = dataclasses.replace(example.ON_CYLINDER, analytic=True)
    row = kinds.Row(kind, "r", size=0.15)

    def make(model, name, reference):
        a, b = (protocols.resolve_frame(model, f, "own") for f in ("first", "tip"))
        return protocols.wrench_rows(model, a, b, [row], name)

    mech = dataclasses.replace(example.drum, constraints=[Bound(make)])
    assert user_constraints.is_own(mech.bound[0])
    assert not user_constraints.is_own(mechanism("screw_chain").bound[0])


def test_rows_have_names_of_their_own(example):
    def twice(model, name, reference):
        a, b = (protocols.resolve_frame(model, f, "own") for f in ("first", "tip"))
        return protocols.wrench_rows(model, a, b, 2 * [kinds.linear("x", (1.0, 0.0, 0.0))], name)

    with pytest.raises(hc.InputError, match="labels of rows must differ"):
        dataclasses.replace(example.drum, constraints=[Bound(twice)])
    assert "labels must be a tuple" in told(example, __getattribute__=relabelled("other.nut"))


def relabelled(label):
    def get(self, name):
        return (label,) if name == "labels" else object.__getattribute__(self, name)

    return get


def test_no_stabilisation_is_said_false(example):
    """And a tick is as fast as without."""
    constraint = dataclasses.replace(example.own.constraints[0], t_stab=False)
    mech = dataclasses.replace(example.own, constraints=[constraint])
    assert not mech.stabilised
    assert not hc.PreparedInverseDynamics(mech).general


def test_rows_that_are_not_finite_everywhere_may_have_a_tick(example):
    """As those that raise there: such states are left out."""

    def rows(self, kin):
        r = example.BoundScrew.rows(self, kin)
        inside = abs(kin.q[0]) < 0.3
        return r if inside else dataclasses.replace(r, error=r.error * np.nan)

    def tick(self, motion, rows):
        return example.BoundScrew.tick(self, motion, rows)

    mech = variant(example, rows=rows, tick=tick)
    q, v = np.zeros(3), np.zeros(3)
    part = hc.partition(mech, q)
    u = hc.inverse_dynamics(mech, q, v, [1.0], partition=part).u
    assert relative(hc.PreparedInverseDynamics(mech, part).torque(q, v, [1.0]), u) < 1e-10


def test_copies_share_nothing_that_changes():
    mech = mechanism("geared_slider")
    deep = copy.deepcopy(mech)
    assert all(a is not b for a, b in zip(deep.constraints, mech.constraints, strict=True))


# ------------------------------------------------------------- what a class says of itself


def told(example, **methods):
    """What the door says of the nut on the screw, with other methods or attributes."""
    with pytest.raises(hc.InputError, match="'own'") as error:
        variant(example, **methods)
    return str(error.value)


def with_rows(example, **change):
    """`rows` with some of what they return changed, by functions of what it was and of kin."""

    def rows(self, kin):
        r = example.BoundScrew.rows(self, kin)
        return dataclasses.replace(r, **{k: f(getattr(r, k), kin) for k, f in change.items()})

    return rows


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"drift": lambda x, kin: 0.0 * x}, "drift of row 'own.nut' is 0 at"),
        ({"drift": lambda x, kin: 1.01 * x}, "drift of row 'own.nut'.*by differences"),
        ({"rate": lambda x, kin: x + 0.1}, "rate of row 'own.nut'.*by differences"),
        ({"rate": lambda x, kin: x + 0.1 * kin.v[0] ** 2}, "jacobian @ v"),
        ({"error": lambda x, kin: x + 0.1 * kin.t**2}, "rate of row 'own.nut'.*by differences"),
        ({"error": lambda x, kin: x + 0.1 * max(kin.t - 1.0, 0.0) ** 2}, "rate of row"),
        ({"jacobian": lambda x, kin: x[0]}, r"jacobian of shape \(1, 3\)"),
        ({"error": lambda x, kin: x[0]}, r"error of shape \(1,\)"),
        ({"error": lambda x, kin: "much"}, r"error of shape \(1,\), numbers"),
        ({"drift": lambda x, kin: np.full(1, np.nan)}, "could not be evaluated.*not finite"),
    ],
)
def test_rows_that_contradict_themselves_are_refused(example, change, words):
    assert re.search(words, told(example, rows=with_rows(example, **change)), flags=re.DOTALL)


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        ({"labels": ["own.nut"]}, "labels must be a tuple of names"),
        ({"labels": "own.nut"}, "labels must be a tuple of names"),
        ({"labels": ("a", "a")}, "labels must be a tuple of names"),
        ({"support": np.zeros((1, 3), dtype=bool)}, "row 'own.nut' depends on 'spindle'"),
        ({"support": np.ones((1, 2), dtype=bool)}, r"support must be a bool array of shape \(1, 3"),
        ({"anchors": None}, "anchors must be a tuple of frames"),
        ({"scale": lambda self, length, columns: 0.0 * length}, "numbers above zero"),
        ({"scale": lambda self, length, columns: -length}, "numbers above zero"),
        ({"scale": lambda self, length, columns: 1.0}, "1 numbers above zero"),
        ({"rows": lambda self, kin: 1 // 0}, "could not be evaluated.*ZeroDivisionError"),
        ({"rows": lambda self, kin: None}, r"error of shape \(1,\)"),
    ],
)
def test_what_is_no_bound_rows_is_refused(example, methods, words):
    class Told(example.BoundScrew):
        def __getattribute__(self, name):
            found = methods.get(name)
            if found is None and name not in methods:
                return super().__getattribute__(name)
            return found.__get__(self) if callable(found) else found

    def make(model, name, reference):
        bound = example.Screw("carriage", "spindle", 0.02, 0.01).bind(model, name, reference)
        return Told(**{f.name: getattr(bound, f.name) for f in dataclasses.fields(bound)})

    with pytest.raises(hc.InputError, match=f"'own'.*{words}"):
        dataclasses.replace(example.own, constraints=[Bound(make)])


@pytest.mark.parametrize("t_stab", [-0.1, np.nan, "a", np.ones(2)])
def test_a_time_constant_of_ones_own_is_checked(example, t_stab):
    constraint = dataclasses.replace(example.own.constraints[0], t_stab=t_stab)
    with pytest.raises(hc.InputError, match="t_stab of constraint 'carriage-spindle'"):
        dataclasses.replace(example.own, constraints=[constraint])


def test_a_name_is_its_own_default(example):
    class Named(Bound):
        default_name = "other"

    with pytest.raises(hc.InputError, match="default_name"):
        dataclasses.replace(example.own, constraints=[Named(None, "own")])


def test_bind_returns_bound_rows(example):
    with pytest.raises(hc.InputError, match=r"'own': bind must return bound rows.*NoneType"):
        dataclasses.replace(example.own, constraints=[Bound(lambda *x: None)])


def test_numbers_of_other_types_are_taken_as_floats(example):
    """An error of integers would cut off what is added to it."""

    def rows(self, kin):
        r = example.BoundScrew.rows(self, kin)
        return dataclasses.replace(r, jacobian=r.jacobian.astype(np.float32).tolist())

    mech = variant(example, rows=rows)
    assert hc.terms(mech, np.zeros(3), np.zeros(3)).jacobian.dtype == float


def test_what_a_function_returns_is_nobody_elses(example):
    """Writing into terms changed the mechanism, where one coupling was all there is."""
    base = mechanism("geared_slider")
    gear = hc.Coupling({"wheel": 1.0, "crank": -2.0}, offset=0.1)
    for mech in (dataclasses.replace(base, constraints=[gear]), example.own):
        q = np.zeros(mech.nq)
        T = hc.terms(mech, q, np.zeros(mech.nv))
        before = T.jacobian.copy()
        with pytest.raises(ValueError, match="read-only"):
            T.jacobian[:] = 7.0
        mech.bound[0].rows(T.kinematics).jacobian[:] = 7.0  # what a function itself returns
        np.testing.assert_array_equal(hc.terms(mech, q, np.zeros(mech.nv)).jacobian, before)


def test_rows_cannot_change_the_state_that_they_look_at(example):
    def rows(self, kin):
        kin.q[0] = np.remainder(kin.q[0], 2.0 * np.pi)
        return example.BoundScrew.rows(self, kin)

    assert "read-only" in told(example, rows=rows)


def test_layouts_cannot_be_written_to():
    mech = mechanism("geared_slider")
    arrays = [*mech.lengths, *(b.where for b in mech.blocks)]
    for block in mech.blocks:
        arrays += [x for x in vars(block.rows).values() if isinstance(x, np.ndarray)
                   and x.base is None and x.dtype != bool]  # fmt: skip
    assert len(arrays) > 6
    assert [x for x in arrays if x.flags.writeable] == []
    frame = mech.blocks[0].table.frames1[0]
    with pytest.raises(hc.InputError, match="does not change"):
        frame.placement.translation = np.ones(3)


class HalfTooLong(hc.Coupling):
    """A gear with rows of its own, to be pickled."""

    def bind(self, model, name, reference):
        bound = super().bind(model, name, reference)
        return dataclasses.replace(bound, offset=1.5 * bound.offset)


def test_a_class_made_from_a_coupling_stays_one():
    base = mechanism("geared_slider")
    gear = HalfTooLong({"wheel": 1.0, "crank": -2.0}, offset=0.1)
    mech = dataclasses.replace(base, constraints=[gear])
    q = hc.assemble(mech)[0]
    for again in (pickle.loads(pickle.dumps(mech)), copy.deepcopy(mech), copy.copy(mech)):
        assert type(again.constraints[0]) is HalfTooLong
        np.testing.assert_array_equal(hc.assemble(again)[0], q)


def test_a_tick_that_leaves_something_behind_is_refused(example):
    def tick(self, motion, rows):
        evaluate = example.BoundScrew.tick(self, motion, rows)

        def stale(q, v, t):
            before = rows.jacobian.copy()
            evaluate(q, v, t)
            if q[0] < 0.0:
                rows.jacobian[:] = before

        return stale

    with pytest.raises(hc.InputError, match="tick of constraint 'own'"):
        hc.PreparedInverseDynamics(variant(example, tick=tick))


@pytest.mark.parametrize("tick", [7, lambda self, motion, rows: None, lambda *x: 1 // 0])
def test_a_tick_that_is_none_says_so(example, tick):
    with pytest.raises(hc.InputError, match="tick of constraint 'own' raised"):
        hc.PreparedInverseDynamics(variant(example, tick=tick))


@pytest.mark.skipif(not CASADI, reason="the extra holoctl[codegen] is not installed")
def test_an_expression_that_raises_says_so(example):
    def branch(self, q, t, place):
        return q[0] if q[0] > 0 else q[1]

    for expression in (branch, lambda self, q, t, place: place("spindle")):
        with pytest.raises(hc.InputError, match="expression of constraint 'own' raised"):
            hc.compile(variant(example, expression=expression))


@pytest.mark.parametrize("component", [-1, 3, 0.5])
def test_an_orientation_has_three_components(component):
    with pytest.raises(hc.InputError, match="component must be 0, 1 or 2"):
        kinds.orientation("rx", component)


def test_rows_have_numbers_that_mean_something():
    for make in (
        lambda: kinds.linear("x", (0.0, 0.0, 0.0)),
        lambda: kinds.linear("x", (np.nan, 0.0, 0.0)),
        lambda: kinds.direction("x", (1.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
        lambda: kinds.rod("x", 0.0),
        lambda: kinds.rod("x", np.nan),
        lambda: kinds.screw("x", None),
        lambda: kinds.screw("x", 0.0),
        lambda: kinds.linear("x", 5),
        lambda: kinds.linear("x", (1, 2)),
        lambda: kinds.direction("x", (1, 0, 0), None),
        lambda: kinds.Composed(7, None, None, None, None),
    ):
        with pytest.raises(hc.InputError):
            make()
    table = mechanism("five_bar").blocks[0].table
    a, b = table.frames1[0], table.frames2[0]
    for rows in ([], ["x"], [kinds.LINEAR]):
        with pytest.raises(hc.InputError, match=r"values that hc\.protocols\.kinds makes"):
            protocols.wrench_rows(mechanism("five_bar").model, a, b, rows, "own")


def dwelling(example):
    """A row that is zero in a region, and off elsewhere: a cam with a dwell."""

    def beyond(x, r):
        return max(x - r, 0.0)

    kind = kinds.Composed(
        (kinds.linear("x", (1.0, 0.0, 0.0)),),
        value=lambda x, r, atan2, floor: beyond(x[0], r) ** 3,
        gradient=lambda x, r: (3.0 * beyond(x[0], r) ** 2,),
        curvature=lambda x, xdot, r: 6.0 * beyond(x[0], r) * xdot[0] ** 2,
        guard=lambda x: 0.0,
    )

    def make(model, name, reference):
        a, b = (protocols.resolve_frame(model, f, "own") for f in ("universe", "carriage"))
        side = pin.SE3(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]), np.zeros(3))
        a = protocols.Frame(a.joint, side, "universe")  # x up
        return protocols.wrench_rows(model, a, b, [kinds.Row(kind, "stop", size=3.0)], name)

    return dataclasses.replace(
        example.own, constraints=[example.own.constraints[0], Bound(make, "dwell")]
    )


def test_a_row_that_dwells_is_judged_all_the_same(example):
    """It is zero near the reference, and need not be zero always."""
    mech = dwelling(example)
    q = np.array([0.0, 0.0, 0.3])
    prepared = hc.PreparedInverseDynamics(mech, hc.partition(mech, q))
    far = np.array([5.0 / 0.02, 5.0, 0.3])
    far[1] = 0.02 * far[0] + 0.01 * np.sin(far[0])  # the nut is where it is to be
    assert hc.terms(mech, far, np.zeros(3)).error[1] > 1.0
    with pytest.raises(hc.InconsistentError, match="open"):
        prepared.torque(far, np.zeros(3), [1.0])


def test_a_screw_with_opposite_axes_is_refused_like_one_beside():
    """Where there is no angle the formula divides by zero."""
    base = mechanism("screw_chain")
    c = base.constraints[0]
    flip = pin.SE3(np.diag([1.0, -1.0, -1.0]), np.zeros(3))
    b = c.b if isinstance(c.b, tuple) else (c.b, pin.SE3.Identity())
    for turn in (flip, flip * pin.SE3(pin.utils.rotate("x", 1e-8), np.zeros(3))):
        mech = dataclasses.replace(
            base, constraints=[dataclasses.replace(c, b=(b[0], b[1] * turn), name="flipped")]
        )
        q = hc.assemble(base)[0]
        try:
            hc.mobility(mech, q)
            hc.terms(mech, q, np.ones(mech.nv))
        except hc.HoloctlError:
            pass


def test_the_zoo_has_every_kind():
    found = {
        kind for name in ZOO for b in mechanism(name).blocks if b.table for kind in b.table.kinds
    }
    assert {kinds.LINEAR, kinds.SLOT, kinds.DIRECTION, kinds.ROD, kinds.ORIENTATION,
            kinds.SCREW} <= found  # fmt: skip
    assert pin.__version__
