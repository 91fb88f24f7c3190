"""Simulation with contacts that only push: closed forms, laws that always hold, refusals."""

from dataclasses import replace
from itertools import product

import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import solve_ivp

import holoctl as hc
from holoctl.dynamics.contact_complementarity import complementarity_solution
from holoctl.dynamics.contact_forces import sliding_solutions

G = 9.81
EXACT = 1e-9
BOX = (0.4, 0.3, 0.2)
"""Lengths of the edges of the box, m."""


def body(size=BOX, mass=2.0, slope=0.0):
    """A free box, on a plane that falls by `slope`, rad, in the direction x."""
    model = pin.Model()
    model.gravity.linear = G * np.array([np.sin(slope), 0.0, -np.cos(slope)])
    joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "body")
    a, b, c = size
    turning = mass / 12.0 * np.diag([b * b + c * c, a * a + c * c, a * a + b * b])
    model.appendBodyToJoint(joint, pin.Inertia(mass, np.zeros(3), turning), pin.SE3.Identity())
    return hc.Mechanism(model, [], [], name="box")


def corners(size=BOX, side=-1):
    """The corners of the lower face, or of the upper one with side=1."""
    a, b, c = size
    return [(x, y, side * c / 2) for x in (a / 2, -a / 2) for y in (b / 2, -b / 2)]


def both_faces(**options):
    return [
        hc.UnilateralContact("body", corners(side=side), name=name, **options)
        for side, name in ((-1, "below"), (1, "above"))
    ]


def pose(z, turn=0.0, x=0.0):
    """At a height, turned about y."""
    return np.array([x, 0.0, z, 0.0, np.sin(turn / 2), 0.0, np.cos(turn / 2)])


def rates(x=0.0, z=0.0, turning=0.0):
    return np.array([x, 0.0, z, 0.0, turning, 0.0])


def check_laws(run, friction, gains=1e-7):
    """Forces in the cones, no gain of energy."""
    force = np.concatenate([*run.contact_forces.values()], axis=1)
    assert force.any()
    assert force[..., 2].min() >= 0.0
    sideways = np.hypot(force[..., 0], force[..., 1]) - friction * force[..., 2]
    assert sideways.max() <= EXACT * np.abs(force).max()
    assert np.diff(sum(run.energy.values())).max() <= gains


def lowest(run, points, i=slice(None)):
    """The least height of points of the body at instants of a run, m."""
    poses = map(pin.XYZQUATToSE3, np.atleast_2d(run.q[i])[:, :7])
    return min((at.rotation @ np.transpose(points))[2].min() + at.translation[2] for at in poses)


def what(run, name):
    """The instants of some contact events."""
    return run.contact_events["t"][run.contact_events["what"] == name]


# ------------------------------------------------------------------------------- sliding block


@pytest.mark.parametrize(("slope", "friction"), [(0.3, 0.5), (0.6, 0.3), (0.6, 0.0)])
def test_a_block_on_a_slope_sticks_or_slides(slope, friction):
    mech = body(slope=slope)
    sole = hc.UnilateralContact("body", corners(), friction=friction, name="sole")
    run = hc.simulate(mech, None, pose(0.1), np.zeros(6), 1.0, contacts=sole, output=[0.0, 0.5, 1])
    a = max(0.0, G * (np.sin(slope) - friction * np.cos(slope)))
    assert (a > 0.0) == (np.tan(slope) > friction)
    assert run.q[:, 0] == pytest.approx(0.5 * a * run.t**2, abs=EXACT)
    assert run.v[:, 0] == pytest.approx(a * run.t, abs=EXACT)
    assert np.abs(run.q[:, 1:] - run.q[0, 1:]).max() < EXACT
    total = run.contact_forces["sole"].sum(axis=1)
    assert total[:, 2] == pytest.approx(2.0 * G * np.cos(slope), abs=1e-7)
    assert total[:, 0] == pytest.approx(2.0 * (a - G * np.sin(slope)), abs=1e-7)
    check_laws(run, friction)


@pytest.mark.parametrize(("slope", "friction"), [(0.3, 0.5), (0.6, 0.3)])
def test_a_block_thrown_uphill_stops_then_sticks_or_slides_back(slope, friction):
    mech = body(slope=slope)
    sole = hc.UnilateralContact("body", corners(), friction=friction, name="sole")
    run = hc.simulate(mech, None, pose(0.1), rates(-1.0), 1.0, contacts=sole, output=[0.0, 1.0])
    slows = G * (np.sin(slope) + friction * np.cos(slope))
    stop, back = 1.0 / slows, max(0.0, G * (np.sin(slope) - friction * np.cos(slope)))
    assert what(run, "slides" if back else "sticks").max() == pytest.approx(stop, abs=EXACT)
    assert run.q[-1, 0] == pytest.approx(-0.5 / slows + 0.5 * back * (1.0 - stop) ** 2, abs=EXACT)
    assert run.v[-1, 0] == pytest.approx(back * (1.0 - stop), abs=EXACT)


