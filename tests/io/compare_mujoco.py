"""Numbers of MuJoCo beside ours: inertia matrix, bias, rows of the equalities, motors.

`compared` is what `test_mujoco.py` asserts on; it needs the package mujoco. `survey` goes through
all files of a folder that MuJoCo reads: which of them load, what is refused and why, and where
numbers differ.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

import holoctl as hc
from holoctl.rows.evaluate import constraint_rows, rows_of

FREE, BALL, SLIDE, HINGE = range(4)


def ours(model, kinds, qpos0, qpos):
    """A configuration of MuJoCo's in our coordinates; `kinds` are MuJoCo's types of the joints."""
    q = np.array(qpos)
    for j, kind in enumerate(kinds, start=1):
        i = model.idx_qs[j]
        if kind in (SLIDE, HINGE):
            q[i] -= qpos0[i]
        else:
            i += 3 * (kind == FREE)
            q[i : i + 4] = np.roll(q[i : i + 4], -1)
    return q


def velocity_map(model, kinds, q):
    """T with MuJoCo's v = T v: the linear velocity of a free body is in world axes there."""
    T = np.eye(model.nv)
    for j, kind in enumerate(kinds, start=1):
        if kind == FREE:
            R = pin.XYZQUATToSE3(q[model.idx_qs[j] : model.idx_qs[j] + 7]).rotation
            T[model.idx_vs[j] :, model.idx_vs[j] :][:3, :3] = R
    return T


def velocity_map_rate(model, kinds, q, v):
    """dT/dt v."""
    rate = np.zeros(model.nv)
    for j, kind in enumerate(kinds, start=1):
        if kind == FREE:
            R = pin.XYZQUATToSE3(q[model.idx_qs[j] : model.idx_qs[j] + 7]).rotation
            i = model.idx_vs[j]
            rate[i : i + 3] = R @ np.cross(v[i + 3 : i + 6], v[i : i + 3])
    return rate


