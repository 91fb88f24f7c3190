"""Paths between configurations, and the signs of sheets, against geometry and against the encoder
continuation, which shares no step with them."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
import zoo

import holoctl as hc

MARGIN = 0.02
TIP = hc.FrameTask("tip", "x y")


def five_bar(**limits):
    """Arms and rods of one length, without limits of positions but those given."""
    link = hc.Linkage("five_bar", gravity=(0, -9.81, 0))
    for side, x in (("left", -0.1), ("right", 0.1)):
        for body in (f"arm_{side}", f"rod_{side}"):
            link.add_body(body, 0.3, [0.1, 0, 0], np.diag([1e-5, 1e-3, 1e-3]))
        link.add_joint(f"motor_{side}", "revolute", "universe", f"arm_{side}", zoo.at(x))
        link.add_joint(f"elbow_{side}", "revolute", f"arm_{side}", f"rod_{side}", zoo.at(0.2))
    link.add_joint("hinge", "revolute", "rod_left", "rod_right", zoo.at(0.2), zoo.at(0.2))
    link.add_body("tip", 0.0)
    link.add_joint("mount", "weld", "rod_left", "tip", zoo.at(0.2))
    return link.mechanism(
        cut=["hinge"],
        actuated=["motor_left", "motor_right"],
        reference={"motor_left": 2.0, "elbow_left": -1.0, "motor_right": 1.1, "elbow_right": 1.0},
        limits=hc.Limits(effort=2.0, **limits),
    )


def three_rrr():
    model, closures = zoo.vertical(pin.Model()), []
    base = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.5, 0.85, 0.0]]
    corners = [[0.0, 0.0, 0.0], [0.3, 0.0, 0.0], [0.15, 0.27, 0.0]]
    for i, foot in enumerate(base):
        zoo.add_body(model, 0, pin.JointModelRZ(), zoo.at(*foot), f"arm_{i}", zoo.bar(0.4))
        joint = pin.JointModelRZ()
        zoo.add_body(model, f"arm_{i}", joint, zoo.at(0.4), f"rod_{i}", zoo.bar(0.4))
        if not i:
            inertia = zoo.bar(0.3)
            zoo.add_body(model, "rod_0", pin.JointModelRZ(), zoo.at(0.4), "table", inertia)
        else:
            ends = ("table", zoo.at(*corners[i])), (f"rod_{i}", zoo.at(0.4))
            closures.append(hc.Closure(*ends, axes="x y", name=f"corner_{i}"))
    return hc.Mechanism(model, closures, ["arm_0", "arm_1", "arm_2"], name="three_rrr")


def robot(name):
    return hc.load(hc.robot_file(name))


ROBOTS = {
    "five_bar": five_bar,
    "three_rrr": three_rrr,
    "stewart": lambda: robot("stewart"),
    "leg": lambda: robot("leg"),
    "delta": lambda: robot("delta"),
    "spatial_arms": zoo.spatial_arms,
    "geared_slider": zoo.geared_slider,
    "slider_crank": zoo.slider_crank,
}


PARTS = {}


def part_of(mech):
    """The partition at the reference."""
    if mech not in PARTS:
        PARTS[mech] = hc.partition(mech, hc.assemble(mech)[0])
    return PARTS[mech]


def rows_of(mech, q):
    """The kept rows of G, scaled."""
    G = hc.terms(mech, q, np.zeros(mech.nv)).rows.jacobian * mech.scale
    return G[np.sort(part_of(mech).rows)]


def sigma_and_side(mech, q):
    """The smallest singular value of gamma' B, and the sign of det [G; B'], from the rows alone."""
    B = mech.column_scale[:, None] * mech.B
    B = B / np.linalg.norm(B, axis=0)
    G = rows_of(mech, q)
    N = np.linalg.svd(G)[2][len(G) :].T
    square = mech.nu == mech.nv - len(G)
    side = np.linalg.slogdet(np.vstack([G, B.T]))[0] if square else 0.0
    return np.linalg.svd(N.T @ B, compute_uv=False)[-1], side


def closed_at(mech, rng, far=1.0, margin=0.05):
    """A random closed configuration, within limits, away from type-2 singularities."""
    home = hc.assemble(mech)[0]
    reach = np.full(mech.nv, far)
    reach[mech.lengths[1]] = 0.3 * far * mech.column_scale[mech.lengths[1]]
    for _ in range(100):
        guess = pin.integrate(mech.model, home, rng.uniform(-1.0, 1.0, mech.nv) * reach)
        try:
            q = hc.assemble(mech, guess, within_limits=True, restarts=2)[0]
        except hc.HoloctlError:
            continue
        if sigma_and_side(mech, q)[0] > margin:
            return q
    raise AssertionError("no closed configuration")


def same_sheet(mech, rng, far=1.0):
    """Two random configurations with the same sign."""
    while True:
        one, two = closed_at(mech, rng, far), closed_at(mech, rng, far)
        if sigma_and_side(mech, one)[1] == sigma_and_side(mech, two)[1]:
            return one, two


def along(mech, path, parts=2):
    """Configurations at and between way-points, closed again."""
    rest, found = np.zeros(mech.nv), [path.q[0]]
    for one, two in zip(path.q[:-1], path.q[1:], strict=True):
        for share in np.arange(1, parts + 1) / parts:
            between = pin.interpolate(mech.model, one, two, share)
            found.append(hc.corrected(mech, between, rest).q)
    return found


def check(mech, path, start, goal, tolerance=1e-9, parts=2):
    """The path is closed, on one side, and the continuation from the motors ends where it ends."""
    rest = np.zeros(mech.nv)
    for q in path.q:
        assert hc.constraint_errors(mech, q, rest).closure < 1e-10
    assert np.abs(pin.difference(mech.model, path.q[0], start)).max() < tolerance
    assert np.abs(pin.difference(mech.model, path.q[-1], goal)).max() < tolerance
    dense = along(mech, path, parts)
    sizes, sides = zip(*[sigma_and_side(mech, q) for q in dense], strict=True)
    assert min(sizes) > 0.95 * MARGIN
    assert set(sides) in ({1.0}, {-1.0})
    assert path.sigma == pytest.approx(sizes[::parts], rel=1e-6)
    estimator = hc.ClosedStateEstimator(mech, start=path.q[0])
    for q in dense:
        found, _ = estimator.state(mech.motor_positions(q), np.zeros(mech.nu))
    assert np.abs(pin.difference(mech.model, found, path.q[-1])).max() < 1e-7


@pytest.mark.parametrize("name", ROBOTS)
def test_it_stays_on_its_sheet(name):
    mech, rng = ROBOTS[name](), np.random.default_rng(1)
    start, goal = same_sheet(mech, rng, 0.8)
    path = hc.connect(mech, start, goal)
    assert np.abs(pin.difference(mech.model, start, goal)).max() > 0.05
    assert len(path.q) >= 21
    assert path.crossing is None
    check(mech, path, start, goal)


def placed(mech, left, right, elbows):
    """The five-bar with its motors at two angles, on the branch of a guess of its elbows."""
    guess = np.array([left, elbows[0], right, elbows[1]])
    return hc.assemble(mech, guess, locked=list(mech.actuated))[0]


def test_the_same_seed_gives_the_same_path():
    mech = five_bar()
    start, goal = placed(mech, 2.0, 1.1, (-1.0, 1.0)), placed(mech, 0.9, 2.4, (-1.0, 1.0))
    one, two, other = (hc.connect(mech, start, goal, seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(one.q, two.q)
    assert one.steps > 30  # not straight
    assert one.q.shape != other.q.shape or not np.array_equal(one.q, other.q)
    assert not one.q.flags.writeable


def points(mech, q):
    """Feet, elbows and tip of the five-bar."""
    q = dict(zip(mech.coordinate_names, q, strict=True))
    found = {}
    for side, x in (("left", -0.1), ("right", 0.1)):
        one = q[f"motor_{side}"]
        two = one + q[f"elbow_{side}"]
        foot = np.array([x, 0.0])
        elbow = foot + 0.2 * np.array([np.cos(one), np.sin(one)])
        found[side] = foot, elbow, elbow + 0.2 * np.array([np.cos(two), np.sin(two)])
    return found


def turn(a, b):
    return np.sign(a[0] * b[1] - a[1] * b[0])


def test_signs_are_those_of_elbows_and_rods():
    """Type 1: arm and rod of a leg in line. Type 2: both rods in line."""
    mech, rng, seen = five_bar(), np.random.default_rng(0), []
    for _ in range(25):
        q = closed_at(mech, rng, np.pi, 1e-3)
        at = points(mech, q)
        arms = {side: (p[1] - p[0], p[2] - p[1]) for side, p in at.items()}
        own = turn(arms["left"][1], arms["right"][1]), turn(*arms["left"]), turn(*arms["right"])
        found = hc.sheet(mech, q, TIP)
        assert found.proof
        assert found.sigma == pytest.approx(sigma_and_side(mech, q)[0])
        assert found.names == (
            "type 2: 'elbow_left', 'elbow_right'",
            "type 1: 'motor_left', 'elbow_left'",
            "type 1: 'motor_right', 'elbow_right'",
        )
        seen.append([*(x * y for x, y in zip(own, found.signs, strict=True)), *own])
    seen = np.array(seen)
    assert (np.abs(seen[:, :3].sum(axis=0)) == len(seen)).all()  # equal, up to one sign each
    assert (np.abs(seen[:, 3:].sum(axis=0)) < len(seen)).all()  # both signs of each occurred


def test_signs_that_differ_prove_that_there_is_no_path():
    mech = five_bar()
    up, down = placed(mech, 2.0, 1.1, (-1.0, 1.0)), placed(mech, 2.0, 1.1, (-3.0, 3.0))
    signs = hc.sheet(mech, up), hc.sheet(mech, down)
    assert signs[0].apart(signs[1]) == ("type 2: 'elbow_left', 'elbow_right'",)
    assert signs[0].apart(signs[0]) == ()
    with pytest.raises(hc.BranchError, match="signs differ") as caught:
        hc.connect(mech, up, down)
    assert caught.value.apart == signs[0].apart(signs[1])
    assert (caught.value.why, caught.value.steps) == ("reach", 0)
    assert caught.value.distance > 1.0
    with pytest.raises(hc.InputError, match="same mechanism and task"):
        signs[0].apart(hc.sheet(mech, up, TIP))


def test_through_type_2_it_crosses_once_and_generically():
    mech = five_bar()
    up, down = placed(mech, 2.0, 1.1, (-1.0, 1.0)), placed(mech, 2.0, 1.1, (-3.0, 3.0))
    path = hc.connect(mech, up, down, through="type 2")
    assert path.sides == (1, -1)
    dense = along(mech, path, 8)
    f = np.array([np.prod(sigma_and_side(mech, q)) for q in dense])
    flips = np.flatnonzero(f[1:] * f[:-1] < 0.0)
    assert flips.size == 1
    low = np.flatnonzero(np.abs(f) < 0.95 * MARGIN)
    near = np.arange(flips[0] - 8, flips[0] + 10)
    assert set(low) <= set(near)  # below the margin beside the crossing only
    slope = np.diff(f[near])
    assert (slope * slope[0] > 0.0).all()  # transversal
    for q in dense[flips[0] : flips[0] + 2]:
        assert np.linalg.svd(rows_of(mech, q), compute_uv=False)[-1] > 0.05
    assert abs(path.crossing - flips[0] / 8) <= 1.0
    assert "through a type-2 singularity" in repr(path)
    steps = np.diff(path.q, axis=0)
    corners = (steps[1:] * steps[:-1]).sum(axis=1)
    sizes = np.linalg.norm(steps, axis=1)
    near = slice(max(path.crossing - 4, 0), path.crossing + 4)
    assert (corners / (sizes[1:] * sizes[:-1]))[near].min() > 0.9  # smooth there


def hinge_of(mech, q):
    return float(hc.joint_motion(mech, "hinge", q).value[0])


def test_limits_of_passive_and_cut_joints_are_kept():
    mech = five_bar()
    start, goal = placed(mech, 2.0, 1.1, (-1.0, 1.0)), placed(mech, 0.4, 2.4, (-1.0, 1.0))
    free = hc.connect(mech, start, goal)
    lower, upper = {"hinge": 0.6, "elbow_left": -2.8}, {"hinge": 2.5, "elbow_left": -1.5}
    assert min(hinge_of(mech, q) for q in free.q) < 0.6
    assert free.q[:, 1].max() > 1.0
    limits = hc.Limits(position={name: (lower[name], upper[name]) for name in lower})
    path = hc.connect(mech, start, goal, limits)
    for q in along(mech, path):
        assert lower["hinge"] <= hinge_of(mech, q) <= upper["hinge"]
        assert lower["elbow_left"] <= q[1] <= upper["elbow_left"]
    end = np.array([0.0, 0.0, 0.0, -2.0 * np.pi])  # the other elbow is free to turn
    check(mech, path, start, goal + end)
    with pytest.raises(hc.LimitError, match=r"start is past 'hinge\.position'"):
        hc.connect(mech, start, goal, hc.Limits(position={"hinge": (0.6, 2.0)}))


def test_a_search_that_ends_says_how_far_it_got():
    """Elbows that may not fold part configurations of one sign: that is known of this five-bar by
    filling its workspace, and no sign shows it."""
    mech = five_bar()
    start, goal = placed(mech, 2.0, 1.1, (-1.0, 1.0)), placed(mech, 0.4, 2.4, (-1.0, 1.0))
    bounds = {"hinge": (0.7, 2.9), "elbow_left": (-3.1, 3.1), "elbow_right": (-3.1, 3.1)}
    limits = hc.Limits(position=bounds)
    with pytest.raises(hc.BranchError, match="equal signs prove nothing") as caught:
        hc.connect(mech, start, goal, limits, steps=500)
    error = caught.value
    assert (error.why, error.apart) == ("reach", ())
    assert 0.5 < error.distance < 4.0
    assert 500 <= error.steps < 900
    assert hc.constraint_errors(mech, error.q, np.zeros(4)).closure < 1e-10
    assert hc.connect(mech, start, error.q, limits).sides == (1,)  # it was reached from the start


def test_whole_turns_of_passive_joints_do_not_count():
    mech = five_bar()
    start, goal = placed(mech, 0.4, 2.4, (1.0, -1.0)), placed(mech, 2.0, 1.1, (-3.0, 3.0))
    turns = np.array([0.0, 2.0, 0.0, -3.0]) * 2.0 * np.pi
    path = hc.connect(mech, start, goal + turns)
    off = (path.q[-1] - goal) / (2.0 * np.pi)
    assert off[[0, 2]] == pytest.approx(0.0, abs=1e-12)
    assert off == pytest.approx(np.round(off), abs=1e-12)
    assert np.abs(np.diff(path.q, axis=0)).max() < 0.5


def test_a_floating_base_moves_too():
    mech = hc.load(hc.robot_file("leg"), free_flyer=True)
    rng, start = np.random.default_rng(2), hc.assemble(mech)[0]
    step = np.zeros(mech.nv)
    step[:6] = 0.4, -0.2, 0.3, 0.5, -0.4, 2.0
    goal = hc.assemble(mech, pin.integrate(mech.model, closed_at(mech, rng, 0.3), step))[0]
    path = hc.connect(mech, start, goal)
    assert path.sides == ()
    assert np.abs(pin.difference(mech.model, path.q[-1], goal)).max() < 1e-9
    parts = [pin.difference(mech.model, a, b) for a, b in zip(path.q[:-1], path.q[1:], strict=True)]
    assert np.linalg.norm(parts, axis=1).max() < 0.2
    assert max(hc.constraint_errors(mech, q, np.zeros(mech.nv)).closure for q in path.q) < 1e-10


@pytest.mark.parametrize("name", ["five_bar", "leg"])
def test_retime_follows_it(name):
    mech, rng = ROBOTS[name](), np.random.default_rng(4)
    start, goal = same_sheet(mech, rng)
    path = hc.connect(mech, start, goal)
    position = hc.limits_of(mech).position
    limits = hc.Limits(velocity=3.0, acceleration=10.0, position=position)
    found = hc.retime(mech, path.q, limits, points=20)
    assert np.abs(pin.difference(mech.model, found.q[-1], path.q[-1])).max() < 1e-6
    assert found.smallest_singular_value > 0.9 * MARGIN
    assert found.duration > 0.1


@pytest.mark.parametrize("through", [None, "type 2"])
def test_redundant_rows_may_become_dependent_on_the_way(through):
    """Bennett's ring turns all the way round; every choice of three of its six rows does not."""
    mech = zoo.bennett()
    start = hc.assemble(mech)[0]
    estimator, home = hc.ClosedStateEstimator(mech, start=start), mech.motor_positions(start)
    for turn in np.linspace(0.0, 2.5, 200):
        goal, _ = estimator.state(home + turn, np.zeros(1))
    assert sigma_and_side(mech, start)[1] != sigma_and_side(mech, goal)[1]
    assert not hc.sheet(mech, start).proof
    path = hc.connect(mech, start, goal, through=through)
    assert (path.sides, path.crossing) == ((), None)
    estimator = hc.ClosedStateEstimator(mech, start=start)
    for q in along(mech, path):
        found, _ = estimator.state(mech.motor_positions(q), np.zeros(1))
        assert np.abs(pin.difference(mech.model, found, q)).max() < 1e-7
        assert sigma_and_side(mech, q)[0] > 0.1
    free = hc.Limits(velocity=3.0, acceleration=10.0)
    plan = hc.retime(mech, path.q, free, points=20, cross=through is not None)
    assert np.abs(pin.difference(mech.model, plan.q[-1], path.q[-1])).max() < 1e-6


