"""Pictures: what is drawn stands where the mechanism is, and what is open is told."""

from __future__ import annotations

import re
import shutil
import sys
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from inside import box_of, frame_of_film
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from PIL import Image

import holoctl as hc
from holoctl.app import palette
from holoctl.app.gif import write_gif
from holoctl.app.palette import OPEN
from holoctl.app.skeleton_lines import view_of
from holoctl.base.tolerances import TOLERANCES


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def five_bar():
    mech = hc.load(hc.robot_file("five_bar"))
    return mech, hc.assemble(mech)[0]


def pendulum(joint=None, lever=(0.0, 0.0, -0.5)):
    model = pin.Model()
    model.name = "pendulum"
    j = model.addJoint(0, joint or pin.JointModelRY(), pin.SE3.Identity(), "pivot")
    body = pin.Inertia(1.0, np.array(lever), 0.01 * np.eye(3))
    model.appendBodyToJoint(j, body, pin.SE3.Identity())
    return hc.Mechanism(model)


def two_turns(off):
    """The second axis nearly parallel to the first."""
    model = pin.Model()
    for i in range(2):
        place = pin.SE3(pin.exp3(np.array([i * off, 0.0, 0.0])), np.array([0.3 * i, 0.0, 0.0]))
        model.addJoint(i, pin.JointModelRY(), place, f"turn_{i}")
    return model


def line(ax, label):
    """The points of what has this label in the legend."""
    (found,) = [x for x in ax.lines if x.get_label() == label]
    data = found.get_data_3d() if hasattr(found, "get_data_3d") else found.get_data()
    return np.array(data, dtype=float).T


def told(ax):
    return " ".join(text.get_text() for text in ax.texts)


def test_joints_motors_and_closures_are_where_they_are(five_bar):
    mech, q = five_bar
    data = mech.model.createData()
    pin.framesForwardKinematics(mech.model, data, q)
    at = {f.name: X.translation[[0, 2]] for f, X in zip(mech.model.frames, data.oMf, strict=True)}
    ax = hc.draw(mech, q)
    np.testing.assert_allclose(line(ax, "motor"), [at["motor_left"], at["motor_right"]])
    np.testing.assert_allclose(line(ax, "closure"), [at["tip"]], atol=1e-12)
    np.testing.assert_allclose(line(ax, "ground"), line(ax, "motor"))
    joints = [at[name] for name in mech.model.names[1:]]
    np.testing.assert_allclose(line(ax, "joint"), joints)
    assert told(ax) == ""
    assert ax.get_title() == "five_bar"


@pytest.mark.parametrize(
    ("name", "names"),
    {"five_bar": "xz", "four_bar": "xz", "delta": "xyz", "leg": "xyz", "stewart": "xyz"}.items(),
)
def test_a_planar_mechanism_is_drawn_in_its_plane(name, names):
    mech = hc.load(hc.robot_file(name), free_flyer=name == "leg")
    ax = hc.draw(mech, mech.reference)
    shown = [getattr(ax, f"get_{x}label")() for x in "xyz"[: len(names)]]
    assert shown == [f"{x} (m)" for x in names]
    floats = name == "leg"
    assert any(x.get_label() == "ground" for x in ax.lines) is not floats


def test_a_plane_at_an_angle_and_one_that_is_chosen():
    turned = pin.JointModelRevoluteUnaligned(1.0, 1.0, 0.0)
    ax = hc.draw(pendulum(turned), [0.0])
    assert ax.get_xlabel() == "along (-0.71, 0.71, 0) (m)"
    assert ax.get_ylabel() == "along (0, 0, 1) (m)"
    rounded = replace(hc.Mechanism(two_turns(1e-5)), tolerance=1e-4)
    assert hc.draw(rounded, [0.1, 0.2]).get_ylabel() == "z (m)"
    assert hc.draw(replace(rounded, tolerance=0.0), [0.1, 0.2]).name == "3d"
    ax = hc.draw(pendulum(), [np.pi / 2], plane="zx")
    bodies = np.array(ax.lines[0].get_data(), dtype=float).T
    np.testing.assert_allclose(bodies[:2], [[0.0, 0.0], [0.0, -0.5]], atol=1e-12)  # to its mass


