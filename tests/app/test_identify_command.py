"""`holoctl identify`: what it reads, prints and writes; `plot_fit`."""

from __future__ import annotations

import csv
import io
import json
from functools import cache

import numpy as np
import pytest

import holoctl as hc
from holoctl.app.cli import main
from holoctl.app.identification_plot import FITTED, PRIOR
from holoctl.app.identify_command import untold

MASS, VISCOUS = 1.25, 0.3


@cache
def motion(w=6.0):
    """A four-bar with 1.25 times the masses of its file, and friction of its motor."""
    mech = hc.load(hc.robot_file("four_bar"))
    t = np.arange(0.0, 4.0, 0.004)
    x, v, a = 1.0 + 0.4 * np.sin(w * t), 0.4 * w * np.cos(w * t), -0.4 * w**2 * np.sin(w * t)
    sensors, inverse = hc.ClosedStateEstimator(mech), hc.PreparedInverseDynamics(mech)
    u = [inverse.torque(*sensors.state([x[i]], [v[i]]), [a[i]])[0] for i in range(t.size)]
    noise = 0.01 * np.random.default_rng(0).standard_normal(t.size)
    return t, x, MASS * np.array(u) + VISCOUS * v + noise


def log(path, w=6.0, names=("t", "crank.q", "crank.u")):
    t, x, u = motion(w)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *np.column_stack([t, x, u]).tolist()])
    return str(path)


def run(capsys, *arguments):
    code = main(["identify", *arguments])
    return code, capsys.readouterr()


@cache
def fitted():
    t, x, u = motion()
    mech = hc.load(hc.robot_file("four_bar"))
    data = hc.regression(hc.Parameters(mech, friction="motors"), hc.Measurements(t, x, u))
    return hc.identify(data, mech), data


def test_a_log_gives_a_robot_a_report_and_files(capsys, tmp_path):
    files = [tmp_path / f"found.{x}" for x in ("json", "html", "png")]
    code, out = run(
        capsys, log(tmp_path / "log.csv"), "four_bar", "--friction", "motors",
        "--test", log(tmp_path / "other.csv", 4.0), "--save", str(tmp_path / "new.yaml"),
        *(x for file in files for x in ("--out", str(file))),
    )  # fmt: skip
    assert code == 0
    for title in ("diagnosis", "rank", "noise", "strength", "errors on the test log", "residuals",
                  "parameters", "what the log does not tell apart"):  # fmt: skip
        assert f"\n{title}" in out.out
    found = json.loads(files[0].read_text())
    assert found["errors"]["crank"]["prior"] > 0.15
    assert found["errors"]["crank"]["fit"] < 0.02
    assert found["parameters"]["crank.viscous"]["fit"] == pytest.approx(VISCOUS, rel=0.05)
    assert found["rank"]["of_log"] == len(found["base_parameters"]) <= found["rank"]["of_motions"]
    page = files[1].read_text()
    assert "<svg" in page
    assert "errors on the test log" in page
    assert files[2].stat().st_size > 10_000
    again = hc.load(tmp_path / "new.urdf")
    (friction,) = again.forces
    assert friction.viscous["crank"] == found["parameters"]["crank.viscous"]["fit"]


def test_names_of_columns_currents_and_tables(capsys, tmp_path):
    _, x, u = motion()
    np.savez(tmp_path / "log.npz", stamp=motion()[0], enc=x, amp=u / 0.5)
    arguments = [
        str(tmp_path / "log.npz"), "four_bar", "--friction", "motors", "--gain", "0.5", "--csv",
        "--columns", "t=stamp", "--columns", "crank.q=enc", "--columns", "crank.u=amp",
    ]  # fmt: skip
    code, out = run(capsys, *arguments)
    rows = list(csv.reader(io.StringIO(out.out)))
    fit, _ = fitted()
    assert code == 0
    assert rows[0] == ["parameter", "prior", "fit"]
    assert [row[0] for row in rows[1:]] == list(fit.model.names)
    assert np.allclose([float(row[2]) for row in rows[1:]], fit.p, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("change", "more", "says"),
    [
        ({"names": ("t", "crank.q", "crank.effort")}, [], "no column is a effort"),
        ({"names": ("t", "krank.q", "crank.u")}, [], "no joint 'krank'"),
        ({"names": ("t", "crank.q", "krank.u")}, [], "'krank'"),
        ({}, ["--columns", "crank.q"], "--columns takes NAME=COLUMN"),
        ({}, ["--columns", "t=t", "--columns", "t=u"], "--columns: 't' is given twice"),
        ({}, ["--gain", "1,2"], "--gain takes one number, or one for each of 'crank'; got 2"),
        ({}, ["--save", "new.urdf"], "--save takes a file that ends with .yaml"),
        ({}, ["--cutoff", "200"], "cutoff"),
        ({}, ["--measured", "nobody"], "nobody"),
    ],
)
def test_what_is_wrong_is_told(capsys, tmp_path, change, more, says):
    code, out = run(capsys, log(tmp_path / "log.csv", **change), "four_bar", *more)
    assert code == 1
    assert says in out.err
    assert out.out == ""


