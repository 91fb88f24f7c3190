"""Explicit charts: as fdgq has them, with rows beside them, and what is no chart."""

from __future__ import annotations

from functools import partial

import numpy as np
import pinocchio as pin
import pytest
import zoo
from scipy.integrate import solve_ivp
from scipy.interpolate import PchipInterpolator, make_interp_spline
from spatial_v2 import CASES, CHARTS, close, geared6r, golden, planar2g, tree
from support import relative

import holoctl as hc


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("method", ["split", "qr", "orthonormal"])
def test_a_chart_with_stabilisation_is_fdgq(name, method):
    """GammaQ through the projector, on and off the constraint, with the callback's own T."""
    data = golden(name)
    names = [f"q{i}" for i in data["constraint"]["independent_joints"]]
    chart = hc.GammaQ(CHARTS[name], independent=names)
    start = np.array(data["states"][0]["q"], float)
    mech = hc.Mechanism(tree(data), [chart], reference=start)
    part = hc.partition(mech, hc.assemble(mech, start)[0])
    assert part.independent.tolist() == data["constraint"]["independent"]
    for s in data["states"]:
        q0, v0 = np.array(s["q0"], float), np.array(s["qd0"], float)
        T = data["constraint"]["Tstab"]
        P = hc.project(mech, q0, v0, method, partition=part, t_stab=T)
        assert close(P.q, s["q"]) < 1e-10
        if method == "split":
            assert close(P.gamma, s["G"]) < 1e-10
            assert close(P.bias, s["gs"]) < 1e-10
        res = hc.forward_dynamics(mech, q0, v0, s["tau"], projection=P)
        assert close(res.a, s["qdd"]) < 1e-9
        assert res.certificate.ok != s["violating"]  # the state given, not the corrected one
        plain = hc.forward_dynamics(mech, q0, v0, s["tau"], partition=part).a
        expected = hc.methods.fdgq(mech.model, CHARTS[name], s["q"], s["qd"], s["tau"])
        assert close(plain, expected) < 1e-9  # without T: as on the constraint


def charted_and_closed():
    """A four-bar whose crank is geared by a sine to a wheel (a chart), with the loop as rows."""
    base = zoo.four_bar()
    m = base.model.copy()
    zoo.add_body(m, 0, pin.JointModelRZ(), zoo.at(0, 0.5), "wheel", zoo.bar(0.1))

    def gamma_q(model, q0, v0):
        q, v = q0.copy(), v0.copy()
        q[3] = 0.3 + np.sin(q0[0])
        v[3] = np.cos(q0[0]) * v0[0]
        G = np.zeros((4, 3))
        G[:3, :3] = np.eye(3)
        G[3, 0] = np.cos(q0[0])
        return q, v, G, np.array([0.0, 0.0, 0.0, -np.sin(q0[0]) * v0[0] ** 2])

    def sine(q):
        return [q[3] - 0.3 - np.sin(q[0])]

    chart = hc.GammaQ(gamma_q, independent=["crank", "coupler", "rocker"], name="cam")
    rows = hc.Custom(sine, name="cam")
    reference = np.append(base.reference, 1.1)
    return [
        hc.Mechanism(m, [*base.constraints, cam], ["wheel"], reference=reference)
        for cam in (chart, rows)
    ]


def test_a_chart_and_rows_compose():
    """The same accelerations and torques as with the chart written as a row."""
    charted, rowed = charted_and_closed()
    q, v = hc.assemble(charted, v_guess=[2.0, 0.0, 0.0, 0.0])
    parts = [hc.partition(m, q) for m in (charted, rowed)]
    assert parts[0].rank == 3
    tau = np.array([1.0, -2.0, 0.5, 3.0])
    a = [hc.forward_dynamics(m, q, v, tau, partition=p).a for m, p in zip((charted, rowed), parts,
                                                                       strict=True)]  # fmt: skip
    assert relative(a[0], a[1]) < 1e-8
    u = [hc.inverse_dynamics(m, q, v, [2.0], partition=p) for m, p in zip((charted, rowed), parts,
                                                                     strict=True)]  # fmt: skip
    assert relative(u[0].u, u[1].u) < 1e-8
    assert u[0].certificate.ok
    assert np.abs(v).max() > 0.5
    off = q.copy()
    off[3] += 0.3  # the chart moves this back
    moved = hc.project(charted, off, v, partition=parts[0])
    assert np.abs(moved.q - q).max() < 1e-12


