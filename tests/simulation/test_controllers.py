"""What a controller, a reference and a plant of a simulation must be."""

from __future__ import annotations

import contextlib
import pickle

import numpy as np
import pytest
from refusals import refused, simulated, with_motors
from zoo import five_bar

import holoctl as hc

RETURNS = {
    "nothing": None, "a word": "full", "too many": np.zeros(2), "a matrix": np.zeros((1, 1)),
    "none": [], "NaN": [np.nan], "infinity": np.array([np.inf]), "words": ["a"],
}  # fmt: skip


@pytest.mark.parametrize("hold", [True, False])
@pytest.mark.parametrize("junk", RETURNS)
def test_what_a_controller_must_not_return(s, junk, hold):
    """At once, or later: the note on the error has the name and the time."""

    def controller(t, q, v):
        return np.zeros(1) if t < 0.003 else RETURNS[junk]

    e = refused(
        lambda: hc.simulate(
            s.mech, controller, s.q, s.v, 0.01, integrator=hc.Integrator(hold=hold)
        ),
        hc.InputError,
        "controller",
    )
    (note,) = e.__notes__
    assert "four_bar" in note
    assert "t = 0.003 s" in note or not hold
    assert e.time >= 0.003
    assert e.run.t[-1] <= 0.003


def test_the_note_survives_pickling(s):
    e = refused(lambda: hc.simulate(s.mech, lambda t, q, v: None, s.q, s.v, 0.01))
    assert pickle.loads(pickle.dumps(e)).__notes__ == e.__notes__
    assert "t = 0 s" in e.__notes__[0]


def test_an_error_of_the_controller_itself_comes_through(s):
    def controller(t, q, v):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        hc.simulate(s.mech, controller, s.q, s.v, 0.01)


@pytest.mark.parametrize("hold", [True, False])
def test_a_controller_that_writes_into_its_arguments_moves_nothing(s, hold):
    def vandal(t, q, v):
        with contextlib.suppress(ValueError):  # read-only arguments are fine too
            q[:], v[:] = 7.0, 7.0
        return np.zeros(1)

    run = hc.simulate(s.mech, vandal, s.q, s.v, 0.003, integrator=hc.Integrator(hold=hold))
    assert np.array_equal(run.q, simulated(s, duration=0.003, hold=hold).q)


@pytest.mark.parametrize("junk", [5, "track", np.zeros(1)])
def test_what_is_no_controller_is_refused(s, junk):
    refused(lambda: hc.simulate(s.mech, junk, s.q, s.v, 0.01), hc.InputError, "controller")


@pytest.mark.parametrize("junk", [None, 5, "circle", (1.0, 0.0, 0.0)])
def test_what_is_no_reference_is_refused(s, junk):
    refused(lambda: s.ctl.track(junk), hc.InputError, "reference")


@pytest.mark.parametrize(
    "returned",
    [None, 5, "abc", [], ([1.0], [0.0]), ([1.0], [0.0], [0.0], [0.0]), ([1.0], None, [0.0]),
     ([np.nan], [0.0], [0.0]), ([1.0, 2.0], [0.0], [0.0]), (["a"], [0.0], [0.0])],
)  # fmt: skip
def test_what_a_reference_must_not_return(s, returned):
    controller = s.ctl.track(lambda t: returned)
    refused(lambda: controller(0.0, s.q, s.v), hc.InputError)
    e = refused(lambda: hc.simulate(s.mech, controller, s.q, s.v, 0.01), hc.InputError)
    assert "t = 0 s" in e.__notes__[0]


def test_a_plant_that_does_not_match_is_refused(s):
    for plant, what in ((five_bar(), "coordinates"), (with_motors(s.mech, "rocker"), "motors")):
        refused(
            lambda plant=plant: hc.simulate(
                s.mech, lambda t, q, v: [0.0], s.q, s.v, 0.01, plant=plant
            ),
            hc.InputError, "plant", what,
        )  # fmt: skip


def test_a_controller_that_is_asked_for_another_partition_moves_nothing(s):
    """It sees copies, and what it returns must be a controller."""
    mech, q, v = s.mech, s.q, s.v
    seen = []

    class Asked:
        then: object = None

        def __call__(self, t, q, v):
            return np.full(mech.nu, 0.5)

        def repartitioned(self, q, v, t):
            seen.append(t)
            q[:], v[:] = 7.0, 7.0
            return self.then or self

    asked = Asked()
    run = hc.simulate(mech, asked, q, v, 0.5)
    assert seen
    plain = hc.simulate(mech, lambda t, q, v: np.full(mech.nu, 0.5), q, v, 0.5)
    np.testing.assert_array_equal(run.q, plain.q)
    asked.then = 3
    with pytest.raises(
        hc.InputError, match=r"repartitioned.*must be a function \(t, q, v\) -> u; got"
    ) as error:
        hc.simulate(mech, asked, q, v, 0.5)
    assert error.value.time == seen[-1]
