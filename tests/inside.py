"""What tests look at inside, each in one place: it has no public name yet."""

from __future__ import annotations

import html
import json
import re
from types import SimpleNamespace

import numpy as np
import pinocchio as pin

import holoctl as hc
from holoctl.app import animate as film
from holoctl.base.tolerances import INVERSE_DOUBT
from holoctl.dynamics.tick import forward_tick, inverse_tick
from holoctl.dynamics.tick.constraints_and_tree import TickState, numeric_constraints, numeric_tree
from holoctl.dynamics.tick.inverse_by_projection import general_acceleration, general_efforts
from holoctl.io import urdf
from holoctl.projector.coordinate_split import split_rows
from holoctl.simulation import motion
from holoctl.tree.live_motion import live_motion


def general_path(prepared, *state):
    """What a prepared dynamics answers where its fast path has doubts: the oracle."""
    mech, part = prepared.mech, prepared.partition
    if isinstance(prepared, hc.PreparedForwardDynamics):
        return general_acceleration(mech, part, *state)
    return general_efforts(mech, part, options_of(prepared), *state)


def fast_path(prepared):
    """The fast path alone: None, as a whole or at a state, where the general one answers."""
    mech, part = prepared.mech, prepared.partition
    if isinstance(prepared, hc.PreparedForwardDynamics):
        return forward_tick.prepare(mech, part)
    found = inverse_tick.prepare(mech, part, options_of(prepared))
    if found is None:
        return None
    tick = found.tick
    return lambda q, v, target, t, efforts, rates=None: tick(q, v, target, t, efforts, rates)


def options_of(prepared):
    """What both paths of an inverse dynamics depend on besides the partition."""
    return prepared._paths.options


def last_solve(prepared):
    """What may be asked after the last answer of an inverse dynamics."""
    return prepared._paths.last()


def prepared_of(controller):
    """The inverse dynamics that a controller goes through."""
    return controller._prepared


def prepared_of_tasks(controller):
    """The inverse dynamics that a law of tasks goes through."""
    return controller._own.prepared


def workspace(prepared):
    """The fast path that this thread holds; None before the first call."""
    forward = isinstance(prepared, hc.PreparedForwardDynamics)
    local = prepared._local if forward else prepared._paths.local
    return getattr(local, "tick", None)


def was_fast(prepared):
    """Whether the fast path gave the last answer in this thread."""
    return prepared._paths.local.fast


def sparse_path(prepared):
    """Of the forward dynamics, the part of the fast path that goes through Pinocchio."""
    tick = forward_tick.sparse_tick(prepared.mech, prepared.partition)
    return None if tick is None else lambda q, v, tau, t=0.0: tick(q, v, tau, t)


def with_balls(model, balls):
    """A model of a file with some of its joints replaced by balls."""
    return urdf._with_balls(model, balls)


def shown(model):
    """The names of what a frozen model has handed out copies of."""
    return set(model._shown)


def rows_decided_by(monkeypatch, decide):
    """Of simulations, who decides rows anew: ``decide(usual, mech, partition, look, ...)``."""
    usual = motion.better_rows
    monkeypatch.setattr(motion, "better_rows", lambda *given: decide(usual, *given))