def test_a_violated_chart_and_violated_rows_decay_with_their_time_constant():
    charted, _ = charted_and_closed()
    q = hc.assemble(charted)[0]
    part = hc.partition(charted, q)
    q0 = q + np.array([0.0, 1e-3, 0.0, 2e-3])
    T = 0.05

    def derivative(t, x):
        P = hc.project(charted, x[:4], x[4:], partition=part, t_stab=T)
        return np.concatenate([x[4:], hc.forward_dynamics(charted, x[:4], x[4:], np.zeros(4),
                                                        projection=P).a])  # fmt: skip

    from holoctl.rows.evaluate import constraint_rows

    def error(x):
        return constraint_rows(charted, x[:4], x[4:])[1].error

    times = np.array([0.0, T, 2 * T, 4 * T])
    end = solve_ivp(derivative, (0.0, times[-1]), np.concatenate([q0, np.zeros(4)]), t_eval=times,
                    rtol=1e-9, atol=1e-12)  # fmt: skip
    e = np.array([error(x) for x in end.y.T])
    expected = (1.0 + times / T) * np.exp(-times / T)  # critically damped, from rest
    cam = e[:, -1] / e[0, -1]
    assert np.abs(cam - expected).max() < 1e-3
    rows = np.linalg.norm(e[:, :2], axis=1) / np.linalg.norm(e[0, :2])
    assert np.abs(rows - expected).max() < 2e-2


def test_a_second_chart_acts_as_rows():
    data = golden("geared6r")
    p = data["constraint"]["params"]
    N, c = np.array(p["N"], float), np.array(p["c"], float)

    def half(dependent, columns):
        """Part of the gears as a chart of its own."""
        keep = [i for i in range(6) if i not in dependent]

        def gamma_q(model, q0, v0):
            q, v = q0.copy(), v0.copy()
            G = np.zeros((6, len(keep)))
            G[keep, range(len(keep))] = 1.0
            for i in dependent:
                q[i], v[i] = N[i] @ q0[[0, 2, 4]] + c[i], N[i] @ v0[[0, 2, 4]]
                for k, y in enumerate((0, 2, 4)):
                    G[i, keep.index(y)] = N[i, k]
            return q, v, G, np.zeros(6)

        return hc.GammaQ(gamma_q, independent=[f"q{i + 1}" for i in keep], name=f"gears {columns}")

    start = np.array(data["states"][0]["q"], float)
    mech = hc.Mechanism(tree(data), [half([1], "a"), half([3, 5], "b")], reference=start)
    part = hc.partition(mech, start)
    assert part.rank == 3
    for s in data["states"]:
        q, v = np.array(s["q"], float), np.array(s["qd"], float)
        a = hc.forward_dynamics(mech, q, v, s["tau"], partition=part).a
        assert close(a, hc.methods.fdgq(mech.model, geared6r, q, v, s["tau"])) < 1e-9


@pytest.mark.parametrize(
    ("chart", "words"),
    [
        (lambda: hc.GammaQ(3, ["q1"]), "function"),
        (lambda: hc.GammaQ(planar2g, []), "independent"),
        (lambda: hc.GammaQ(planar2g, ["q1", "q1"]), "each once"),
        (lambda: hc.GammaQ(planar2g, ["q3"]), "q3"),
        (lambda: hc.GammaQ(planar2g, ["q2"]), "identity"),
        (lambda: hc.GammaQ(planar2g, ["q1", "q2"]), "nothing is constrained"),
        (lambda: hc.GammaQ(lambda m, q, v: (q, v, np.eye(2), q), ["q1"]), "columns"),
        (lambda: hc.GammaQ(lambda m, q, v: (q, 2 * v, [1.0, 0.0], 0 * q), ["q1"]), "velocity"),
    ],
)
def test_charts_that_make_no_sense_are_refused(chart, words):
    with pytest.raises(hc.InputError, match=words):
        hc.Mechanism(tree(golden("planar2g")), [chart()])


E1, E2 = np.eye(2)


def changed(gs=lambda gs: gs, G=lambda G: G):
    """planar2g with something wrong with it."""

    def gamma_q(model, q0, v0):
        q, _, right, g = planar2g(model, q0, v0)
        wrong = G(right)
        return q, wrong @ v0[:1], wrong, gs(g)

    return gamma_q


@pytest.mark.parametrize(
    ("callback", "words"),
    [
        (changed(gs=lambda gs: gs + E2), "'sine': gs on the constraint is not dG/dt yd.*'q2'"),
        (changed(gs=lambda gs: gs + 1e-3 * E2), "'sine': gs on the constraint.*'q2'"),
        (changed(gs=lambda gs: gs + E1), "'sine': gs on the constraint.*'q1' changes by 0 "),
        (changed(gs=lambda gs: -gs), "'q2' .*its sign is the wrong one"),
        (changed(gs=lambda gs: 1.001 * gs), "'sine': gs on the constraint.*'q2'"),
        (changed(gs=lambda gs: 0 * gs), "and gs is -?0;"),
        (changed(G=lambda G: np.diag([1, 1.001]) @ G), "'sine': G is not the derivative.*'q2'"),
        (changed(G=lambda G: np.diag([1, -1]) @ G), "'sine': G is not the derivative.*'q2'"),
    ],
)
def test_a_chart_with_wrong_derivatives_is_refused(callback, words):
    """All of these were certified: the certificate takes rows and drift as they are given."""
    with pytest.raises(hc.InputError, match=words):
        hc.Mechanism(tree(golden("planar2g")), [hc.GammaQ(callback, ["q1"], name="sine")])