def test_a_block_that_slides_obliquely_stops_where_it_should():
    """In two directions, from a velocity across the slope that is level."""
    mech, friction = body(), 0.4
    sole = hc.UnilateralContact("body", corners(), friction=friction, name="sole")
    v = np.array([0.6, 0.8, 0.0, 0.0, 0.0, 0.0])
    run = hc.simulate(mech, None, pose(0.1), v, 0.5, contacts=sole, output=[0.0, 0.5])
    assert what(run, "sticks").max() == pytest.approx(1.0 / (friction * G), abs=EXACT)
    assert run.q[-1, :2] == pytest.approx(v[:2] * 0.5 / (friction * G), abs=EXACT)


@pytest.mark.slow
def test_a_pulled_block_begins_to_slide_at_the_limit_of_friction():
    mech, friction, rate = body(), 0.4, 30.0
    sole = hc.UnilateralContact("body", corners(), friction=friction, name="sole")
    pull = hc.Plant(efforts=lambda t, q, v: [0.6 * rate * t, 0.8 * rate * t, 0, 0, 0, 0])
    run = hc.simulate(
        mech, None, pose(0.1), np.zeros(6), 0.4, contacts=sole, plant=pull, output=[0.0, 0.4]
    )
    begins = friction * 2.0 * G / rate
    assert what(run, "slides").min() == pytest.approx(begins, abs=EXACT)
    later = 0.4 - begins
    assert np.hypot(*run.v[-1, :2]) == pytest.approx(0.5 * rate / 2.0 * later**2, abs=1e-8)


def test_a_tall_block_tips_over_its_edge():
    size, slope = (0.2, 0.3, 0.8), 0.5
    mech = body(size, slope=slope)
    sole = hc.UnilateralContact("body", corners(size), friction=0.9, name="sole")
    run = hc.simulate(
        mech, None, pose(0.4), np.zeros(6), 0.3, contacts=sole, output=[0.0, 0.1, 0.3]
    )
    assert np.tan(slope) > size[0] / size[2]
    a, c = size[0] / 2, size[2] / 2
    inertia = (size[0] ** 2 + size[2] ** 2) / 3.0  # about the edge, per mass

    def turning(t, y):
        along, up = G * np.sin(slope), -G * np.cos(slope)
        x, z = -a * np.cos(y[0]) + c * np.sin(y[0]), a * np.sin(y[0]) + c * np.cos(y[0])
        return [y[1], (z * along - x * up) / inertia]

    assert turning(0.0, [0.0, 0.0])[1] == pytest.approx(
        G * (c * np.sin(slope) - a * np.cos(slope)) / inertia
    )
    exact = solve_ivp(turning, (0.0, 0.3), [0.0, 0.0], "DOP853", [0.1, 0.3], rtol=1e-12, atol=1e-13)
    angle = 2.0 * np.arctan2(run.q[1:, 4], run.q[1:, 6])
    assert exact.y[0, -1] > 0.1
    assert angle == pytest.approx(exact.y[0], abs=1e-8)
    assert set(run.contact_events["point"][run.contact_events["what"] == "leaves"]) <= {2, 3}
    check_laws(run, 0.9)


# ----------------------------------------------------------------------------------- impacts


@pytest.mark.parametrize("e", [0.0, 0.5, 0.8])
def test_a_ball_bounces_and_comes_to_rest(e):
    ball = hc.UnilateralContact("body", friction=0.3, restitution=e, name="ball")
    first, speed = np.sqrt(2.0 / G), np.sqrt(2.0 * G)
    rest = first + 2.0 * speed / G * e / (1.0 - e)
    output = np.linspace(0.0, rest + 0.1, 200)
    run = hc.simulate(
        body(), None, pose(1.0), np.zeros(6), rest + 0.1, contacts=ball, output=output
    )
    hits = np.concatenate([what(run, "bounces"), what(run, "lands")])
    flights = 2.0 * speed / G * np.cumsum(e ** np.arange(1, hits.size))
    assert hits == pytest.approx(first + np.concatenate([[0.0], flights]), abs=EXACT)
    assert hits.size == 1 or hits.size > 10
    assert rest - 2e-3 <= hits[-1] <= rest + EXACT
    assert np.abs(run.v[-1]).max() < EXACT
    assert run.contact_forces["ball"][-1, 0] == pytest.approx([0.0, 0.0, 2.0 * G])
    assert run.q[:, 2].min() > -EXACT
    check_laws(run, 0.3)


