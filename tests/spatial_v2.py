"""The examples of spatial_v2 with explicit constraints: trees, charts, and its numbers."""

from __future__ import annotations

import json

import numpy as np
import pinocchio as pin
from support import GOLDEN

CASES = ["planar2g", "geared6r", "fourbar", "veeScrew"]


JOINTS = {
    "Rx": pin.JointModelRX, "Ry": pin.JointModelRY, "Rz": pin.JointModelRZ,
    "Px": pin.JointModelPX, "Py": pin.JointModelPY, "Pz": pin.JointModelPZ,
}  # fmt: skip


def golden(name):
    return json.loads((GOLDEN / "fdgq" / f"{name}.json").read_text())


def close(x, y):
    """Largest difference, relative to the largest entry or to 1."""
    x, y = np.asarray(x), np.asarray(y)
    return np.abs(x - y).max() / max(1.0, np.abs(y).max())


def tree(data):
    model = pin.Model()
    model.gravity.linear = np.array(data["tree"]["gravity"], dtype=float)
    for body in data["tree"]["bodies"]:
        place = pin.SE3(np.array(body["rotation"], float), np.array(body["translation"], float))
        joint = JOINTS[body["joint"]]()
        j = model.addJoint(body["parent"], joint, place, f"q{body['body']}")
        model.inertias[j] = pin.Inertia(
            body["mass"], np.array(body["com"], float), np.array(body["inertia_com"], float)
        )
    return model


def stabilised(q0, v0, q, v, G, g, T):
    return q, v, G, g + (2.0 / T) * (v - v0) + (q - q0) / T**2


def planar2g(model, q0, v0, T=0.1):
    y, yd = q0[0], v0[0]
    q, G = np.array([y, 2 * np.sin(y)]), np.array([[1.0], [2 * np.cos(y)]])
    return stabilised(q0, v0, q, G[:, 0] * yd, G, np.array([0.0, -2 * np.sin(y) * yd**2]), T)


def geared6r(model, q0, v0):
    p = golden("geared6r")["constraint"]["params"]
    N, c = np.array(p["N"], float), np.array(p["c"], float)
    y = [0, 2, 4]
    return stabilised(q0, v0, N @ q0[y] + c, N @ v0[y], N, np.zeros(6), 0.1)


def nearest_angle(angle, to):
    return angle + 2 * np.pi * np.round((to - angle) / (2 * np.pi))


def fourbar(model, q0, v0):
    L0, L1, L2, L3 = 1.0, 0.3, 0.9, 0.6
    y, yd = q0[0], v0[0]
    B, D = L1 * np.array([np.cos(y), np.sin(y)]), np.array([L0, 0.0])
    r = np.linalg.norm(D - B)
    u = (D - B) / r
    a = (L2**2 - L3**2 + r**2) / (2 * r)
    P = B + a * u + np.sqrt(L2**2 - a**2) * np.array([-u[1], u[0]])
    q2 = nearest_angle(np.arctan2(*(P - B)[::-1]) - y, q0[1])
    q3 = nearest_angle(np.arctan2(*(P - D)[::-1]), q0[2])

    def K(q):  # of 0 = L1 e(q1) + L2 e(q1 + q2) - L3 e(q3) - D
        c, s = np.cos, np.sin
        return np.array([
            [-L1 * s(q[0]) - L2 * s(q[0] + q[1]), -L2 * s(q[0] + q[1]), L3 * s(q[2])],
            [L1 * c(q[0]) + L2 * c(q[0] + q[1]), L2 * c(q[0] + q[1]), -L3 * c(q[2])],
        ])  # fmt: skip

    q = np.array([y, q2, q3])
    k = K(q)
    G = np.concatenate([[1.0], -np.linalg.solve(k[:, 1:], k[:, 0])])
    v = G * yd
    c, s = np.cos, np.sin
    w1, w2, w3 = v[0], v[0] + v[1], v[2]
    Kdot_v = np.array([
        -L1 * c(q[0]) * w1**2 - L2 * c(q[0] + q[1]) * w2**2 + L3 * c(q[2]) * w3**2,
        -L1 * s(q[0]) * w1**2 - L2 * s(q[0] + q[1]) * w2**2 + L3 * s(q[2]) * w3**2,
    ])  # fmt: skip
    g = np.concatenate([[0.0], -np.linalg.solve(k[:, 1:], Kdot_v)])
    return stabilised(q0, v0, q, v, G[:, None], g, 0.05)


def veeScrew(model, q0, v0):
    y = [0, 1, 3, 4, 5, 6]
    G = np.zeros((7, 6))
    G[y, range(6)] = 1.0
    G[2, 4], G[2, 5] = 0.05, 0.04 * np.cos(2 * q0[6])
    q = q0.copy()
    q[2] = 0.05 * q0[5] + 0.02 * np.sin(2 * q0[6])
    g = np.zeros(7)
    g[2] = -0.08 * np.sin(2 * q0[6]) * v0[6] ** 2
    return stabilised(q0, v0, q, G @ v0[y], G, g, 0.1)


CHARTS = {"planar2g": planar2g, "geared6r": geared6r, "fourbar": fourbar, "veeScrew": veeScrew}
