"""A force of one's own: a class by the contract, and what is refused of one that is not true."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from inside import fast_path, general_path
from support import closed_states, mechanism, relative

import holoctl as hc


@dataclass(frozen=True)
class Magnet:
    """A cubic spring on a coordinate, with drag: -k q^3 - d v^3; what a test changes is wrong."""

    joint: str
    wrong: str = ""
    name: str | None = None

    @property
    def default_name(self):
        return self.name or "magnet"

    def bind(self, model, name, reference, closures):
        i = model.idx_vs[model.getJointId(self.joint)]
        return BoundMagnet(model.nv, i, self.wrong)


@dataclass(frozen=True)
class BoundMagnet:
    nv: int
    i: int
    wrong: str
    stores: bool = True
    friction: bool = False
    k: float = field(default=2.0)

    def one(self, x):
        found = np.zeros(self.nv)
        found[self.i] = x
        return found

    def at(self, kin):
        if self.wrong == "shape":
            return hc.protocols.Efforts(np.zeros(1), np.zeros(1), np.zeros(1))
        if self.wrong == "nothing":
            return None
        if self.wrong == "nowhere":
            raise hc.SingularityError("there is no force here", condition=np.inf)
        if self.wrong == "error":
            raise ZeroDivisionError("oops")
        sign = -1.0 if self.wrong == "losses" else 1.0
        q, v = kin.q[self.i], kin.v[self.i]
        return hc.protocols.Efforts(
            self.one(-self.k * q**3), self.one(-sign * 0.3 * v**3), self.one(0.2 * np.sin(kin.t))
        )

    def energy(self, kin):
        factor = 0.5 if self.wrong == "energy" else 0.25
        moving = kin.v[self.i] if self.wrong == "rate" else 0.0
        return factor * self.k * kin.q[self.i] ** 4 + moving

    def by_velocity(self, kin):
        if self.wrong == "by_velocity shape":
            return np.zeros(self.nv)
        found = np.zeros((self.nv, self.nv))
        found[self.i, self.i] = (-0.8 if self.wrong == "by_velocity" else -0.9) * kin.v[self.i] ** 2
        return found

    def tick(self, motion):
        efforts, i = np.zeros(self.nv), self.i
        more = 0.1 if self.wrong == "tick" else 0.0

        def tick(q, v, t):
            efforts[i] = -self.k * q[i] ** 3 - 0.3 * v[i] ** 3 + 0.2 * np.sin(t) + more
            return efforts

        return tick


@dataclass(frozen=True)
class SlowMagnet(Magnet):
    """Its bound force has an `at` of its own, so that the tick of the base does not count."""

    def bind(self, model, name, reference, closures):
        i = model.idx_vs[model.getJointId(self.joint)]
        return BoundSlowMagnet(model.nv, i, self.wrong)


@dataclass(frozen=True)
class BoundSlowMagnet(BoundMagnet):
    k: float = field(default=3.0)

    def at(self, kin):
        found = super().at(kin)
        return hc.protocols.Efforts(found.springs, found.losses, np.zeros(self.nv))


@pytest.mark.parametrize("kind", [Magnet, SlowMagnet])
def test_a_force_of_ones_own_is_right_on_every_path(kind):
    mech = mechanism("five_bar")
    mech = mech.with_forces([kind(mech.actuated[0]), hc.JointFriction(0.1, 0.2)])
    part = hc.partition(mech, closed_states("five_bar")[0][0])
    inverse = hc.PreparedInverseDynamics(mech, part)
    forward = hc.PreparedForwardDynamics(mech, part)
    for q, v in closed_states("five_bar")[:5]:
        target, tau = np.array([1.0, -2.0]), np.ones(mech.nv)
        result = hc.inverse_dynamics(mech, q, v, target, partition=part, t=0.4)
        assert result.certificate.ok
        assert fast_path(inverse)(q, v, target, 0.4, None) is not None
        assert relative(inverse.torque(q, v, target, 0.4), result.u) < 1e-10
        a = forward.acceleration(q, v, tau, 0.4)
        assert relative(a, general_path(forward, q, v, tau, 0.4)) < 1e-10
        free = hc.inverse_dynamics(mech.without("magnet"), q, v, target, partition=part, t=0.4)
        assert np.abs(free.u - result.u).max() > 1e-2


WRONG = {
    "shape": r"at must return hc.protocols.Efforts of float arrays of shape \(4,\)",
    "nothing": "at must return hc.protocols.Efforts",
    "energy": "its springs take .* W, but its energy grows by",
    "losses": "its losses give power",
    "rate": "its energy depends on the velocity",
    "by_velocity": "its by_velocity is not the derivative of its efforts",
    "by_velocity shape": r"by_velocity must return a float array of shape \(4, 4\)",
    "tick": "its tick differs from `at` by 1.0e-01",
    "error": "raised ZeroDivisionError: oops",
    "nowhere": "could not be evaluated at the reference .*: there is no force here",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_not_true_is_refused(wrong):
    mech = mechanism("five_bar")
    with pytest.raises(hc.InputError, match=WRONG[wrong]):
        mech.with_forces([Magnet(mech.actuated[0], wrong)])


def test_what_is_told_of_a_force_is_refused_where_it_is_not_so():
    class Told(Magnet):
        def bind(self, model, name, reference, closures):
            i = model.idx_vs[model.getJointId(self.joint)]
            return BoundMagnet(model.nv, i, "", **{"stores": True, "friction": False} | told)

    mech = mechanism("five_bar")
    told = {"stores": False}
    with pytest.raises(hc.InputError, match="it has springs, but stores is False"):
        mech.with_forces([Told(mech.actuated[0])])
    told = {"friction": True}
    with pytest.raises(hc.InputError, match="its friction is True, but it is not a loss"):
        mech.with_forces([Told(mech.actuated[0])])


@dataclass(frozen=True)
class Brake:
    """Dry friction whose sign at rest is not zero, so that it would hold, and lift, a weight."""

    name: str | None = None
    default_name: str = "brake"

    def bind(self, model, name, reference, closures):
        return BoundBrake(model.nv)


@dataclass(frozen=True)
class BoundBrake:
    nv: int
    stores: bool = False
    friction: bool = True

    def at(self, kin):
        none = np.zeros(self.nv)
        return hc.protocols.Efforts(none, np.where(kin.v >= 0.0, -0.3, 0.3), none)

    def energy(self, kin):
        return 0.0

    def by_velocity(self, kin):
        return np.zeros((self.nv, self.nv))


def test_friction_does_nothing_at_rest():
    """Holding torques leave friction out on one path, and take it at rest on the other."""
    with pytest.raises(hc.InputError, match="friction is True, but it acts at rest"):
        mechanism("five_bar").with_forces([Brake()])


def test_a_bound_force_has_its_parts():
    class Empty(Magnet):
        def bind(self, model, name, reference, closures):
            return object()

    mech = mechanism("five_bar")
    with pytest.raises(
        hc.InputError, match="must return a bound force, see holoctl/forces/force_protocol"
    ):
        mech.with_forces([Empty(mech.actuated[0])])