def test_bars_that_do_not_meet(five_bar):
    mech, _ = five_bar
    model = mech.model.copy()
    j = model.getJointId("motor_right")
    model.jointPlacements[j] = (
        pin.SE3(np.eye(3), np.array([3.0, 0.0, 0.0])) * (model.jointPlacements[j])
    )
    apart = mech.with_model(model)
    with pytest.raises(hc.AssemblyError) as caught:
        hc.assemble(apart)
    ax = hc.draw(apart, caught.value.q)
    ends = line(ax, "does not meet")
    (gap,) = [x for x in ax.lines if x.get_linestyle() == "--"]
    assert to_hex(gap.get_color()) == OPEN
    np.testing.assert_allclose(np.array(gap.get_data(), dtype=float).T[:2], ends)
    assert np.linalg.norm(ends[1] - ends[0]) > 1.0
    assert not [x for x in ax.lines if x.get_label() == "closure"]
    assert told(ax).startswith("1 constraint open: 'tip_hinge', by up to ")


def test_what_has_no_frames_is_told():
    mech = hc.load(hc.robot_file("geared_arm"))
    q, _ = hc.assemble(mech)
    assert told(hc.draw(mech, q)) == ""
    ax = hc.draw(mech, q + 0.1)
    assert "open: " in told(ax)


def test_rods_are_lines():
    mech = pendulum()
    ends = ("pivot", pin.SE3(np.eye(3), np.array([0.0, 0.0, -0.5])))
    ground = ("universe", pin.SE3(np.eye(3), np.array([1.0, 0.0, 0.0])))
    mech = mech.with_constraints(hc.Rod(ground, ends, length=1.0))
    q, _ = hc.assemble(mech)
    rod = line(hc.draw(mech, q), "rod")
    assert np.linalg.norm(rod[1] - rod[0]) == pytest.approx(1.0)


def test_motors_of_slides_are_at_the_middle_of_their_travel():
    mech = hc.load(hc.robot_file("stewart"))
    ax = hc.draw(mech, hc.assemble(mech)[0])
    ends = line(ax, "slide").reshape(6, 3, 3)[:, :2]
    np.testing.assert_allclose(line(ax, "motor"), ends.mean(axis=1))
    assert texts_of(ax.figure.legends[0]) == ["slide", "ground", "joint", "motor", "closure"]


@pytest.mark.parametrize("style", [None, "column", "page", "slide"])
@pytest.mark.parametrize("name", ["delta", "leg", "geared_arm", "ankle"])
def test_a_picture_in_space_is_to_scale_on_white_and_its_texts_do_not_overlap(name, style):
    mech = hc.load(hc.robot_file(name))
    with nullcontext() if style is None else hc.style(style):
        ax = hc.draw(mech, hc.assemble(mech)[0])
        ax.figure.canvas.draw()
    axes = [ax.xaxis, ax.yaxis, ax.zaxis]
    sides = [np.ptp(getattr(ax, f"get_{x}lim")()) for x in "xyz"]
    box = np.array(box_of(ax))
    np.testing.assert_allclose(box / box.max(), np.array(sides) / max(sides))
    assert not any(axis.pane.get_fill() for axis in axes)
    texts = [ax.title, *(axis.label for axis in axes), *ax.figure.legends[0].get_texts()]
    boxes = [text.get_window_extent() for text in texts]
    for i, one in enumerate(boxes):
        assert not any(one.overlaps(other) for other in boxes[:i]), texts[i]
        assert ax.figure.bbox.x0 <= one.x0 < one.x1 <= ax.figure.bbox.x1
        assert ax.figure.bbox.y0 <= one.y0 < one.y1 <= ax.figure.bbox.y1


def test_slides_are_lines_along_their_way():
    mech = hc.load(hc.robot_file("stewart"))
    q, _ = hc.assemble(mech)
    slides = line(hc.draw(mech, q), "slide").reshape(6, 3, 3)  # two ends, and what parts them
    sizes = np.linalg.norm(slides[:, 1] - slides[:, 0], axis=1)
    np.testing.assert_allclose(sizes, np.abs(mech.motor_positions(q)))