def test_without_loss_a_ball_goes_on_to_bounce():
    ball = hc.UnilateralContact("body", restitution=1.0, name="ball")
    run = hc.simulate(
        body(), None, pose(0.5), np.zeros(6), 2.0, contacts=ball, output=[0.0, 1.0, 2.0]
    )
    assert sum(run.energy.values()) == pytest.approx(2.0 * G * 0.5, abs=1e-8)
    assert what(run, "bounces").size == 3


@pytest.mark.parametrize(
    ("friction", "e", "sideways"),
    [(0.0, 0.0, 0.3), (0.0, 0.6, 0.3), (5.0, 0.0, 0.3), (0.1, 0.3, 2.0)],
)
def test_a_rod_lands_on_one_end(friction, e, sideways):
    length, mass, turn = 1.0, 2.0, 0.7
    mech = body((length, 1e-3, 1e-3), mass)
    end = hc.UnilateralContact(
        "body", [(length / 2, 0, 0)], friction=friction, restitution=e, name="end"
    )
    r = length / 2 * np.array([-np.sin(turn), np.cos(turn)])  # up, along x
    fall = 0.5
    up = fall - r[0]
    time, speed = np.sqrt(2.0 * fall / G), np.sqrt(2.0 * G * fall)
    run = hc.simulate(
        mech, None, pose(up, turn), np.zeros(6) + _along(turn, sideways), time + 1e-9, contacts=end,
        output=[0.0, time + 1e-9],
    )  # fmt: skip
    inertia = mass * (length**2 + 1e-6) / 12.0
    W = (
        np.eye(2) / mass
        + np.array([[r[1] ** 2, -r[0] * r[1]], [-r[0] * r[1], r[0] ** 2]]) / inertia
    )
    before = np.array([-speed, sideways])
    goal = np.array([e * speed, 0.0])
    p = np.linalg.solve(W, goal - before)
    if abs(p[1]) > friction * p[0]:  # it slides on
        p[0] = (1.0 + e) * speed / (W[0, 0] - friction * W[0, 1])
        p[1] = -friction * p[0]
        assert (before + W @ p)[1] >= 0.0 or friction == 0.0
    hit = run.contact_events[0]
    assert hit["t"] == pytest.approx(time, abs=EXACT)
    assert hit["impulse"][[2, 0]] == pytest.approx(p, abs=1e-8)
    assert hit["what"] == ("bounces" if e else "lands")


def _along(turn, speed):
    """The velocity of a turned body, in its axes, that moves along x."""
    return np.array([np.cos(turn) * speed, 0.0, np.sin(turn) * speed, 0.0, 0.0, 0.0])


PAINLEVE_ANGLE = 1.0  # rad
LENGTH = 1.0  # m


def sliding_rod(friction, lift=0.0):
    """A slender rod that slides on one end, and the ratio of its normal acceleration under friction
    to that without; `lift` is a force upwards in the middle, N."""
    turn, mass = PAINLEVE_ANGLE, 2.0
    mech = body((LENGTH, 1e-6, 1e-6), mass)
    end = hc.UnilateralContact("body", [(LENGTH / 2, 0, 0)], friction=friction, name="end")
    start = pose(LENGTH / 2 * np.sin(turn), turn), _along(turn, 1.0)
    up = lift * np.array([-np.sin(turn), 0.0, np.cos(turn), 0.0, 0.0, 0.0])
    plant = hc.Plant(efforts=lambda t, q, v: up)
    ratio = 1.0 + 3.0 * np.cos(turn) * (np.cos(turn) - friction * np.sin(turn))
    options = {"contacts": end, "plant": plant, "output": [0.0, 1e-9]}
    return ratio, lambda: hc.simulate(mech, None, *start, 1e-9, **options)


def test_a_rod_slides_with_friction_below_painleves():
    ratio, run = sliding_rod(1.0)
    assert ratio > 0.0
    run = run()
    assert what(run, "slides").tolist() == [0.0]
    assert run.contact_forces["end"][0, 0, 2] == pytest.approx(2.0 * G / ratio, rel=1e-8)


@pytest.mark.parametrize(("lift", "words"), [(0.0, "no forces satisfy"), (40.0, "2 motions")])
def test_painleves_rod_is_refused(lift, words):
    """Friction beyond 4/3 is more than the rod can bear at some angles."""
    ratio, run = sliding_rod(1.6, lift)
    assert ratio < 0.0
    with pytest.raises(hc.InconsistentError, match=f"Painleve.*{words}"):
        run()