def off(found, expected):
    """The largest difference against the largest number, or against 1 where all are smaller."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return np.inf
    if not found.size:
        return 0.0
    return float(np.abs(found - expected).max() / max(1.0, np.abs(expected).max()))


# ----------------------------------------------------------------------------- from MuJoCo


def full_inertia(mujoco, model, data):
    M = np.zeros((model.nv, model.nv))
    try:
        mujoco.mj_fullM(model, data, M)
    except TypeError:  # before 3.5
        mujoco.mj_fullM(model, M, data.qM)
    return M


def equality_jacobian(mujoco, model, data):
    """All rows of the constraints, as a full matrix."""
    J = np.zeros((data.nefc, model.nv))
    if data.nefc and mujoco.mj_isSparse(model):
        mujoco.mju_sparse2dense(
            J, data.efc_J.ravel(), data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind.ravel()
        )
    elif data.nefc:
        J[:] = np.ravel(data.efc_J)[: J.size].reshape(J.shape)
    return J


def moments(mujoco, model, data):
    """A row for each actuator: the efforts of its unit force."""
    moment = np.zeros((len(data.moment_rownnz), model.nv))
    if len(moment):
        mujoco.mju_sparse2dense(
            moment, data.actuator_moment, data.moment_rownnz, data.moment_rowadr,
            data.moment_colind,
        )  # fmt: skip
    return moment


# ------------------------------------------------------------------------------ comparison


def differences(
    path: str | Path, states: int = 3, seed: int = 0, **options: Any
) -> dict[str, float]:
    """The largest relative differences between MuJoCo's numbers and those of ``hc.load``.

    Keys: ``M``, ``h``, ``error`` and ``rows`` of the equalities, ``motors``, ``drawn`` (the
    reference, of a file without keys).
    """
    import mujoco

    mech = hc.load(path, **options)
    return compared(mujoco, model_of(mujoco, path), mech, states, seed)


def model_of(mujoco, path):
    """As MuJoCo compiles it, but without its leaving out of offsets of less than 1e-6 m."""
    spec = mujoco.MjSpec.from_file(str(path))
    for body in spec.bodies:
        if hasattr(body, "simple"):  # from MuJoCo 3.6 on
            body.simple = False
    model = spec.compile()
    model.body_sameframe[:] = 0
    return model


def compared(mujoco, model, mech, states=3, seed=0):
    kinds, mine = model.jnt_type.tolist(), mech.model
    if (mine.nq, mine.nv) != (model.nq, model.nv):
        return {"size": np.inf}
    model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    rng, data = np.random.default_rng(seed), mujoco.MjData(model)
    worst = dict.fromkeys(("M", "h", "error", "rows", "motors"), 0.0)
    if not model.nkey:
        drawn = ours(mine, kinds, model.qpos0, model.qpos0)
        worst["drawn"] = float(np.abs(pin.difference(mine, mech.reference, drawn)).max())

    def note(what, found, expected):
        worst[what] = max(worst[what], off(found, expected))

    for _ in range(states):
        data.qpos[:] = model.qpos0
        mujoco.mj_integratePos(model, data.qpos, rng.uniform(-1.0, 1.0, model.nv), 1.0)
        data.qvel[:] = rng.uniform(-1.0, 1.0, model.nv)
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        q = ours(mine, kinds, model.qpos0, data.qpos)
        T = velocity_map(mine, kinds, q)
        v = np.linalg.solve(T, data.qvel)
        M, terms = full_inertia(mujoco, model, data), hc.terms(mech, q, v)
        note("M", terms.M, T.T @ M @ T)
        note("h", terms.h, T.T @ (data.qfrc_bias + M @ velocity_map_rate(mine, kinds, q, v)))
        J = equality_jacobian(mujoco, model, data) @ T
        of_equality = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        active = [i for i in range(model.neq) if data.eq_active[i] and not _idle(mujoco, model, i)]
        if model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_EQUALITY):
            active = []
        if len(active) != len(mech.constraint_names):
            return worst | {"equalities": np.inf}
        rows = constraint_rows(mech, q, v)[1]
        for i, name in zip(active, mech.constraint_names, strict=True):
            theirs = of_equality & (data.efc_id == i)
            error, G = rows.error[rows_of(mech, name)], rows.jacobian[rows_of(mech, name)]
            sign = np.ones((len(error), 1))
            expected = np.column_stack(
                _rows(mujoco, model, data, i, data.efc_pos[theirs], J[theirs], T)
            )
            found = np.column_stack((error, G))
            if found.shape == expected.shape:
                for part in _of_one_sign(len(error)):
                    if off(-found[part], expected[part]) < off(found[part], expected[part]):
                        sign[part] = -1.0
            note("error", sign[:, 0] * error, expected[:, 0])
            note("rows", sign * G, expected[:, 1:])
        columns = moments(mujoco, model, data) @ T
        for column in mech.B.T:
            note("motors", min((off(column, c) for c in columns), default=np.inf), 0.0)
    return worst


def _idle(mujoco, model, i):
    """Whether an equality is between parts of one body: it holds nothing, and is left out."""
    if int(model.eq_type[i]) not in (mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtEq.mjEQ_WELD):
        return False
    ends = [model.eq_obj1id[i], model.eq_obj2id[i]]
    if model.eq_objtype[i] == mujoco.mjtObj.mjOBJ_SITE:
        ends = [model.site_bodyid[end] for end in ends]
    return model.body_weldid[ends[0]] == model.body_weldid[ends[1]]


def _of_one_sign(count):
    """Rows whose sign is a matter of taste: a single one, and those of a quaternion, q or -q."""
    return {1: [slice(0, 1)], 6: [slice(3, 6)]}.get(count, [])


def _rows(mujoco, model, data, i, pos, J, T):
    """MuJoCo's error and rows of an equality in the axes of ours.

    A connect: there ``p1 - p2`` in world axes, here ``p2 - p1`` in axes of body 1. The rotation of
    a weld: there the vector part of the quaternion times torquescale, here twice that of its
    inverse.
    """
    if len(pos) not in (3, 6):
        return pos, J
    body, site = model.eq_obj1id[i], model.eq_objtype[i] == mujoco.mjtObj.mjOBJ_SITE
    if site:
        axes, body = data.site_xmat[body].reshape(3, 3), model.site_bodyid[body]
    else:
        axes = data.xmat[body].reshape(3, 3)
    weld = len(pos) == 6
    if weld and not site:
        relative = np.zeros(9)
        mujoco.mju_quat2Mat(relative, model.eq_data[i, 6:10])
        axes = axes @ relative.reshape(3, 3)
    turning = np.zeros((3, model.nv))
    mujoco.mj_jacBody(model, data, None, turning, body)
    x, y, z = -pos[:3]
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    error = axes.T @ -pos[:3]
    rows = axes.T @ (-J[:3] + cross @ turning @ T)
    scale = model.eq_data[i, 10]
    if weld and scale:
        error = np.concatenate((error, -2.0 / scale * pos[3:]))
        rows = np.vstack((rows, -2.0 / scale * J[3:]))
    return error, rows


# --------------------------------------------------------------------------- whole folders


def survey(folder: str | Path, **options: Any) -> dict[str, list[tuple[Path, str]]]:
    """What becomes of all files in a folder that MuJoCo reads: by outcome, file and reason."""
    import mujoco

    found: dict[str, list[tuple[Path, str]]] = {}
    for path in sorted(Path(folder).rglob("*.xml")):
        try:
            model = model_of(mujoco, path)
        except ValueError:
            continue
        if model.nv > 250:
            outcome, why = "large", f"{model.nv} coordinates"
        else:
            outcome, why = _outcome(mujoco, model, path, options)
        found.setdefault(outcome, []).append((path, why))
    return found


def _outcome(mujoco, model, path, options):
    try:
        mech = hc.load(path, **options)
    except hc.HoloctlError as error:
        return "refused", str(error)
    except Exception as error:
        return "broken", repr(error)
    try:
        worst = compared(mujoco, model, mech)
    except Exception as error:
        return "broken", repr(error)
    high = {name: f"{x:.1e}" for name, x in worst.items() if not x < 1e-9}
    return ("different", str(high)) if high else ("equal", str(max(worst.values())))