def test_frames_and_several_in_one_picture(five_bar):
    mech, q = five_bar
    ax = hc.draw(mech, mech.reference, color="0.85")
    before = len(ax.lines)
    tip = hc.FrameTask("tip", axes="x z")
    assert hc.draw(mech, q, ax, frames=[tip, "elbow_left"]) is ax
    for alone in (tip, "tip", ("elbow_left", pin.SE3.Identity())):
        assert len(hc.draw(mech, q, frames=alone).lines) == before + 3
    assert len(ax.lines) == 2 * before + 6
    assert {"tip", "elbow_left"} <= {text.get_text().strip() for text in ax.texts}


def test_a_wheel_alone_can_be_drawn():
    ax = hc.draw(pendulum(pin.JointModelRUBZ(), (0.0, 0.0, 0.0)), [1.0, 0.0])
    assert line(ax, "joint").tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"plane": "xx"}, "plane must be two axes of the world"),
        ({"plane": 3}, "plane must be two axes"),
        ({"frames": ["tipp"]}, "did you mean 'tip'"),
        ({"ax": "space", "plane": "xz"}, "needs flat axes"),
        ({"frames": 3}, "frames must be names of frames"),
        ({"frames": [hc.CenterOfMassTask()]}, "a frame is the name of a joint"),
        ({"ax": "here"}, "ax must be axes of matplotlib; got str"),
        ({"ax": {"projection": "polar"}}, "or have projection='3d'; got 'polar'"),
        ({"ax": {"xscale": "log"}}, "to scale, on linear axes; that of x is 'log'"),
        ({"color": "no color"}, "color must be a color of matplotlib"),
        ({"color": 3}, "color must be a color of matplotlib"),
        ({"t": "now"}, "t \\(time, s\\) must be a number"),
    ],
)
def test_refusals_of_draw(five_bar, given, said):
    mech, q = five_bar
    if given.get("ax") == "space":
        given = given | {"ax": Figure().add_subplot(projection="3d")}
    if isinstance(given.get("ax"), dict):
        given = given | {"ax": Figure().add_subplot(**given["ax"])}
    with pytest.raises(hc.InputError, match=said):
        hc.draw(mech, q, **given)


def test_axes_that_share_their_limits(five_bar):
    mech, q = five_bar
    _, both = plt.subplots(1, 2, sharex=True, sharey=True)
    for ax in both:
        assert hc.draw(mech, q, ax).get_aspect() == 1.0


NAMES = ["$\\frac{1}{$", "a$b$c", "_left", "two\nlines"]
"""Of which some are no mathematics, and others would be seen as some; a legend skips "_left"."""


def test_names_are_shown_as_they_are(tmp_path):
    model = pin.Model()
    model.name = NAMES[0]
    for name in NAMES:
        model.addJoint(0, pin.JointModelRY(), pin.SE3.Identity(), name)
        model.appendBodyToJoint(
            model.njoints - 1, pin.Inertia(1.0, np.array([0.5, 0.0, 0.0]), 0.01 * np.eye(3)),
            pin.SE3.Identity(),
        )  # fmt: skip
    gear = hc.Coupling({NAMES[0]: 1.0, NAMES[1]: 1.0}, offset=1.0, name="$\\open{")
    mech = hc.Mechanism(model, [gear], NAMES)
    ax = hc.draw(mech, np.zeros(4), frames=NAMES)
    shown = [text.get_text().removeprefix(" ") for text in ax.texts]
    assert shown[1:] == NAMES
    assert ax.get_title() == NAMES[0]
    q, v = hc.assemble(mech)
    run = hc.simulate(mech, None, q, v, 0.01, output=[0.0, 0.01])
    figure = hc.plot_run(mech, run)
    for drawn in (ax.figure, figure):
        drawn.canvas.draw()  # mathematics that is none would be an error
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == NAMES
    assert not any(text.get_parse_math() for text in legend.get_texts())
    assert hc.animate(mech, tmp_path / "run.gif", run).exists()


def test_many_bodies_are_drawn_without_a_workspace_each_time(five_bar, monkeypatch):
    """Pinocchio makes one of 400 joints in seconds."""
    mech, q = five_bar
    hc.draw(mech, q)
    monkeypatch.setattr(type(mech.model), "createData", None)
    hc.draw(mech, q)