def test_a_rod_jams_where_its_angle_comes_to_painleves():
    """It turns while it slides: at the start it has forces, later it has none."""
    turn, friction = 0.7, 1.6
    mech = body((LENGTH, 1e-6, 1e-6))
    end = hc.UnilateralContact("body", [(LENGTH / 2, 0, 0)], friction=friction, name="end")
    v = _along(turn, 3.0)
    rises = LENGTH / 2 * 4.0 * np.cos(turn)  # of the middle, where the end keeps its height
    v[[0, 2, 4]] += -np.sin(turn) * rises, np.cos(turn) * rises, 4.0

    def ratio(turn):
        return 1.0 + 3.0 * np.cos(turn) * (np.cos(turn) - friction * np.sin(turn))

    start = pose(LENGTH / 2 * np.sin(turn), turn), v
    assert ratio(turn) > 0.1 > ratio(turn + 0.1)
    assert what(hc.simulate(mech, None, *start, 0.01, contacts=end), "slides").tolist() == [0.0]
    with pytest.raises(hc.InconsistentError, match=r"Painleve.*several motions, or no forces"):
        hc.simulate(mech, None, *start, 0.1, contacts=end)


def test_restitution_is_reduced_where_it_would_increase_the_energy():
    turn, fall = 0.9, 0.1
    mech = body((LENGTH, 1e-3, 1e-3))
    end = hc.UnilateralContact(
        "body", [(LENGTH / 2, 0, 0)], friction=0.5, restitution=0.9, name="end"
    )
    time = np.sqrt(2.0 * fall / G)
    start = pose(LENGTH / 2 * np.sin(turn) + fall, turn), _along(turn, -1.0)
    run = hc.simulate(mech, None, *start, time + 1e-9, contacts=end, output=[0.0, time + 1e-9])
    assert run.contact_events["what"].tolist() == ["bounces", "less restitution"]
    assert run.contact_events["t"] == pytest.approx(time, abs=EXACT)
    assert not run.contact_events["impulse"][1].any()
    assert np.diff(sum(run.energy.values())) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("seed", [1, pytest.param(0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("e", [0.0, 0.4])
@pytest.mark.slow
def test_a_tumbling_box_comes_to_rest(seed, e):
    rng = np.random.default_rng(seed)
    q = pose(0.6)
    q[3:] = rng.normal(size=4)
    q[3:] /= np.linalg.norm(q[3:])
    v = rng.normal(size=6) * [1, 1, 1, 5, 5, 5]
    box = both_faces(friction=0.4, restitution=e)
    run = hc.simulate(body(), None, q, v, 2.0, contacts=box, frequency=200.0)
    assert len(run.contact_events) > 10
    assert np.abs(run.v[-1]).max() < EXACT
    assert lowest(run, corners() + corners(side=1)) > -EXACT
    check_laws(run, 0.4)


# ---------------------------------------------------------------------------------------- laws


def enumerated(W, c, mu):
    """All accelerations of points in a plane, (n, 2): every combination of modes is tried."""
    n, found = mu.size, []
    for modes in product(("open", "stick", +1, -1), repeat=n):
        rows = [
            2 * i + k
            for i in range(n)
            for k in range(2)
            if modes[i] == "stick" or (k == 0 and modes[i] != "open")
        ]
        push = np.eye(2 * n)
        for i, mode in enumerate(modes):
            if mode in (1, -1):
                push[2 * i + 1, 2 * i] = -mu[i] * mode
        x = np.zeros(2 * n)
        if rows:
            x = push[:, rows] @ np.linalg.solve((W @ push[:, rows])[rows], -c[rows])
        y, f = (W @ x + c).reshape(n, 2), x.reshape(n, 2)
        slides = [(m in (1, -1), m if m in (1, -1) else 0) for m in modes]
        good = f[:, 0].min() >= -1e-10 and y[:, 0].min() >= -1e-10
        good &= all(abs(g[1]) <= u * g[0] + 1e-10 for g, u in zip(f, mu, strict=False))
        good &= all(not s or k * z[1] >= -1e-10 for (s, k), z in zip(slides, y, strict=False))
        if good and not any(np.abs(y - other).max() < 1e-7 for other in found):
            found.append(y)
    return found


@pytest.mark.parametrize("n", [1, 2, 3])
def test_modes_are_those_of_an_enumeration(n):
    rng = np.random.default_rng(n)
    unique, modes = 0, set()
    for _ in range(30):
        J = rng.normal(size=(2 * n, 2 * n + 1))
        J[::2] *= 1.5
        W, c, mu = J @ J.T, 3.0 * rng.normal(size=2 * n), rng.uniform(0.1, 0.8, n)
        every = enumerated(W, c, mu)
        assert every
        full, at = np.eye(3 * n), np.arange(3 * n)[np.arange(3 * n) % 3 < 2]
        full[np.ix_(at, at)] = W
        free = np.zeros(3 * n)
        free[at] = c
        found = complementarity_solution(full, free, mu, np.full((n, 2), np.nan))
        y = found.y[:, :2]
        assert min(np.abs(y - other).max() for other in every) < 1e-7
        unique += len(every) == 1
        modes |= {(row[0] > 1e-6, abs(row[1]) > 1e-6) for row in y}
    assert unique > 10
    assert len(modes) >= 3


@pytest.mark.parametrize("n", [1, 2, 4])
def test_forces_are_in_round_cones_and_opposite_to_sliding(n):
    rng = np.random.default_rng(n)
    slides = 0
    for _ in range(10):
        J = rng.normal(size=(3 * n, 6))
        W, c, mu = J @ J.T, 3.0 * J @ rng.normal(size=6), rng.uniform(0.1, 0.6, n)
        x, y = complementarity_solution(W, c, mu, np.full((n, 2), np.nan))
        size, slip = np.abs(x).max() + 1.0, np.hypot(y[:, 1], y[:, 2])
        assert np.abs(W @ x.reshape(-1) + c - y.reshape(-1)).max() < 1e-8 * size
        assert min(x[:, 0].min(), y[:, 0].min()) > -1e-8 * size
        assert np.abs(x[:, 0] * y[:, 0]).max() < 1e-7 * size
        off = x[:, 1:] * slip[:, None] + (mu * x[:, 0])[:, None] * y[:, 1:]
        assert np.abs(off).max() < 1e-7 * size
        assert (np.hypot(x[:, 1], x[:, 2]) - mu * x[:, 0]).max() < 1e-8 * size
        slides += ((slip > 1e-3) & (x[:, 0] > 1e-3)).sum()
    assert slides > 0


def soles(rng):
    """Two plane feet that slide and turn, coupled by a random inertia: W, c, directions."""
    sole = np.array([(x, y, -0.1) for x in (0.1, -0.1) for y in (0.05, -0.05)])
    across = np.concatenate([[[np.eye(3)[i], np.cross(p, np.eye(3)[i])] for i in (2, 0, 1)]
                             for p in sole]).reshape(12, 6)  # fmt: skip
    J = np.kron(np.eye(2), across)
    root = 0.4 * rng.normal(size=(12, 12)) + np.diag(2 * [1.0, 1.0, 1.0, 8.0, 8.0, 8.0])
    v = np.concatenate([[*rng.normal(size=2), 0.0, 0.0, 0.0, 10.0 * rng.normal()] for _ in "12"])
    slip = (J @ v).reshape(8, 3)[:, 1:]
    W, c = J @ root @ root.T @ J.T, 10.0 * J @ (rng.normal(size=12) - 2 * [0, 0, 1.0, 0, 0, 0])
    return W, c, slip / np.hypot(*slip.T)[:, None]


def test_redundant_points_that_slide_have_one_motion():
    """All sets of three and more points are solutions, and so is everything between them: the
    forces of a foot are not unique, and with friction its acceleration hardly is."""
    rng, mu, several = np.random.default_rng(0), np.full(8, 0.4), 0
    for _ in range(12):
        W, c, direction = soles(rng)
        assert len(sliding_solutions(W, c, mu, direction)) == 1
        push = np.zeros((24, 8))
        push[3 * np.arange(8), np.arange(8)] = 1.0
        for k in (0, 1):
            push[3 * np.arange(8) + 1 + k, np.arange(8)] = -mu * direction[:, k]
        A, b = (W @ push)[::3], -c[::3]
        found = []
        for chosen in product((False, True), repeat=8):
            some = np.flatnonzero(chosen)
            if not 0 < some.size <= 6 or np.linalg.cond(A[np.ix_(some, some)]) > 1e9:
                continue
            x = np.zeros(8)
            x[some] = np.linalg.solve(A[np.ix_(some, some)], b[some])
            if min(x.min(), (A @ x - b).min()) > -1e-9 * np.abs(c).max():
                found.append(x)
        middle = np.mean(found, axis=0)
        y = A @ middle - b
        assert min(middle.min(), y.min()) > -1e-8 * np.abs(c).max()
        assert np.abs(middle * y).max() < 1e-8 * np.abs(c).max() * np.abs(middle).max()
        several += max(np.ptp(found, axis=0)) > 1e-3 * middle.max()
    assert several > 3


# ----------------------------------------------------------------------------- closed chains


def leg():
    mech = hc.load(hc.robot_file("leg"), free_flyer=True)
    points = [(x, y, 0.0) for x in (0.10, -0.06) for y in (0.04, -0.04)]
    q, v = hc.assemble(mech)
    q[2] += 0.87
    return mech, points, q, v


@pytest.mark.slow
def test_a_leg_with_a_closed_chain_lands_and_stands():
    mech, points, q, v = leg()
    home, kp, kd = mech.motor_positions(q), np.array([200, 200, 200, 40]), np.array([8, 8, 8, 0.8])

    def hold(t, q, v):
        return -kp * (mech.motor_positions(q) - home) - kd * (mech.B.T @ v)

    sole = hc.UnilateralContact("sole", points, friction=0.6, name="foot")
    run = hc.simulate(mech, hold, q, v, 0.4, contacts=[sole], output=np.linspace(0.0, 0.4, 41))
    assert run.closure.max() < 1e-11
    assert set(run.contact_events["what"]) >= {"lands", "sticks"}
    weight = G * sum(i.mass for i in mech.model.inertias)
    assert run.contact_forces["foot"][-1, :, 2].sum() == pytest.approx(weight, rel=0.05)
    check_laws(run, 0.6, np.inf)
    assert hc.constraint_errors(mech, run.q[-1], run.v[-1]).closure < 1e-11


@pytest.mark.slow
def test_a_passive_leg_collapses():
    mech, points, q, v = leg()
    sole = hc.UnilateralContact("sole", points, friction=0.3, restitution=0.3, name="foot")
    run = hc.simulate(mech, None, q, v, 0.4, contacts=[sole], frequency=200.0)
    assert run.closure.max() < 1e-11
    assert run.q[-1, 2] < q[2] - 0.02
    check_laws(run, 0.3)


def biped(yaw=True):
    """A trunk on two bent legs with springs in their joints, and its two feet."""
    model, motion = pin.Model(), []
    trunk = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "trunk")
    model.inertias[trunk] = pin.Inertia.FromBox(15.0, 0.2, 0.3, 0.4)
    for side, y in (("left", 0.12), ("right", -0.12)):
        parent, place = trunk, np.array([0.0, y, -0.2])
        for name, joint, mass, length, angle in (
            ("yaw", pin.JointModelRZ(), 1.0, 0.0, 0.0),
            ("roll", pin.JointModelRX(), 1.0, 0.0, 0.0),
            ("hip", pin.JointModelRY(), 3.0, 0.35, -0.4),
            ("knee", pin.JointModelRY(), 2.0, 0.35, 0.8),
            ("ankle", pin.JointModelRY(), 0.5, 0.0, -0.4),
            ("foot", pin.JointModelRX(), 1.0, 0.05, 0.0),
        ):
            if name == "yaw" and not yaw:
                continue
            parent = model.addJoint(parent, joint, pin.SE3(np.eye(3), place), f"{name}_{side}")
            place = np.array([0.0, 0.0, -length])
            model.inertias[parent] = pin.Inertia(mass, place / 2, 0.01 * mass * np.eye(3))
            motion.append((f"{name}_{side}", angle))
    q = np.concatenate([pin.neutral(model)[:7], [angle for _, angle in motion]])
    q[2] = 0.2 + 2.0 * 0.35 * np.cos(0.4) + 0.05
    springs = [hc.JointSpring(name, 800.0, angle, damping=10.0) for name, angle in motion]
    sole = [(x, y, -0.05) for x in (0.12, -0.08) for y in (0.04, -0.04)]
    feet = [
        hc.UnilateralContact(f"foot_{side}", sole, friction=0.8, name=side)
        for side in ("left", "right")
    ]
    return hc.Mechanism(model, [], [], forces=springs, name="biped"), feet, q


@pytest.mark.slow
def test_a_biped_that_is_pushed_topples():
    mech, feet, q = biped()

    def load(t, q, v):
        return {"trunk": ((0.0, 200.0 if 0.1 < t < 0.4 else 0.0, 0.0), (0.0, 0.0, 0.0))}

    plant = hc.Plant(f_ext=load)
    run = hc.simulate(
        mech, None, q, np.zeros(mech.nv), 0.6, contacts=feet, plant=plant, frequency=100.0
    )
    weight = G * sum(inertia.mass for inertia in mech.model.inertias)
    before = sum(run.contact_forces[foot.name][run.t < 0.1, :, 2].sum(axis=1) for foot in feet)
    assert before[-1] == pytest.approx(weight, rel=0.02)
    leaves = run.contact_events[run.contact_events["what"] == "leaves"]
    assert leaves["t"].min() > 0.1
    assert "right" in leaves["contact"]  # it turns about the outer edge of its left foot
    assert pin.Quaternion(run.q[-1, 3:7]).matrix()[2, 2] < 0.95
    check_laws(run, 0.8, np.inf)


@pytest.mark.slow
def test_symmetrical_legs_without_yaw_joints_stand():
    """The rows of their feet lose rank where both legs have the same angles."""
    mech, feet, q = biped(yaw=False)
    data = mech.model.createData()
    pin.forwardKinematics(mech.model, data, q)
    rows = [
        hc.Closure(f"foot_{side}", ("universe", data.oMi[mech.model.getJointId(f"foot_{side}")]),
                   axes=axes, name=f"hold_{side}")
        for side, axes in (("left", "x y z rx ry rz"), ("right", "x z ry"))  # others are implied
    ]  # fmt: skip
    start = q, np.zeros(mech.nv), 0.2
    run = hc.simulate(mech, None, *start, contacts=feet, output=[0.0, 0.1, 0.2])
    held = hc.simulate(mech.with_constraints(*rows), None, *start, output=[0.0, 0.1, 0.2])
    assert np.abs(run.q[-1] - q).max() > 0.01
    assert run.q == pytest.approx(held.q, abs=EXACT)
    assert run.v == pytest.approx(held.v, abs=1e-8)
    check_laws(run, 0.8, np.inf)
    every = [replace(row, axes="x y z rx ry rz") for row in rows]
    with pytest.raises(hc.SingularityError, match="rank 11 at this configuration but 12 nearby"):
        hc.partition(mech.with_constraints(*every), q)


# -------------------------------------------------------------------------- with other options


def test_compiled_dynamics_serve_the_flight():
    mech = body()
    fast = hc.compile(mech, ["forward_dynamics"], flags=["-O0"])
    ball = hc.UnilateralContact("body", restitution=0.5, name="ball")
    start = pose(0.5), np.zeros(6), 1.2
    runs = [
        hc.simulate(mech, None, *start, contacts=ball, plant=plant, output=[0.0, 0.6, 1.2])
        for plant in (None, fast)
    ]
    assert runs[0].contact_events.size > 10
    assert runs[1].contact_events["t"] == pytest.approx(runs[0].contact_events["t"], abs=EXACT)
    assert runs[1].q == pytest.approx(runs[0].q, abs=EXACT)


@pytest.mark.slow
def test_mujoco_slides_likewise():
    """Within the accuracy of its soft contacts."""
    mujoco = pytest.importorskip("mujoco")
    slope, friction = 0.6, 0.3
    xml = f"""
    <mujoco>
      <option timestep="1e-4" gravity="{G * np.sin(slope)} 0 {-G * np.cos(slope)}" cone="elliptic"
              impratio="100" integrator="implicitfast"/>
      <worldbody>
        <geom type="plane" size="5 5 1" friction="{friction} 0 0"/>
        <body pos="0 0 0.1"><freejoint/>
          <geom type="box" size="0.2 0.15 0.1" mass="2" friction="{friction} 0 0"/>
        </body>
      </worldbody>
    </mujoco>"""
    theirs = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(theirs)
    for _ in range(5000):
        mujoco.mj_step(theirs, data)
    sole = hc.UnilateralContact("body", corners(), friction=friction, name="sole")
    run = hc.simulate(
        body(slope=slope), None, pose(0.1), np.zeros(6), 0.5, contacts=sole, output=[0.0, 0.5]
    )
    assert run.q[-1, 0] > 0.3
    assert data.qpos[0] == pytest.approx(run.q[-1, 0], rel=0.01)
    assert data.qvel[0] == pytest.approx(run.v[-1, 0], rel=0.01)


def test_it_goes_with_controllers_events_and_other_methods():
    mech = body(slope=0.6)
    sole = hc.UnilateralContact("body", corners(), friction=0.3, name="sole")
    a = G * (np.sin(0.6) - 0.3 * np.cos(0.6))
    there = hc.Event(lambda t, q, v: q[0] - 0.1, terminal=True)
    ends = []
    for controller, hold in ((None, True), (lambda t, q, v: [], True), (lambda t, q, v: [], False)):
        by = hc.Integrator(hold=hold)
        ends.append(
            hc.simulate(
                mech, controller, pose(0.1), np.zeros(6), 1.0, contacts=sole, events=there,
                integrator=by, frequency=100.0,
            )
        )  # fmt: skip
    for run in ends:
        assert run.ended == "event 0"
        assert run.t[-1] == pytest.approx(np.sqrt(0.2 / a), abs=EXACT)
        assert run.contact_events.size == 8
        assert len(run.events) == 1


def test_a_reaction_of_an_event_may_push_what_rests():
    mech = body()
    sole = hc.UnilateralContact("body", corners(), friction=0.5, name="sole")
    push = hc.Event(lambda t, q, v: t - 0.1, reaction=lambda t, q, v: (mech, v + rates(0.3)))
    run = hc.simulate(
        mech, None, pose(0.1), np.zeros(6), 0.5, contacts=sole, events=push, output=[0.0, 0.5]
    )
    stop = 0.1 + 0.3 / (0.5 * G)
    assert what(run, "slides").max() == pytest.approx(0.1, abs=EXACT)
    assert what(run, "sticks").max() == pytest.approx(stop, abs=EXACT)
    assert run.q[-1, 0] == pytest.approx(0.3**2 / G, abs=EXACT)


def test_two_contacts_on_their_own_grounds_are_saved(tmp_path):
    """A box between a floor and a wall on its left, pushed against the wall."""
    mech = body()
    floor = hc.UnilateralContact("body", corners(), friction=0.2, name="floor")
    wall = hc.UnilateralContact(
        "body", [(-0.2, 0, 0)], (1, 0, 0), 0.1, name="wall", ground=(-0.5, 0, 0), restitution=0.5
    )
    run = hc.simulate(mech, None, pose(0.1), rates(-2.0), 0.5, contacts=[floor, wall])
    hit = run.contact_events[run.contact_events["contact"] == "wall"]
    assert hit["what"].tolist() == ["bounces"]
    speed = np.sqrt(4.0 - 2.0 * 0.2 * G * 0.3)
    assert hit["t"][0] == pytest.approx((2.0 - speed) / (0.2 * G), abs=EXACT)
    assert hit["impulse"][0, 0] == pytest.approx(2.0 * 1.5 * speed, abs=1e-7)
    again = hc.Run.read(run.save(tmp_path / "run"))
    assert list(again.contact_forces) == ["floor", "wall"]
    assert (again.contact_forces["floor"] == run.contact_forces["floor"]).all()
    assert (again.contact_events == run.contact_events).all()
    assert "events of contacts" in repr(run)


def test_a_start_into_the_ground_is_a_landing():
    mech = body()
    sole = hc.UnilateralContact("body", corners(), name="sole")
    run = hc.simulate(mech, None, pose(0.1), rates(0.0, -1.0), 0.01, contacts=sole)
    assert what(run, "lands").tolist() == 4 * [0.0]
    assert run.contact_events["impulse"][:, 2].sum() == pytest.approx(2.0)
    assert np.abs(run.v).max() < EXACT


def test_a_grazing_corner_is_not_missed():
    """A box that turns fast in free fall: a corner is below the ground for a short time."""
    mech, points = body(), corners() + corners(side=1)
    start = pose(0.4), rates(0.0, 3.0, 25.0), 0.5
    fall = hc.simulate(mech, None, *start, output=np.linspace(0.0, 0.5, 5001))
    heights = [lowest(fall, points, i) for i in range(fall.t.size)]
    inner = np.array(heights[1:-1])
    dips = np.flatnonzero((inner < heights[:-2]) & (inner < heights[2:])) + 1
    deep = heights[dips[0]] + 1e-6
    box = both_faces(ground=(0.0, 0.0, deep), friction=0.0)
    run = hc.simulate(mech, None, *start, contacts=box)
    assert run.contact_events["t"][0] == pytest.approx(fall.t[dips[0]], abs=1e-3)
    assert lowest(run, points) > deep - EXACT


@pytest.mark.parametrize(
    ("contact", "words"),
    [
        ({"restitution": 1.5}, "restitution must be from 0 to 1"),
        ({"restitution": -0.1}, "restitution must be from 0 to 1"),
        ({"ground": (0, 0)}, "ground"),
        ({"ground": (0, 0, 0.05)}, r"point 0 of contact 'sole' starts 0.05 m below the ground"),
        ({"frame": "universe"}, "fixed to the world"),
        ({"frame": "hand"}, "hand"),
    ],
)
def test_wrong_contacts_are_refused(contact, words):
    given = {"frame": "body", "points": corners(), "name": "sole"} | contact
    with pytest.raises(hc.InputError, match=words):
        hc.simulate(
            body(), None, pose(0.1), np.zeros(6), 0.1, contacts=hc.UnilateralContact(**given)
        )


def test_what_are_no_contacts_is_refused():
    mech, sole = body(), hc.UnilateralContact("body", corners(), name="sole")
    start = pose(0.1), np.zeros(6), 0.1
    with pytest.raises(hc.InputError, match="contacts must be a list"):
        hc.simulate(mech, None, *start, contacts=hc.Contact("body"))
    with pytest.raises(hc.InputError, match="different names"):
        hc.simulate(mech, None, *start, contacts=[sole, sole])
    taken = mech.with_constraints(hc.Contact("body", name="sole_1", ground=(0, 0, 0.1)))
    with pytest.raises(hc.InputError, match="names of their own"):
        hc.simulate(taken, None, *start, contacts=sole)
