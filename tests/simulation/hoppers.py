"""What bounces and hops, with closed forms: a ball, and two masses on a spring."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pinocchio as pin
from scipy.optimize import brentq
from zoo import at

import holoctl as hc

G = 9.81
BODY, FOOT, STIFFNESS, REST = 3.0, 0.5, 900.0, 0.6
WEIGHT = pin.Inertia(1.0, np.zeros(3), 0.01 * np.eye(3))


def ball():
    model = pin.Model()
    model.appendBodyToJoint(model.addJoint(0, pin.JointModelPZ(), at(), "z"), WEIGHT, at())
    return hc.Mechanism(model, [], [], name="ball")


def bounces(mech, restitution, i=0, **options):
    return hc.Event(
        lambda t, q, v: q[i], direction=-1, reaction=lambda t, q, v: (mech, -restitution * v),
        **options,
    )  # fmt: skip


def of_bounces(restitution, height, count):
    """Instants at which a ball that was let go lands."""
    t, speed = np.sqrt(2.0 * height / G), np.sqrt(2.0 * height * G)
    found = [t]
    for _ in range(count - 1):
        speed *= restitution
        found.append(found[-1] + 2.0 * speed / G)
    return np.array(found)


def hopper(floating):
    """A body on a springy leg, which slides along z, or is free; standing, and flying."""
    model = pin.Model()
    joint = pin.JointModelFreeFlyer() if floating else pin.JointModelPZ()
    body = model.addJoint(0, joint, at(), "body")
    model.appendBodyToJoint(body, pin.Inertia(BODY, np.zeros(3), 0.05 * np.eye(3)), at())
    leg = model.addJoint(body, pin.JointModelPZ(), at(), "leg")
    model.appendBodyToJoint(leg, pin.Inertia(FOOT, np.zeros(3), 0.002 * np.eye(3)), at())
    reference = np.zeros(model.nq)
    reference[2 if floating else 0], reference[-1] = REST, -REST
    if floating:
        reference[6] = 1.0
    contact = hc.Contact("leg", tangents=floating, ground=(0.0, 0.0, 0.0), name="foot")
    standing = hc.Mechanism(
        model, [contact], ["leg"], reference=reference, name="hopper",
        forces=[hc.JointSpring("leg", STIFFNESS, -REST)],
    )  # fmt: skip
    up = 2 if floating else 0
    return SimpleNamespace(standing=standing, flying=standing.with_enabled(foot=False), up=up)


def hops(h):
    """Its events: it lands, and it leaves when the ground would have to pull."""
    on_ground = [False]

    def height(t, q, v):
        return q[h.up] + q[-1]

    def pushes(t, q, v):  # of the ground
        return FOOT * G - STIFFNESS * (-REST - q[-1]) if on_ground[0] else 1.0

    def lands(t, q, v):
        on_ground[0] = True
        return h.standing, hc.impulse(h.standing, q, v).v

    def leaves(t, q, v):
        on_ground[0] = False
        return h.flying, v

    return [hc.Event(height, direction=-1, reaction=lands),
            hc.Event(pushes, direction=-1, reaction=leaves)]  # fmt: skip


def of_hops(height):
    """When a hopper let go at a height lands, leaves and lands again; and its loss of energy."""
    first = np.sqrt(2.0 * height / G)
    w, sag, speed = np.sqrt(STIFFNESS / BODY), BODY * G / STIFFNESS, G * first
    a, b = sag, -speed / w  # extension -sag + a cos + b sin

    def extension(t):
        return -sag + a * np.cos(w * t) + b * np.sin(w * t)

    pulled = FOOT * G / STIFFNESS
    top = np.pi + np.arctan2(b, a) + np.pi  # where it is longest
    stands = brentq(lambda t: extension(t) - pulled, (top - np.pi) / w, top / w, xtol=1e-15)
    y, rate = pulled, w * (b * np.cos(w * stands) - a * np.sin(w * stands))
    share, w = BODY / (BODY + FOOT), np.sqrt(STIFFNESS * (1.0 / BODY + 1.0 / FOOT))

    def foot(t):
        relative = y * np.cos(w * t) + rate / w * np.sin(w * t)
        center = share * (y + rate * t) - 0.5 * G * t * t
        return center - share * relative

    t, step = 0.0, 1e-3
    while foot(t + step) > 0.0 or t < step:
        t += step
    flies = brentq(foot, t, t + step, xtol=1e-15)
    return np.array([first, first + stands, first + stands + flies]), 0.5 * FOOT * speed**2