def test_axes_that_are_flat_where_the_mechanism_is_not():
    mech = hc.load(hc.robot_file("delta"))
    flat = Figure().add_subplot()
    with pytest.raises(hc.InputError, match="give plane='xz'"):
        hc.draw(mech, mech.reference, flat)
    assert hc.draw(mech, mech.reference, flat, "yz") is flat


# -------------------------------------------------------------------------- runs


@pytest.fixture(scope="module")
def run(five_bar):
    mech, q = five_bar
    ctl = hc.ComputedTorque(mech, kp=400.0, kd=40.0)
    home = mech.motor_positions(q)

    def there(t):
        return home + 0.1 * np.sin(20 * t), np.full(2, 2 * np.cos(20 * t)), np.zeros(2)

    turns = hc.Event(lambda t, q, v: v[0])
    return hc.simulate(mech, ctl.track(there), q, np.zeros(4), 0.2, frequency=200, events=[turns])


def test_a_run_over_time(five_bar, run):
    mech, _ = five_bar
    figure = hc.plot_run(mech, run)
    position, rate, effort, closure = figure.axes
    for ax, values in (
        (position, run.q @ mech.B), (rate, run.v @ mech.B), (effort, run.u),
    ):  # fmt: skip
        for i, name in enumerate(mech.actuator_names):
            (shown,) = [x for x in ax.lines if x.get_label() == name]
            np.testing.assert_allclose(shown.get_data()[1], values[:, i])
    limits = {x.get_ydata()[0] for x in effort.lines if x.get_linestyle() == ":"}
    assert limits == {-20.0, 20.0}
    assert len(run.events) > 0
    for ax in figure.axes:
        (marks,) = [x.get_xdata() for x in ax.lines if x.get_linestyle() == "--"]
        assert np.unique(marks).tolist() == run.events[:, 0].tolist()
    assert closure.get_legend_handles_labels()[1] == ["event 0"]
    assert closure.get_yscale() == "log"


def test_a_run_without_its_mechanism_and_one_without_motors(run):
    labels = [ax.get_ylabel() for ax in hc.plot_run(None, run).axes]
    assert labels == ["q (rad or m)", "v (rad/s or m/s)", "effort (N m or N)", "closure (scaled)"]
    mech = pendulum(pin.JointModelRUBY())
    free = hc.simulate(mech, None, [1.0, 0.0], [1.0], 0.1)
    figure = plt.figure()
    assert hc.plot_run(mech, free, figure=figure) is figure
    names = [ax.get_ylabel() for ax in figure.axes]
    assert names == ["q (as in the model)", "rate (rad/s)", "closure (scaled)"]  # cosine and sine
    assert hc.plot_run(None, free).axes[0].get_ylabel() == "q (as in the model)"


def texts_of(legend):
    return [text.get_text() for text in legend.get_texts()]


def test_the_one_legend_stands_inside_a_figure_that_was_given(five_bar, run):
    figure = plt.figure()
    hc.plot_run(five_bar[0], run, figure=figure)
    figure.canvas.draw()
    (legend,) = figure.legends
    assert texts_of(legend) == ["motor_left", "motor_right", "limit", "event 0"]
    assert not any(ax.get_legend() for ax in figure.axes)
    seen, lowest = legend.get_window_extent(), figure.axes[-1].get_tightbbox()
    assert figure.bbox.x0 <= seen.x0 < seen.x1 <= figure.bbox.x1
    assert figure.bbox.y0 <= seen.y0 < seen.y1 <= lowest.y0


def test_the_legend_has_the_names_of_all_panels_and_says_how_many_it_leaves_out(run):
    assert texts_of(hc.plot_run(None, run).legends[0]) == ["[0]", "[1]", "[2]", "[3]", "event 0"]
    free = hc.simulate(pendulum(pin.JointModelRUBY()), None, [1.0, 0.0], [1.0], 0.01)
    figure = hc.plot_run(pendulum(pin.JointModelRUBY()), free)
    assert texts_of(figure.legends[0]) == ["q[0]", "q[1]", "pivot"]
    model = pin.Model()
    for i in range(15):
        joint = model.addJoint(0, pin.JointModelRY(), pin.SE3.Identity(), f"j{i}")
        model.appendBodyToJoint(joint, pin.Inertia(1.0, np.zeros(3), np.eye(3)), pin.SE3.Identity())
    many = hc.Mechanism(model, [], [f"j{i}" for i in range(15)])
    still = hc.simulate(many, None, np.zeros(15), np.zeros(15), 0.01)
    assert texts_of(hc.plot_run(many, still).legends[0])[-2:] == ["j11", "(3 more)"]