def test_friction_that_the_model_lacks_is_named(capsys, tmp_path, caplog):
    code, out = run(capsys, log(tmp_path / "log.csv"), "four_bar")
    assert code == 0
    assert "efforts of 'crank' unexplained" in caplog.text
    assert "residuals of 'crank' are no noise" in caplog.text
    assert "follows the rate: viscous friction (friction=)" in out.out


def test_a_log_is_told_what_is_wrong_before_a_fit_fails(capsys, tmp_path, caplog):
    t, x, u = motion()
    np.savez(tmp_path / "log.npz", **{"t": t, "crank.q": x, "crank.u": -u})
    code, out = run(capsys, str(tmp_path / "log.npz"), "four_bar", "--friction", "motors",
                    "--save", str(tmp_path / "new.yaml"))  # fmt: skip
    assert code == 1
    assert "with the efforts of 'crank' negated" in out.err
    assert out.out == ""
    assert "are lost in noise" in caplog.text
    assert not (tmp_path / "new.yaml").exists()


def test_a_bad_fit_is_told(capsys, tmp_path, caplog):
    code, out = run(capsys, log(tmp_path / "log.csv"), "four_bar", "--lag", "0")
    assert code == 0
    assert "the fit misses the efforts of 'crank' by " in caplog.text
    assert "even the best parameters leave" in out.out


@pytest.mark.parametrize("name", ["none.csv", "log.txt", "empty.csv"])
def test_files_that_are_no_logs(capsys, tmp_path, name):
    (tmp_path / "log.txt").write_text("t,crank.q\n")
    (tmp_path / "empty.csv").write_text("")
    code, out = run(capsys, str(tmp_path / name), "four_bar")
    assert code == 1
    assert name in out.err or ".txt" in out.err


def test_saved_robots_are_not_overwritten(capsys, tmp_path):
    (tmp_path / "robot.urdf").write_text("mine")
    code, out = run(capsys, log(tmp_path / "log.csv"), "four_bar",
                    "--save", str(tmp_path / "robot.yaml"))  # fmt: skip
    assert code == 1
    assert "robot.urdf exists and is not overwritten" in out.err
    assert (tmp_path / "robot.urdf").read_text() == "mine"
    assert not (tmp_path / "robot.yaml").exists()


def test_what_is_not_told_apart_names_every_other_parameter_once():
    base = fitted()[0].base
    told = untold(base)
    (unseen,) = [x for x in told if x.endswith(": no influence")]
    assert "my, Ixx".replace("my", "m y") in unseen
    together = [x for x in told if ": only together with " in x]
    dependent = [x for x in base.model.names if x not in base.independent + base.unseen]
    assert len(dependent) > 0
    assert 0 < len(together) <= len(dependent)


def test_a_fit_is_drawn():
    fit, data = fitted()
    figure = hc.plot_fit(fit, data)
    bodies, efforts, residuals, rates = figure.axes
    assert efforts.get_title() == "crank"
    measured, prior, predicted = (x.get_ydata() for x in efforts.lines)
    assert np.array_equal(measured, data.y[:, 0])
    assert np.allclose(prior, data.W[:, 0] @ fit.prior)
    assert np.allclose(predicted, data.W[:, 0] @ fit.p)
    assert np.ptp(residuals.lines[0].get_ydata()) > 5.0 * np.ptp(residuals.lines[1].get_ydata())
    v = rates.lines[0].get_xdata()
    assert np.allclose(v, data.v @ fit.model.mech.B[:, 0])
    assert np.ptp(v) > 1.0
    of = {color: [x for x in bodies.lines if x.get_color() == color and len(x.get_xdata()) > 20]
          for color in (PRIOR["color"], FITTED["color"])}  # fmt: skip
    assert [len(x) for x in of.values()] == [len(fit.ellipsoids())] * 2


def test_outlines_are_those_of_the_ellipsoids():
    """The largest distance of an outline from its centre is that of the ellipsoid in the view."""
    fit, data = fitted()
    (bodies, *_) = hc.plot_fit(fit, data).axes
    lines = [x for x in bodies.lines if x.get_color() == FITTED["color"] and
             len(x.get_xdata()) > 20]  # fmt: skip
    for (_, one), line in zip(fit.ellipsoids().values(), lines, strict=True):
        points = np.column_stack(line.get_data())
        reach = np.linalg.norm(points - points[:-1].mean(axis=0), axis=1).max()
        seen = np.linalg.norm((one.rotation * one.semi_axes)[[0, 2]], 2)  # turned about y alone
        assert reach == pytest.approx(seen, rel=2e-3)
        assert reach > 1e-3


def test_only_fits_are_drawn():
    fit, data = fitted()
    with pytest.raises(hc.InputError, match=r"result of hc\.identify; got str"):
        hc.plot_fit("fit", data)
    with pytest.raises(hc.InputError, match=r"result of hc\.regression; got Measurements"):
        hc.plot_fit(fit, data.measurements)


def test_least_squares_have_no_bodies_and_are_drawn_without():
    _, data = fitted()
    figure = hc.plot_fit(hc.identify(data, method="least squares"), data)
    assert [ax.get_title() for ax in figure.axes] == ["crank", "", ""]
