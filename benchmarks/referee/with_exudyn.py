"""Exudyn on the same mechanism: bodies in redundant coordinates, generic joints, generalized
alpha (its default index 2 solver)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import holoctl as hc
from holoctl.tree.frames import Frame, resolve_frame
from referee.outcome import NAN, Outcome, error, timed
from referee.problem import Problem
from referee.thickened import thickened

Array = NDArray[np.float64]
FREE = {"RX": 3, "RY": 4, "RZ": 5, "PX": 0, "PY": 1, "PZ": 2}
"""The axis of a generic joint that a joint of the tree leaves free."""
HELD = {"spherical": (1, 1, 1, 0, 0, 0), "revolute": (1, 1, 1, 1, 1, 0)}


class Model:
    """The mechanism in Exudyn; bodies stand at their centres of mass."""

    def __init__(self, problem: Problem) -> None:
        import exudyn as exu

        self.exu, self.container = exu, exu.SystemContainer()
        self.mbs = self.container.AddSystem()
        self.mech, self.q, self.v = problem.make()
        self.model = thickened(self.mech.model)
        self.data = self.model.createData()
        pin.forwardKinematics(self.model, self.data, self.q, self.v)
        self.ground = self.mbs.CreateGround()
        self.body: dict[int, int] = {}
        self.above: dict[int, tuple[int, list[int]]] = {}
        for j in range(1, self.model.njoints):
            self._add(j)
        for c in self.mech.constraints:
            self._tie(c)
        for s in self.mech.forces:
            ends = [self._marker(resolve_frame(self.model, f, "spring"), False)
                    for f in (s.a, s.b)]  # fmt: skip
            self.mbs.AddObject(
                exu.itemInterface.ObjectConnectorSpringDamper(
                    markerNumbers=ends, stiffness=s.stiffness, damping=s.damping,
                    referenceLength=s.length,
                )
            )  # fmt: skip
        for x, motor in zip(problem.effort, self.mech.actuator_names, strict=True):
            self._motor(self.model.getJointId(motor), x)
        self.sensors = [self._sensor(p) for p in problem.points]
        self.mbs.Assemble()

    def _add(self, j: int) -> None:
        """A body and its joint; one without mass leaves its freedom to the next."""
        from exudyn.utilities import RigidBodyInertia

        model, parent = self.model, self.model.parents[j]
        axis = FREE[model.joints[j].shortname()[-2:]]
        first, free = self.above.get(parent, (j, []))
        free = [*free, axis]
        inertia = model.inertias[j]
        if inertia.mass == 0.0:
            self.above[j] = (first, free)
            return
        place = self.data.oMi[j]
        twist = pin.getVelocity(model, self.data, j, pin.LOCAL_WORLD_ALIGNED)
        lever = place.rotation @ inertia.lever
        self.body[j] = self.mbs.CreateRigidBody(
            inertia=RigidBodyInertia(inertia.mass, inertia.inertia),
            referencePosition=place.translation + lever,
            referenceRotationMatrix=place.rotation,
            initialVelocity=twist.linear + np.cross(twist.angular, lever),
            initialAngularVelocity=twist.angular,
            gravity=list(model.gravity.linear),
        )
        carrier = Frame(model.parents[first], model.jointPlacements[first], "carrier")
        own = Frame(j, pin.SE3.Identity(), "own")
        self._joint(carrier, own, [int(i not in free) for i in range(6)])

    def _tie(self, c: Any) -> None:
        a, b = (resolve_frame(self.model, f, c.default_name) for f in (c.a, c.b))
        if isinstance(c, hc.Rod):
            ends = [self._marker(f, False) for f in (a, b)]
            self.mbs.AddObject(
                self.exu.itemInterface.ObjectConnectorDistance(
                    markerNumbers=ends, distance=c.length
                )
            )
            return
        held = HELD[c.joint] if c.joint else [int(x in c.axes.split()) for x in "xyz"] + [0] * 3
        self._joint(a, b, list(held))

    def _joint(self, a: Frame, b: Frame, held: list[int]) -> None:
        self.mbs.AddObject(
            self.exu.itemInterface.ObjectJointGeneric(
                markerNumbers=[self._marker(a), self._marker(b)], constrainedAxes=held,
                rotationMarker0=a.placement.rotation, rotationMarker1=b.placement.rotation,
            )
        )  # fmt: skip

    def _local(self, frame: Frame) -> tuple[int, Array]:
        p = frame.placement.translation
        if frame.joint == 0:
            return self.ground, p
        return self.body[frame.joint], p - self.model.inertias[frame.joint].lever

    def _marker(self, frame: Frame, rigid: bool = True) -> int:
        number, p = self._local(frame)
        kinds = self.exu.itemInterface
        kind = kinds.MarkerBodyRigid if rigid else kinds.MarkerBodyPosition
        return int(self.mbs.AddMarker(kind(bodyNumber=number, localPosition=list(p))))

    def _motor(self, j: int, effort: float) -> None:
        axis = self.data.oMi[j].rotation[:, 2]
        self.mbs.AddLoad(
            self.exu.itemInterface.Torque(
                markerNumber=self._marker(Frame(j, pin.SE3.Identity(), "own")),
                loadVector=list(effort * axis),
            )
        )

    def _sensor(self, point: Any) -> int:
        number, p = self._local(resolve_frame(self.model, point, "a point to follow"))
        return int(
            self.mbs.AddSensor(
                self.exu.itemInterface.SensorBody(
                    bodyNumber=number, localPosition=list(p), storeInternal=True,
                    outputVariableType=self.exu.OutputVariableType.Position,
                )
            )
        )  # fmt: skip


def outcome(problem: Problem) -> Outcome:
    """The line of the table."""
    import exudyn as exu

    step = problem.steps["Exudyn"]
    name = f"Exudyn, {1e3 * step:g} ms"
    made = Model(problem)
    end = float(problem.times[-1])
    every = end if len(problem.times) == 1 else float(problem.times[1])
    settings = exu.SimulationSettings()
    integration = settings.timeIntegration
    integration.numberOfSteps, integration.endTime = round(end / step), end
    integration.verboseMode = 0
    integration.newton.useModifiedNewton = True
    integration.generalizedAlpha.spectralRadius = 0.95
    settings.solutionSettings.writeSolutionToFile = False
    settings.solutionSettings.sensorsWritePeriod = every
    if any(getattr(c, "joint", None) == "revolute" for c in made.mech.constraints):
        settings.linearSolverType = exu.LinearSolverType.EigenDense
        settings.linearSolverSettings.ignoreSingularJacobian = True
    elif made.model.njoints > 20:
        settings.linearSolverType = exu.LinearSolverType.EigenSparse
    try:
        done, seconds = timed(lambda: made.mbs.SolveDynamic(settings))
    except Exception as failure:  # its errors have no class of their own
        return Outcome(name, word=str(failure).splitlines()[0][:40] or "breaks down")
    data = [made.mbs.GetSensorStoredData(s) for s in made.sensors]
    at = np.searchsorted(data[0][:, 0], problem.times - 0.5 * step)
    if not done or at[-1] >= len(data[0]):
        return Outcome(name, seconds=seconds, word="breaks down")
    points = np.stack([d[at, 1:4] for d in data], axis=1)
    return Outcome(
        name, error(problem, points), NAN, NAN, seconds, steps=int(integration.numberOfSteps)
    )  # fmt: skip