def test_why_a_run_ended_is_told_whole(five_bar, run):
    why = ("SingularityError: " + "the motors barely move it here, " * 8).strip(", ")
    figure = hc.plot_run(five_bar[0], replace(run, ended=why))
    figure.canvas.draw()
    title = figure.axes[0].title
    assert title.get_text().replace("\n", " ").endswith(why)
    seen = title.get_window_extent()
    assert figure.bbox.x0 <= seen.x0 < seen.x1 <= figure.bbox.x1
    assert seen.y1 <= figure.bbox.y1


def test_turns_are_counted_and_singular_configurations_marked(run):
    mech = replace(pendulum(pin.JointModelRUBY()), actuated=["pivot"])
    free = hc.simulate(mech, None, [1.0, 0.0], [20.0], 1.0, frequency=100)
    free = replace(free, crossings=np.array([0.5]), repartitions=np.array([0.2, 0.3]))
    ax, *_, last = hc.plot_run(mech, free).axes
    assert ax.lines[0].get_ydata().max() > 4 * np.pi
    assert last.get_legend_handles_labels()[1] == [
        "singular configuration crossed",
        "other rows or coordinates",
    ]


def test_turns_are_counted_between_instants_that_are_far_apart():
    mech = replace(pendulum(pin.JointModelRUBY(), (0.0, 0.0, 0.0)), actuated=["pivot"])
    free = hc.simulate(mech, None, [1.0, 0.0], [20.0], 2.0, output=np.linspace(0.0, 2.0, 9))
    angle = hc.plot_run(mech, free).axes[0].lines[0].get_ydata()
    np.testing.assert_allclose(angle, 20.0 * free.t, atol=1e-6)


def test_rounded_geometry_is_judged_by_its_tolerance(tmp_path):
    """As its certificate judges it: rows that repeat others nearly stay open."""
    exact = hc.robot_file("four_bar")
    rounded = tmp_path / "rounded.urdf"
    rounded.write_text(exact.read_text("utf-8").replace('xyz="0 -1 0"', 'xyz="1e-5 -1 0"', 1))
    rounded.with_suffix(".yaml").write_text(exact.with_suffix(".yaml").read_text("utf-8"))
    for file, most in ((exact, TOLERANCES["closure"]), (rounded, 1e-4)):
        mech = hc.load(file)
        assert mech.tolerance == 1e-4
        run = hc.simulate(mech, None, *hc.assemble(mech), 0.01, output=[0.0, 0.01])
        closure = hc.plot_run(mech, run).axes[-1]
        (dotted,) = [x.get_ydata()[0] for x in closure.lines if x.get_linestyle() == ":"]
        assert dotted == most
        assert run.closure.max() < most
        assert told(hc.draw(mech, run.q[0])) == ""
        slightly_open = run.q[0] + [3e-5, 0.0, 0.0]
        assert hc.constraint_errors(mech, slightly_open).closure < 1e-4
        open_ends = told(hc.draw(mech, slightly_open))
        assert open_ends.startswith("1 constraint open" if file == exact else "")


def test_instants_that_are_not_in_order(five_bar, run, tmp_path):
    mech, _ = five_bar
    off = run.q.copy()
    off[7] = np.nan
    bad = {
        "must not decrease": {"t": run.t[::-1]},
        "must be finite": {"t": np.where(run.t > 0.1, np.nan, run.t)},
        "this run has 5 instants, but 41 rows of q": {"t": run.t[:5]},
        "not finite at instant 7": {"q": off},
    }
    for said, given in bad.items():
        with pytest.raises(hc.InputError, match=said):
            hc.animate(mech, tmp_path / "run.gif", replace(run, **given))
        with pytest.raises(hc.InputError, match=said):
            hc.plot_run(mech, replace(run, **given))
    assert not list(tmp_path.iterdir())


def test_thousands_of_events_are_one_line(run):
    many = replace(run, events=np.column_stack([np.linspace(0.0, 0.2, 5000), np.zeros(5000)]))
    assert len(hc.plot_run(None, many).axes[-1].lines) == 3