class Hand:
    """What a hand on the page of a view does, without a browser, and what is then read there."""

    BY_HAND = SimpleNamespace(client=object())

    def __init__(self, view):
        self._page = view._page

    @property
    def posture(self):
        return self._page.posture

    @property
    def told(self):
        """Above the sliders."""
        return self._page._pose_text.content

    @property
    def time_told(self):
        return self._page._clock.content

    @property
    def words_of_the_run(self):
        """Below the chart."""
        return self._page._film_text.content

    @property
    def button(self):
        """Play, or Pause."""
        return self._page._button.label

    @property
    def plays(self):
        return self._page._plays

    @property
    def red(self):
        """How many things are shown as open."""
        return len(self._page._scene._open)

    @property
    def held(self):
        """The table of holding efforts."""
        return self._page._held.content

    @property
    def doctor(self):
        return self._page._doctor.content

    @property
    def motions(self):
        """As the buttons play them."""
        return tuple(self._page._found.values())

    @property
    def values(self):
        """Of the sliders."""
        return np.array([slider.value for slider in self._page._sliders])

    @property
    def lock(self):
        """Held, nothing moves."""
        return self._page._lock

    @property
    def singular(self):
        """Singular values and side, None for those that are not shown."""
        found = re.search(r'data-values="([^"]*)"', self._page._singular.content)[1]
        return json.loads(html.unescape(found))

    @property
    def cursor(self):
        """The share of the film that the cursor is at; None if it is hidden."""
        text = self._page._clock.content
        if not text or "hidden" in text:
            return None
        return float(re.search(r"--holoctl-share: ([^;]*);", text)[1])

    @property
    def examined(self):
        """The configuration that the doctor's words are of."""
        return self._page._examined

    @property
    def time(self):
        """Of the shown configuration."""
        return self._page._t

    @property
    def film(self):
        return self._page._film

    @property
    def overlays(self):
        return self._page._scene.overlays

    @property
    def rods(self):
        return self._page._scene._drawn_bars

    def slider(self, motor):
        return self._page._sliders[motor]

    def places(self):
        """(njoints, 3) where the bodies are in the page."""
        return np.array([body.position for body in self._page._scene._bodies])

    def slide(self, motor, value):
        """A slider dragged, or a number typed."""
        self.slider(motor)._impl.value = value  # as it comes from a browser
        self._page._dragged(motor, self.BY_HAND)

    def wind(self, t):
        self._page._time._impl.value = t
        self._page._wound(self.BY_HAND)

    def play(self, motion):
        self._page._play(motion)

    def play_or_pause(self):
        self._page._play_or_pause()

    def choose(self, name):
        self._page._choose(name)

    def loop(self, on):
        self._page._loop._impl.value = on

    def back(self):
        self._page._go(self._page._home)


def frame_of_film(run, mech, view, shown):
    """Corners of what a film of these instants shows."""
    return film._reached(run, mech, view, shown)


def box_of(ax):
    """The sides of the box that matplotlib draws in space, for the limits of its axes."""
    return ax._box_aspect


def laws_in_numbers(prepared):
    """A function (q, v, t) that gives the constraints and the tree of a tick, factored there; None
    where the fast path does not serve."""
    mech, part = prepared.mech, prepared.partition
    live = live_motion(mech.model, mech.model.createData())
    if live is None or inverse_tick.why_general(mech, part, live):
        return None
    motors, independent = inverse_tick._motor_coordinates(mech, part), part.independent
    if motors is not None:
        independent = np.concatenate([motors, np.setdiff1d(independent, motors)])
    split = split_rows(mech, part, independent, live, INVERSE_DOUBT, prepared.limits)
    here, options = TickState(), (prepared.weights, prepared.inconsistent)
    K = numeric_constraints(mech, part, split, here, motors is not None, *options)
    tree = numeric_tree(mech, split.data, live, here)

    def at(q, v, t):
        assert split.constrain(q, v, t)
        assert K.factor is None or K.factor()
        here.at(q, v, t, None)
        return K, tree

    return at


def predictions(tr, y):
    """Of the first step to y, from joints and from motors: the prediction of the first order, the
    term of the second order, and the step itself, (nv,) each."""
    tr.joint_positions(tr.motor_start)
    for branch, x in ((tr._by_joints, y), (tr._by_motors, tr.motor_positions(y))):
        start, system = branch._start, branch.system
        way = system.difference(start.q, x, start.cut)
        step = system.combined(start.borders, way)
        second = 0.5 * branch._bent.dot(step).dot(step)
        whole = pin.difference(tr.mech.model, start.q, branch.at(x).q)
        yield start.gamma.dot(step), second, whole
