"""A tick of TSID within limits, for limits.py, which starts this in a Python that has TSID.

    .venv/bin/python benchmarks/bench.py --only limits --tsid PYTHON

PYTHON is that of another environment, for TSID is built for another Pinocchio:

    python3.11 -m venv .venv-tsid
    .venv-tsid/bin/pip install --only-binary :all: tsid==1.7.1 pin==3.4.0 \
        'cmeel-urdfdom<5' 'cmeel-tinyxml2<11'

Loops are closed as TSID's users do: `ContactTwoFramePositions` for a ball, passive joints as motors
whose bounds are zero; a foot on the ground is a `Contact6d`. The motion that is asked for is that
of the motors, a `TaskJointPosture`. Timed: `computeProblemData`, `solve`, `getActuatorForces`.

Reads a pickle of what limits.py found out; then for each line of stdin runs all states, and prints
the times, ns, as a line of JSON.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
from pathlib import Path

import numpy as np
import pinocchio as pin
from tsid import tsid_pywrap as tsid  # the package has no __init__.py where it should

FRICTION, MOST, FOOT = 100.0, 1e6, 10.0
"""A foot as wide as this, m, and as rough, hardly tips or slides: it is held, as in limits.py, but
for what would lift it."""


def model_of(joints: list[dict]) -> pin.Model:
    """The tree again, in this Pinocchio."""
    model = pin.Model()
    kinds = {
        "turns": pin.JointModelRevoluteUnaligned, "slides": pin.JointModelPrismaticUnaligned,
        "floats": pin.JointModelFreeFlyer,
    }  # fmt: skip
    for joint in joints:
        kind = kinds[joint["kind"]](*joint["axis"])
        index = model.addJoint(joint["parent"], kind, pin.SE3(joint["placement"]), joint["name"])
        body = pin.Inertia(joint["mass"], joint["lever"], joint["inertia"])
        model.appendBodyToJoint(index, body, pin.SE3.Identity())
    return model


class Tick:
    """A controller of TSID."""

    def __init__(self, given: dict) -> None:
        model = model_of(given["joints"])
        model.gravity.linear = given["gravity"]
        for name, joint, placement in given["frames"]:
            frame = pin.Frame(name, joint, 0, pin.SE3(placement), pin.FrameType.OP_FRAME)
            model.addFrame(frame)
        q, v, _ = given["states"][0]
        data = model.createData()
        pin.crba(model, data, q)
        M = np.triu(data.M) + np.triu(data.M, 1).T
        off = np.abs(M - given["M"]).max() / np.abs(given["M"]).max()
        h = pin.nonLinearEffects(model, data, q, v)
        off = max(off, np.abs(h - given["h"]).max() / np.abs(given["h"]).max())
        if not off < 1e-9:
            raise RuntimeError(f"the robot is another one, by {off:.0e}")
        floating = given["joints"][0]["kind"] == "floats"
        root = tsid.FLOATING_BASE_SYSTEM if floating else tsid.FIXED_BASE_SYSTEM
        self.robot = robot = tsid.RobotWrapper(model, root, False)
        robot.setGravity(model.gravity)
        law = tsid.InverseDynamicsFormulationAccForce("law", robot, False)
        law.computeProblemData(0.0, q, v)
        self.keep = []
        for name, frames in given["balls"]:
            ball = tsid.ContactTwoFramePositions(name, robot, *frames, -MOST, MOST)
            ball.setKp(np.zeros(3))
            ball.setKd(np.zeros(3))
            law.addRigidContact(ball, 1e-9, 1.0, 0)
            self.keep.append(ball)
        for name, frame in given["feet"]:
            corners = FOOT * np.array([[-1, -1, 1, 1], [-1, 1, -1, 1], [0, 0, 0, 0]], float)
            up = np.array([0.0, 0.0, 1.0])
            foot = tsid.Contact6d(name, robot, frame, corners, up, FRICTION, 0.0, MOST)
            foot.setReference(robot.framePosition(law.data(), model.getFrameId(frame)))
            foot.setKp(np.zeros(6))
            foot.setKd(np.zeros(6))
            law.addRigidContact(foot, 1e-9)
            self.keep.append(foot)
        self.driven = given["driven"]
        self.motion = tsid.TaskJointPosture("motors", robot)
        self.motion.setKp(np.zeros(robot.na))
        self.motion.setKd(np.zeros(robot.na))
        mask = np.zeros(robot.na)
        mask[self.driven] = 1.0
        self.motion.setMask(mask)
        law.addMotionTask(self.motion, 1.0, 1, 0.0)
        bounds = tsid.TaskActuationBounds("limits", robot)
        bounds.setBounds(self._of_all(given["lower"]), self._of_all(given["upper"]))
        law.addActuationTask(bounds, 1.0, 0, 0.0)
        self.keep.append(bounds)
        self.law, self.solver = law, tsid.SolverHQuadProgFast("solver")
        self.solver.resize(law.nVar, law.nEq, law.nIn)
        self.still = np.zeros(robot.nq_actuated)

    def _of_all(self, x: np.ndarray) -> np.ndarray:
        found = np.zeros(self.robot.na)
        found[self.driven] = x
        return found

    def wanted(self, target: np.ndarray) -> tsid.TrajectorySample:
        """The acceleration that is asked for, as TSID takes it."""
        robot = self.robot
        sample = tsid.TrajectorySample(robot.nq_actuated, robot.na)
        sample.value(self.still)
        sample.derivative(np.zeros(robot.na))
        sample.second_derivative(self._of_all(target))
        return sample

    def efforts(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """What is timed."""
        problem = self.law.computeProblemData(0.0, q, v)
        found = self.solver.solve(problem)
        if found.status != 0:
            raise RuntimeError(f"TSID: {found.status}")
        return self.law.getActuatorForces(found)


def main() -> None:
    """See the head of this file."""
    given = pickle.loads(Path(sys.argv[1]).read_bytes())
    tick, clock = Tick(given), time.perf_counter_ns
    states = [(q, v, tick.wanted(target)) for q, v, target in given["states"]]
    efforts = []
    for q, v, sample in states:
        tick.motion.setReference(sample)
        efforts.append(tick.efforts(q, v)[tick.driven].tolist())
    print(json.dumps(efforts), flush=True)
    for _ in sys.stdin:
        times = []
        for q, v, sample in states:
            tick.motion.setReference(sample)
            for _ in range(3):
                start = clock()
                tick.efforts(q, v)
                end = clock()
            times.append(end - start)
        print(json.dumps(times), flush=True)


if __name__ == "__main__":
    main()