def times_of(path):
    """Milliseconds that each picture of a film stays."""
    with Image.open(path) as film:
        found = []
        for i in range(film.n_frames):
            film.seek(i)
            found.append(film.info["duration"])
    return found


def test_a_film_shows_all_that_it_comes_to():
    """A body that is far away for an instant stays within the frame."""
    mech = pendulum(pin.JointModelPX())
    t = np.linspace(0.0, 60.0, 6001)
    q = np.zeros((t.size, 1))
    q[3010:3040] = 2.0
    view, _ = view_of(mech, q[0], None)
    some = hc.simulate(mech, None, [0.0], [0.0], 0.01)
    shown = list(range(0, t.size, 4))
    low, high = frame_of_film(replace(some, t=t, q=q), mech, view, shown)
    assert low[0] < 0.0
    assert high[0] > 2.0


def test_a_film_keeps_its_pictures_and_its_time(tmp_path):
    """Read back by Pillow: points of the pictures, and a stay longer than a gif tells at once."""
    rng = np.random.default_rng(0)
    first = np.full((40, 60, 3), 255, dtype=np.uint8)
    second = first.copy()
    second[10:20, 30:50] = rng.choice([0, 128, 255], size=(10, 20, 1))
    pictures = [*[Image.fromarray(first)] * 3, Image.fromarray(second), Image.fromarray(first)]
    write_gif(tmp_path / "film.gif", pictures, 30000)
    with Image.open(tmp_path / "film.gif") as film:
        assert film.info["loop"] == 0
        for i, points in enumerate((first, first, second, first)):
            film.seek(i)
            assert np.abs(np.asarray(film.convert("RGB")).astype(int) - points).max() < 8
    assert times_of(tmp_path / "film.gif") == [655350, 244650, 300000, 300000]


def test_a_film_in_real_time(five_bar, run, tmp_path, capfd):
    mech, _ = five_bar
    path = hc.animate(mech, tmp_path / "new" / "run.gif", run, frequency=15, progress=True)
    assert times_of(path) == [70] * 4  # at 0, 0.07, 0.14 s, and the end
    assert "animating" in capfd.readouterr().err


def test_a_film_in_space_and_slower(tmp_path):
    mech = hc.load(hc.robot_file("leg"), free_flyer=True)
    q, v = hc.assemble(mech)
    falls = hc.simulate(mech, None, q, v, 0.1, output=[0.0, 0.1])
    path = hc.animate(mech, str(tmp_path / "leg.gif"), falls, speed=0.5, frequency=10.0)
    assert times_of(path) == [200, 100]  # what is alike is one picture, that stays as long


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"path": "run.avi"}, "the suffix of path must be one of '.gif', '.mp4'"),
        ({"speed": 0.0}, "speed must be above zero"),
        ({"frequency": 1e-3}, "lasts at most 655.35 s; frequency=0.001"),
        ({"frequency": -1.0}, "frequency .* must be above zero"),
        ({"speed": 1e-6}, "this film would have 5e\\+06 pictures"),
        ({"plane": "ab"}, "plane must be two axes"),
        ({"color": "no color"}, "color must be a color"),
        ({"path": "run.png/run.gif"}, "cannot be written"),
        ({"path": "run.mp4"}, "needs the program ffmpeg"),
    ],
)
def test_refusals_of_animate(five_bar, run, given, said, tmp_path, monkeypatch):
    (tmp_path / "run.png").write_text("")
    monkeypatch.setattr("matplotlib.animation.FFMpegWriter.isAvailable", lambda: False)
    given = {"path": "run.gif"} | given
    with pytest.raises(hc.InputError, match=said):
        hc.animate(five_bar[0], tmp_path / given.pop("path"), run, **given)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not there")
def test_a_film_by_ffmpeg(five_bar, run, tmp_path):
    path = hc.animate(five_bar[0], tmp_path / "run.mp4", run)
    assert path.stat().st_size > 1000
    assert path.read_bytes()[4:8] == b"ftyp"


