"""Closed states as results: they have names, and unpack as the tuples that they are."""

from __future__ import annotations

from typing import NamedTuple

from holoctl.base.checks import Vector, counted
from holoctl.base.linalg import largest

__all__ = ["ClosedMotion", "ClosedState"]


class ClosedState(NamedTuple):
    """A configuration and a velocity that satisfy the constraints: ``q, v = hc.assemble(mech)``.

    Attributes
    ----------
    q : (nq,) array
    v : (nv,) array
        rad/s or m/s.

    See Also
    --------
    assemble : returns it.
    results.ClosedMotion : with the acceleration.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> state = hc.assemble(mech, [2.2, -1.4, 0.9, 1.4], locked=["motor_left", "motor_right"])
    >>> state.q.round(3).tolist()
    [2.2, -1.443, 0.9, 1.459]
    """

    q: Vector
    v: Vector

    def __repr__(self) -> str:
        return f"<ClosedState: {_words(self.v)}>"


class ClosedMotion(NamedTuple):
    """A closed state with an acceleration that satisfies the constraints too: ``q, v, a``.

    Attributes
    ----------
    q : (nq,) array
    v : (nv,) array
        rad/s or m/s.
    a : (nv,) array
        rad/s^2 or m/s^2.

    See Also
    --------
    inverse_kinematics : returns it.
    results.ClosedState : without the acceleration.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> tip = hc.FrameTask("tip_right", "x z")
    >>> motion = hc.inverse_kinematics(mech, {tip: [0.15, 0.35]}, v=[0.1, 0.0])
    >>> mech.motor_rates(motion.v).round(3).tolist()
    [-0.378, -0.235]
    """

    q: Vector
    v: Vector
    a: Vector

    def __repr__(self) -> str:
        return (
            f"<ClosedMotion: {_words(self.v)}, accelerations up to {largest(self.a):.3g} rad/s^2 "
            "or m/s^2>"
        )


def _words(v: Vector) -> str:
    moving = f"rates up to {largest(v):.3g} rad/s or m/s" if v.any() else "at rest"
    return f"{counted(v.size, 'coordinate')}, {moving}"
