"""MuJoCo's numbers for the files of this directory: ``python make.py``, where mujoco is."""

from __future__ import annotations

import json
from pathlib import Path

import mujoco
import numpy as np

HERE = Path(__file__).parent


def state(model, rng):
    """Everything at one random state, in MuJoCo's own coordinates."""
    data = mujoco.MjData(model)
    mujoco.mj_integratePos(model, data.qpos, rng.uniform(-1.0, 1.0, model.nv), 1.0)
    data.qvel[:] = rng.uniform(-1.0, 1.0, model.nv)
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    equality = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    rows = [
        {
            "name": model.equality(i).name,
            "pos": data.efc_pos[equality & (data.efc_id == i)].tolist(),
        }
        for i in range(model.neq)
        if data.eq_active[i]
    ]
    bodies = {model.body(i).name: data.xpos[i].tolist() for i in range(1, model.nbody)}
    return {
        "qpos": data.qpos.tolist(),
        "qvel": data.qvel.tolist(),
        "M": M.tolist(),
        "bias": data.qfrc_bias.tolist(),
        "equalities": rows,
        "bodies": bodies,
        "sites": {model.site(i).name: data.site_xpos[i].tolist() for i in range(model.nsite)},
    }


def numbers(text, seed):
    """What a file says, and three states."""
    model = mujoco.MjModel.from_xml_string(text)
    rng = np.random.default_rng(seed)
    moment = mujoco.MjData(model)
    mujoco.mj_forward(model, moment)
    B = np.zeros((model.nu, model.nv))
    if model.nu:
        mujoco.mju_sparse2dense(
            B, moment.actuator_moment, moment.moment_rownnz, moment.moment_rowadr,
            moment.moment_colind,
        )  # fmt: skip
    return {
        "mujoco": mujoco.__version__,
        "joint_types": model.jnt_type.tolist(),  # 0 free, 1 ball, 2 slide, 3 hinge
        "qpos0": model.qpos0.tolist(),
        "keys": {model.key(i).name: model.key_qpos[i].tolist() for i in range(model.nkey)},
        "range": [r if on else None for r, on in zip(
            model.jnt_range.tolist(), model.jnt_limited, strict=True)],
        "masses": model.body_mass.tolist(),
        "moment": B.tolist(),
        "damping": model.dof_damping.tolist(),
        "frictionloss": model.dof_frictionloss.tolist(),
        "states": [state(model, rng) for _ in range(3)],
    }  # fmt: skip


if __name__ == "__main__":
    for seed, path in enumerate(sorted(HERE.glob("*.xml"))):
        text = path.read_text("utf-8")
        # MuJoCo opens meshes; those here have no mass, so a ball without mass stands for them.
        text = text.replace('type="mesh" mesh="never_read"', 'type="sphere" size="0.1" mass="0"')
        text = text.replace('type="mesh" mesh="x" mass="0"', 'type="sphere" size="0.1" mass="0"')
        path.with_suffix(".json").write_text(json.dumps(numbers(text, seed)) + "\n", "utf-8")