def test_start_and_goal_may_be_the_same():
    mech = five_bar()
    start = placed(mech, 2.0, 1.1, (-1.0, 1.0))
    for goal in (start, start + np.array([0.0, 2.0 * np.pi, 0.0, 0.0])):
        path = hc.connect(mech, start, goal)
        assert path.q.shape == (1, 4)
        assert path.q[0] == pytest.approx(start, abs=1e-12)
        assert (path.sides, path.crossing) == ((1,), None)


def with_flywheel(mech):
    """The mechanism, and a body that spins on the base, which no motor drives."""
    model = mech.model.copy()
    zoo.add_body(model, 0, pin.JointModelRZ(), zoo.at(1.0), "flywheel", zoo.bar(0.2))
    return hc.Mechanism(model, mech.constraints, mech.actuated, name="flywheel")


@pytest.mark.parametrize("margin", [1e-3, 1e-2])
def test_no_singularity_is_passed_beside_motions_that_no_motor_drives(margin):
    """There is no determinant then, and places on both sides are near to one another."""
    mech = five_bar()
    up, down = placed(mech, 2.0, 1.1, (-1.0, 1.0)), placed(mech, 2.0, 1.1, (-3.0, 3.0))
    other = placed(mech, 0.9, 2.4, (-1.0, 1.0))
    spinning = with_flywheel(mech)
    ends = [np.append(q, turn) for q, turn in ((up, 0.0), (down, 1.0), (other, 2.0))]
    with pytest.raises(hc.BranchError, match="no path"):
        hc.connect(spinning, ends[0], ends[1], margin=margin, steps=300)
    path = hc.connect(spinning, ends[0], ends[2], margin=margin)
    assert path.sides == ()
    sides = {sigma_and_side(mech, q[:4])[1] for q in along(spinning, path)}
    assert len(sides) == 1


