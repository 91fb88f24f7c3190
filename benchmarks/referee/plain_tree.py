"""A tree of rigid bodies in plain numpy, one coordinate to a joint; no holoctl, no Pinocchio.

Newton's and Euler's equations of all bodies, projected on the columns of their Jacobians:

    H = sum m Jc' Jc + Jw' I Jw        C = sum m Jc' (ac - g) + Jw' (I alpha + w x I w)

c is the centre of mass, ac and alpha its and the body's acceleration at q'' = 0, all in world axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Body:
    """Body i moves with coordinate i; -1 is the world. `joint`: "RX" ... "PZ"."""

    parent: int
    joint: str
    rotation: Array
    translation: Array
    mass: float
    com: Array
    inertia: Array


@dataclass(frozen=True, eq=False)
class Tree:
    """Bodies, each after its parent, and gravity."""

    bodies: tuple[Body, ...]
    gravity: Array


@dataclass(eq=False)
class Moved:
    """At a state: rotation, origin, angular velocity, velocity, and accelerations at q'' = 0."""

    R: list[Array]
    p: list[Array]
    w: list[Array]
    v: list[Array]
    alpha: list[Array]
    a: list[Array]
    Jw: list[Array]
    Jp: list[Array]


def tree_of(bodies: Sequence[Mapping[str, Any]], gravity: Any, first: int = 0) -> Tree:
    """From the files of reference numbers; `first` is the number of their first body."""
    array = lambda x: np.array(x, float)  # noqa: E731
    return Tree(
        tuple(
            Body(
                int(b["parent"]) - first, str(b["joint"]).upper(), array(b["rotation"]),
                array(b["translation"]), float(b["mass"]), array(b["com"]),
                array(b["inertia_com"]),
            )
            for b in bodies
        ),
        array(gravity),
    )  # fmt: skip


def moved(tree: Tree, q: Array, qd: Array) -> Moved:
    """Positions, velocities, accelerations and Jacobians of all bodies."""
    n = len(tree.bodies)
    zero, none = np.zeros(3), np.zeros((3, n))
    m = Moved([], [], [], [], [], [], [], [])
    for i, body in enumerate(tree.bodies):
        k = body.parent
        above = (np.eye(3), zero, zero, zero, zero, zero, none, none)
        if k >= 0:
            above = (m.R[k], m.p[k], m.w[k], m.v[k], m.alpha[k], m.a[k], m.Jw[k], m.Jp[k])
        R, p, w, v, alpha, a, Jw, Jp = above
        unit = np.eye(3)["XYZ".index(body.joint[1])]
        axis = R @ body.rotation @ unit
        slides = body.joint[0] == "P"
        r = R @ body.translation + (q[i] * axis if slides else 0.0)
        column = np.zeros((3, n))
        column[:, i] = axis
        R_i = R @ body.rotation @ (np.eye(3) if slides else turned(unit, q[i]))
        v_i = v + np.cross(w, r)
        a_i = a + np.cross(alpha, r) + np.cross(w, np.cross(w, r))
        Jp_i = Jp - cross(r) @ Jw
        if slides:
            v_i, Jp_i = v_i + qd[i] * axis, Jp_i + column
            a_i = a_i + 2.0 * np.cross(w, axis) * qd[i]
        else:
            alpha = alpha + np.cross(w, axis) * qd[i]
            w, Jw = w + qd[i] * axis, Jw + column
        for all_of, one in zip(
            (m.R, m.p, m.w, m.v, m.alpha, m.a, m.Jw, m.Jp),
            (R_i, p + r, w, v_i, alpha, a_i, Jw, Jp_i), strict=True,
        ):  # fmt: skip
            all_of.append(one)
    return m


def point(m: Moved, body: int, local: Any) -> tuple[Array, Array, Array, Array]:
    """Of a point of a body: position, velocity, acceleration at q'' = 0, Jacobian."""
    if body < 0:
        return np.array(local, float), np.zeros(3), np.zeros(3), np.zeros((3, m.Jp[0].shape[1]))
    r = m.R[body] @ np.array(local, float)
    w, alpha = m.w[body], m.alpha[body]
    return (
        m.p[body] + r, m.v[body] + np.cross(w, r),
        m.a[body] + np.cross(alpha, r) + np.cross(w, np.cross(w, r)),
        m.Jp[body] - cross(r) @ m.Jw[body],
    )  # fmt: skip


def inertia_and_bias(tree: Tree, m: Moved) -> tuple[Array, Array]:
    """H and C, gravity in it."""
    n = len(tree.bodies)
    H, C = np.zeros((n, n)), np.zeros(n)
    for i, body in enumerate(tree.bodies):
        _, _, a, J = point(m, i, body.com)
        inertia = m.R[i] @ body.inertia @ m.R[i].T
        w, alpha, Jw = m.w[i], m.alpha[i], m.Jw[i]
        H += body.mass * J.T @ J + Jw.T @ inertia @ Jw
        C += body.mass * J.T @ (a - tree.gravity)
        C += Jw.T @ (inertia @ alpha + np.cross(w, inertia @ w))
    return H, C


def turned(axis: Array, angle: float) -> Array:
    """Rodrigues' formula."""
    K = cross(axis)
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K


def cross(x: Array) -> Array:
    """The matrix of x cross."""
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])