def test_what_is_no_run_of_this_mechanism(run, tmp_path):
    other = hc.load(hc.robot_file("four_bar"))
    with pytest.raises(hc.InputError, match="this run is of another mechanism"):
        hc.plot_run(other, run)
    with pytest.raises(hc.InputError, match="this run is of another mechanism"):
        hc.animate(other, tmp_path / "run.gif", run)
    with pytest.raises(hc.InputError, match="run must be a Run"):
        hc.plot_run(None, other)
    with pytest.raises(hc.InputError, match="mech must be a Mechanism"):
        hc.plot_run("four_bar", run)
    with pytest.raises(hc.InputError, match="path must be that of a file"):
        hc.animate(other, 3, run)
    with pytest.raises(hc.InputError, match="figure must be one of matplotlib"):
        hc.plot_run(None, run, figure="new")
    with pytest.raises(hc.InputError, match="give mech too"):
        hc.plot_run(None, run, limits=hc.Limits(effort=1.0))


# ------------------------------------------------------------------- colors and styles


def test_roles_have_different_colors_and_most_of_them_differ_in_grey():
    roles = [getattr(palette, x) for x in ("BODY", "MOTOR", "CLOSURE", "OPEN", "FORCE", "ALLOWED")]
    assert len({*roles}) == len(roles)
    grey = {x: np.dot(palette.rgb(x), [0.2126, 0.7152, 0.0722]) for x in roles}
    assert grey[palette.MOTOR] - grey[palette.CLOSURE] > 60.0
    assert grey[palette.MOTOR] - grey[palette.OPEN] > 60.0
    for i in range(0, len(palette.CURVES), 2):
        one, other = (np.dot(palette.rgb(palette.curve(k)), [0.3, 0.6, 0.1]) for k in (i, i + 1))
        assert palette.dash(i) == palette.dash(i + 1)
        assert abs(one - other) > 20.0
    assert palette.rgb("#0b5fa5") == (11, 95, 165)


@pytest.mark.parametrize(("name", "width"), {"column": 88.9, "page": 181.9, "slide": 254.0}.items())
def test_a_style_sets_size_and_fonts_and_takes_them_back(five_bar, run, name, width, tmp_path):
    before = dict(plt.rcParams)
    with hc.style(name):
        drawn, over_time = hc.draw(*five_bar).figure, hc.plot_run(five_bar[0], run)
        for figure in (drawn, over_time):
            assert 25.4 * figure.get_figwidth() == pytest.approx(width, abs=0.1)
        drawn.savefig(tmp_path / "robot.pdf")
        bodies = drawn.axes[0].lines[0]
        assert bodies.get_linewidth() == pytest.approx(2.5 / 1.5 * plt.rcParams["lines.linewidth"])
    assert dict(plt.rcParams) == before
    pdf = (tmp_path / "robot.pdf").read_bytes()
    size = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ", pdf)
    assert float(size[1]) / 72.0 * 25.4 == pytest.approx(width, abs=0.1)
    assert b"/FontFile2" in pdf  # TrueType, embedded


def test_a_style_of_another_size():
    for given in ("85 mm", "8.5cm", "3.3464567 in"):
        with hc.style("column", width=given, height="60 mm"):
            size = plt.rcParams["figure.figsize"]
            assert np.multiply(size, 25.4).tolist() == pytest.approx([85.0, 60.0])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "colum"}, "must be one of 'column', 'page', 'slide'; got 'colum' .did you"),
        ({"name": 3}, "must be one of 'column', 'page', 'slide'"),
        ({"width": 85}, "width must be a positive length with its unit, as '88.9 mm'.*; got 85"),
        ({"width": "85"}, "width must be a positive length with its unit"),
        ({"width": "-1 mm"}, "got '-1 mm'"),
        ({"height": "nan in"}, "height must be a positive length"),
        ({"height": "10 px"}, "height must be a positive length"),
    ],
)
def test_refusals_of_style(given, said):
    with pytest.raises(hc.InputError, match=said):
        hc.style(**given)


def test_without_matplotlib(five_bar, run, monkeypatch, tmp_path):
    mech, q = five_bar
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for call in (
        lambda: hc.draw(mech, q),
        lambda: hc.plot_run(mech, run),
        lambda: hc.style("column"),
        lambda: hc.animate(mech, tmp_path / "run.gif", run),
    ):
        with pytest.raises(hc.InputError, match="pip install 'holoctl\\[plot\\]'"):
            call()