def test_what_is_refused():
    mech = five_bar()
    start, goal = placed(mech, 2.0, 1.1, (-1.0, 1.0)), placed(mech, 0.4, 2.4, (-1.0, 1.0))
    with pytest.raises(hc.InputError, match="goal is not closed"):
        hc.connect(mech, start, goal + 0.01)
    with pytest.raises(hc.InputError, match="through"):
        hc.connect(mech, start, goal, through="type 1")
    with pytest.raises(hc.InputError, match="margin"):
        hc.connect(mech, start, goal, margin=0.0)
    with pytest.raises(hc.SingularityError, match="smaller margin") as caught:
        hc.connect(mech, start, goal, margin=0.3)
    assert caught.value.value == pytest.approx(sigma_and_side(mech, start)[0])
    with pytest.raises(hc.InputError, match="not closed"):
        hc.sheet(mech, start + 0.01)
    with pytest.raises(hc.InputError, match="the task has 1 rows"):
        hc.sheet(mech, start, hc.FrameTask("tip", "x"))


# ------------------------------------------------------------------------------------------ many


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), [("five_bar", 30), ("three_rrr", 12), ("leg", 40)])
def test_random_pairs_of_one_sign_are_joined(name, count):
    mech, rng = ROBOTS[name](), np.random.default_rng(7)
    joined = 0
    for _ in range(count):
        start, goal = same_sheet(mech, rng, np.pi if name != "leg" else 1.0)
        try:  # the estimator wants more room than the path
            path = hc.connect(mech, start, goal, margin=0.04)
        except hc.BranchError:
            continue
        joined += 1
        turns = pin.difference(mech.model, goal, path.q[-1]) / (2.0 * np.pi)
        end = pin.integrate(mech.model, goal, 2.0 * np.pi * np.round(turns))
        check(mech, path, start, end, parts=4)
    assert joined >= 0.95 * count


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), [("five_bar", 20), ("three_rrr", 10)])
def test_random_pairs_of_two_signs_are_joined_through_type_2(name, count):
    mech, rng = ROBOTS[name](), np.random.default_rng(7)
    joined = 0
    while joined < count:
        start, goal = closed_at(mech, rng, np.pi), closed_at(mech, rng, np.pi)
        if sigma_and_side(mech, start)[1] == sigma_and_side(mech, goal)[1]:
            continue
        path = hc.connect(mech, start, goal, through="type 2")
        sides = [sigma_and_side(mech, q)[1] for q in along(mech, path)]
        assert np.count_nonzero(np.diff(sides)) == 1
        joined += 1