def half_disc(radius, undefined):
    """A point on a circle, q2 = sqrt(r^2 - q1^2), with something to say outside."""

    def gamma_q(model, q0, v0):
        (y, _), (yd, _) = q0, v0
        if abs(y) >= radius and undefined is not None:
            raise undefined
        with np.errstate(invalid="ignore"):
            z = np.sqrt(radius**2 - y**2)
        G = np.array([1.0, -y / z])
        return [y, z], G * yd, G, [0.0, -(yd**2) * radius**2 / z**3]

    return gamma_q


@pytest.mark.parametrize("radius", [1.0, 0.02, 1e-6])
@pytest.mark.parametrize("undefined", [None, ValueError("outside"), ZeroDivisionError()])
def test_a_chart_need_not_be_defined_everywhere(radius, undefined):
    """It is looked at where it is defined, near the reference, and there only."""
    model, callback = tree(golden("planar2g")), half_disc(radius, undefined)

    def wrong(model, q0, v0):
        q, v, G, gs = callback(model, q0, v0)
        return q, v, G, -np.array(gs)

    with np.errstate(all="raise"):  # whatever the caller has numpy do
        mech = hc.Mechanism(model, [hc.GammaQ(callback, ["q1"])])
    assert mech.chart is not None
    if radius > 1e-5:
        with pytest.raises(hc.InputError, match="wrong one"):
            hc.Mechanism(model, [hc.GammaQ(wrong, ["q1"])])


def test_a_chart_that_iterates_or_floats_is_taken():
    """Rounding of an iteration is no wrong derivative, nor is a floating base among y."""
    noise = np.random.default_rng(0)

    def iterated(model, q0, v0):
        q, v, G, gs = planar2g(model, q0, v0)
        off = 1e-10 * noise.normal(size=(2, 2)) * [0.0, 1.0]
        return q + off[0], v + off[1], G, gs

    hc.Mechanism(tree(golden("planar2g")), [hc.GammaQ(iterated, ["q1"])])
    m = pin.Model()
    base = m.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base")
    wheel = m.addJoint(base, pin.JointModelRUBZ(), pin.SE3.Identity(), "wheel")
    m.addJoint(wheel, pin.JointModelPX(), pin.SE3.Identity(), "slide")
    for j in (1, 2, 3):
        m.inertias[j] = zoo.lump(np.random.default_rng(j))

    def cam(sign):
        def gamma_q(model, q0, v0):
            q, v, (c, s) = q0.copy(), v0.copy(), q0[7:9]
            q[9], v[7] = 0.1 * s, 0.1 * c * v0[6]
            G = np.eye(8, 7)
            G[7, 6] = 0.1 * c
            return q, v, G, np.append(np.zeros(7), -sign * 0.1 * s * v0[6] ** 2)

        return hc.GammaQ(gamma_q, [f"base[{i}]" for i in range(6)] + ["wheel"], name="cam")

    hc.Mechanism(m, [cam(1.0)])
    with pytest.raises(hc.InputError, match=r"'cam'.*'slide'.*wrong one"):
        hc.Mechanism(m, [cam(-1.0)])


@pytest.mark.parametrize("kind", ["linear", "pchip"])
def test_a_chart_from_a_table_is_taken(kind):
    """Kinks at its nodes, a tenth of a degree apart, are no wrong derivatives."""
    nodes = np.deg2rad(np.arange(-3600, 3601) * 0.1)
    model, states = tree(golden("planar2g")), np.random.default_rng(0).uniform(-2.0, 2.0, 60)
    make = PchipInterpolator if kind == "pchip" else partial(make_interp_spline, k=1)
    table = make(nodes, 2.0 * np.sin(nodes))
    first, second = table.derivative(1), table.derivative(2) if kind == "pchip" else np.zeros_like

    def chart(factor):
        def gamma_q(model, q0, v0):
            y, yd = q0[0], v0[0]
            G = np.array([1.0, factor * first(y)])
            return [y, table(y)], G * yd, G, [0.0, factor * float(second(y)) * yd**2]

        return [hc.GammaQ(gamma_q, ["q1"])]

    for y in states:
        hc.Mechanism(model, chart(1.0), reference=[y, table(y)])
        with pytest.raises(hc.InputError, match="G is not the derivative"):
            hc.Mechanism(model, chart(1.02), reference=[y, table(y)])


def test_a_callback_that_is_not_idempotent_is_refused():
    def lazy(model, q0, v0):  # one step of an iteration, not the limit
        q, v, G, gs = planar2g(model, q0, v0)
        return 0.5 * (q + q0), v, G, gs

    mech = hc.Mechanism(tree(golden("planar2g")), [hc.GammaQ(lazy, ["q1"])])
    with pytest.raises(hc.InconsistentError, match="corrected again"):
        hc.assemble(mech, [0.3, 1.0])