@pytest.mark.slow
def test_a_controller_follows_paths_through_type_2():
    """As one motion if one choice of coordinates is regular on all of it, else as three."""
    mech, rng, limits, whole = five_bar(), np.random.default_rng(3), hc.Limits(effort=60.0), []
    for _ in range(40):
        start, goal = closed_at(mech, rng, np.pi), closed_at(mech, rng, np.pi)
        if sigma_and_side(mech, start)[1] == sigma_and_side(mech, goal)[1]:
            continue
        path = hc.connect(mech, start, goal, through="type 2")
        first, last = max(path.crossing - 6, 0), path.crossing + 7
        given = {"limits": limits, "points": 60, "margin": 0.15, "cross": True}
        try:
            plan = hc.retime(mech, path.q, **given)
        except hc.LimitError:  # the motors are too weak where it crosses
            continue
        except hc.InputError as error:
            if "no 2 single coordinates" not in str(error):
                raise
            try:
                plan = hc.retime(mech, path.q[first:last], **given)
            except hc.LimitError:
                continue
            for part in (path.q[: first + 1], path.q[last - 1 :]):
                if len(part) > 1:
                    assert hc.retime(mech, part, limits, points=20).duration > 0.0
            whole.append(False)
        else:
            whole.append(True)
        assert len(plan.crossings) == 1
        control = hc.CrossingControl(mech, plan, limits)
        integrator = hc.Integrator(at_actuation_singularity="record")
        run = hc.simulate(
            mech, control, plan.q[0], plan.v[0], plan.duration + 0.1, frequency=1000,
            integrator=integrator,
        )  # fmt: skip
        assert run.type_2_at == pytest.approx([plan.crossings[0].t], abs=2e-3)
        assert np.abs(run.q[-1] - plan.q[-1]).max() < 1e-5
        if len(whole) > 5 and {True, False} == set(whole):
            return
    raise AssertionError(whole)
