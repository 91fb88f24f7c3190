"""holoctl: inverse dynamics and torque control of robots with holonomic constraints.

Packages, from the lowest layer to the highest:

    base, tree     utilities, and queries on a plain `pin.Model`
    constraints    a `Closure`, `Rod`, `Contact`, `Coupling`, ... binds to a model: rows of phi = 0
    forces         `JointFriction`, `Spring`, ... bind likewise: efforts F(q, v, t)
    mechanism      tree, constraints, forces and motors: a `Mechanism`; io reads one from a file
    rows           at (q, v) its rows and the equation of motion become `Terms`
    closing        `assemble` finds a closed state; the rank of G is decided there
    projector      `partition` decides once; `project` makes gamma and bias: a `Projection`
    estimation     `ClosedStateEstimator` finds the closed state from the motors, at every tick
    dynamics       it feeds `inverse_dynamics` and `forward_dynamics`, each with a `Certificate`
    doctor         `mobility` explains what moves, what is redundant, and why
    control        `ComputedTorque` is the law of a loop, `TaskSpaceControl` that of poses
    codegen        `compile` and `export_c` make machine code of it
    design         `linearize`, `lqr`, `retime`, `sweep`: offline, what controllers are made of
    simulation     `simulate` runs it against a plant
    app            `draw`, `plot_run`, `animate` picture it, `view` shows it in a browser; the
                   command line

>>> import holoctl as hc
>>> mech = hc.load(hc.robot_file("five_bar"))
>>> q, v = hc.assemble(mech)
>>> hc.inverse_dynamics(mech, q, v, target=[0.0, 0.0]).certificate.ok
True
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holoctl.app.animate import animate
    from holoctl.app.draw import draw
    from holoctl.app.plot_run import plot_run
    from holoctl.app.view.view import View, save_view, view
    from holoctl.base.errors import (
        AssemblyError,
        BranchError,
        HoloctlError,
        InconsistentError,
        InputError,
        LimitError,
        LoadError,
        NotActuatedError,
        SingularityError,
        SweepError,
    )
    from holoctl.closing.assembly import assemble
    from holoctl.closing.repaired_geometry import RepairedGeometry, repaired_geometry
    from holoctl.codegen.compiled.compile import compile
    from holoctl.codegen.compiled.compiled import Compiled
    from holoctl.codegen.compiled.compiled_tasks import CompiledTasks
    from holoctl.codegen.exported.export import export_c
    from holoctl.constraints import kinds
    from holoctl.constraints.closure import Closure
    from holoctl.constraints.constraint_protocol import BoundRows, Constraint, Rows
    from holoctl.constraints.contact import Contact
    from holoctl.constraints.coupling import Coupling
    from holoctl.constraints.custom import Custom
    from holoctl.constraints.explicit_chart import GammaQ
    from holoctl.constraints.joint_coordinates import JointMotion
    from holoctl.constraints.rod import Rod
    from holoctl.constraints.wrench_rows import wrench_rows
    from holoctl.control.computed_torque import ComputedTorque
    from holoctl.control.limited_inverse_dynamics import (
        LimitedInverseDynamics,
        WithinLimits,
        limited_inverse_dynamics,
    )
    from holoctl.control.loop import Loop, Tracking
    from holoctl.control.loop_memory import TaskReport
    from holoctl.control.reach.inverse_kinematics import inverse_kinematics
    from holoctl.control.realtime import LoopStatistics, realtime, run_at_rate
    from holoctl.control.task_space.impedance import Impedance
    from holoctl.control.task_space.task_space_control import TaskSpaceControl
    from holoctl.control.tasks.center_of_mass_task import CenterOfMassTask
    from holoctl.control.tasks.custom_task import CustomTask
    from holoctl.control.tasks.frame_task import FrameTask
    from holoctl.control.tasks.posture_task import PostureTask
    from holoctl.control.tasks.task_protocol import (
        BoundTask,
        FrameMotion,
        Task,
        TaskExpression,
        TaskMotion,
        TaskTick,
    )
    from holoctl.control.tasks.task_terms import TaskTerms, task_terms
    from holoctl.design.equilibria.equilibrium import Equilibrium, equilibrium
    from holoctl.design.feedback.gains import Gains, gains_for
    from holoctl.design.feedback.lqr import lqr
    from holoctl.design.feedback.lqr_along import lqr_along
    from holoctl.design.feedback.state_feedback import StateFeedback
    from holoctl.design.linear.linearize import linearize
    from holoctl.design.linear.model import Linearization
    from holoctl.design.linear.modes import Mode
    from holoctl.design.maps.motor_map import motor_map
    from holoctl.design.maps.result import MotorMap
    from holoctl.design.paths.trajectory import Trajectory
    from holoctl.design.retiming.retime import retime
    from holoctl.design.sweeps.sweep import Sweep, sweep
    from holoctl.doctor.assembly_mode_paths import JoinedModes, joined_modes
    from holoctl.doctor.assembly_modes import AssemblyMode, AssemblyModes, assembly_modes
    from holoctl.doctor.mobility_analysis import mobility
    from holoctl.doctor.motion_types import Motion
    from holoctl.doctor.redundancy import RowGroup
    from holoctl.doctor.report import MobilityReport
    from holoctl.dynamics.batch_certificate import BatchCertificate
    from holoctl.dynamics.certificate import Certificate
    from holoctl.dynamics.energy import Energy, Power, energy, power
    from holoctl.dynamics.forward import ForwardDynamics, forward_dynamics
    from holoctl.dynamics.impacts import Impact, impulse
    from holoctl.dynamics.inverse import InverseDynamics, inverse_dynamics
    from holoctl.dynamics.other_methods.fdgq import fdgq
    from holoctl.dynamics.relaxed_inverse import inverse_dynamics_relaxed, is_fully_actuated
    from holoctl.dynamics.tick.prepared_forward import PreparedForwardDynamics
    from holoctl.dynamics.tick.prepared_inverse import PreparedInverseDynamics
    from holoctl.estimation.closed_state_estimator import ClosedStateEstimator, EstimatorReport
    from holoctl.estimation.frame_wrench import FrameWrench
    from holoctl.estimation.momentum_observer import MomentumObserver
    from holoctl.estimation.rate_filter import RateFilter
    from holoctl.forces.counterbalance import Counterbalance
    from holoctl.forces.custom_force import CustomForce
    from holoctl.forces.force_protocol import BoundForce, Efforts, Force
    from holoctl.forces.joint_friction import JointFriction
    from holoctl.forces.joint_spring import JointSpring
    from holoctl.forces.spring import Spring
    from holoctl.io.load import load, robot_file, robot_names
    from holoctl.mechanism.default_limits import limits_of
    from holoctl.mechanism.frame_displacements import Move
    from holoctl.mechanism.joint_motion import joint_motion
    from holoctl.mechanism.limits import Limits
    from holoctl.mechanism.linkage import Linkage
    from holoctl.mechanism.mechanism import Mechanism
    from holoctl.projector.partition import Partition, partition
    from holoctl.projector.projection import Projection, project
    from holoctl.projector.state_projection import corrected
    from holoctl.rows.constraint_errors import ConstraintErrors, constraint_errors
    from holoctl.rows.evaluate import by_constraint
    from holoctl.rows.reactions import ConstraintWrench, constraint_wrenches
    from holoctl.rows.terms import Terms, terms
    from holoctl.simulation.events import Event
    from holoctl.simulation.plant import Integrator, Plant
    from holoctl.simulation.run import Run
    from holoctl.simulation.sensors import Sensors
    from holoctl.simulation.simulate import simulate
    from holoctl.tree.frames import Frame, resolve_frame
    from holoctl.tree.kinematics import Kinematics
    from holoctl.tree.live_motion import LiveMotion
    from holoctl.tree.numbering import renumbered

_HOMES = {
    "app.animate": ["animate"],
    "app.draw": ["draw"],
    "app.plot_run": ["plot_run"],
    "app.view.view": ["View", "save_view", "view"],
    "closing.assembly": ["assemble"],
    "estimation.frame_wrench": ["FrameWrench"],
    "estimation.momentum_observer": ["MomentumObserver"],
    "estimation.closed_state_estimator": ["EstimatorReport", "ClosedStateEstimator"],
    "estimation.rate_filter": ["RateFilter"],
    "closing.repaired_geometry": ["RepairedGeometry", "repaired_geometry"],
    "dynamics.batch_certificate": ["BatchCertificate"],
    "dynamics.certificate": ["Certificate"],
    "codegen.compiled.compile": ["compile"],
    "codegen.compiled.compiled": ["Compiled"],
    "codegen.compiled.compiled_tasks": ["CompiledTasks"],
    "codegen.exported.export": ["export_c"],
    "constraints.closure": ["Closure"],
    "constraints.contact": ["Contact"],
    "constraints.constraint_protocol": ["BoundRows", "Constraint", "Rows"],
    "constraints.coupling": ["Coupling"],
    "constraints.custom": ["Custom"],
    "constraints.explicit_chart": ["GammaQ"],
    "constraints.kinds": ["kinds"],  # the module itself
    "constraints.rod": ["Rod"],
    "forces.force_protocol": ["BoundForce", "Efforts", "Force"],
    "forces.counterbalance": ["Counterbalance"],
    "forces.custom_force": ["CustomForce"],
    "forces.joint_friction": ["JointFriction"],
    "forces.joint_spring": ["JointSpring"],
    "forces.spring": ["Spring"],
    "dynamics.energy": ["Energy", "Power", "energy", "power"],
    "constraints.wrench_rows": ["wrench_rows"],
    "control.computed_torque": ["ComputedTorque"],
    "control.reach.inverse_kinematics": ["inverse_kinematics"],
    "control.limited_inverse_dynamics": [
        "LimitedInverseDynamics", "WithinLimits", "limited_inverse_dynamics",
    ],
    "control.loop": ["Loop", "Tracking"],
    "control.task_space.impedance": ["Impedance"],
    "control.loop_memory": ["TaskReport"],
    "control.task_space.task_space_control": ["TaskSpaceControl"],
    "control.tasks.center_of_mass_task": ["CenterOfMassTask"],
    "control.tasks.task_protocol": [
        "BoundTask", "FrameMotion", "Task", "TaskExpression", "TaskMotion", "TaskTick",
    ],
    "control.tasks.custom_task": ["CustomTask"],
    "control.tasks.frame_task": ["FrameTask"],
    "control.tasks.posture_task": ["PostureTask"],
    "control.tasks.task_terms": ["TaskTerms", "task_terms"],
    "design.equilibria.equilibrium": ["Equilibrium", "equilibrium"],
    "design.feedback.gains": ["Gains", "gains_for"],
    "design.linear.model": ["Linearization"],
    "design.linear.linearize": ["linearize"],
    "design.feedback.lqr": ["lqr"],
    "design.feedback.lqr_along": ["lqr_along"],
    "design.linear.modes": ["Mode"],
    "design.feedback.state_feedback": ["StateFeedback"],
    "design.retiming.retime": ["retime"],
    "design.paths.trajectory": ["Trajectory"],
    "design.maps.motor_map": ["motor_map"],
    "design.maps.result": ["MotorMap"],
    "design.sweeps.sweep": ["Sweep", "sweep"],
    "doctor.assembly_modes": ["AssemblyMode", "AssemblyModes", "assembly_modes"],
    "doctor.assembly_mode_paths": ["JoinedModes", "joined_modes"],
    "doctor.mobility_analysis": ["mobility"],
    "doctor.motion_types": ["Motion"],
    "doctor.redundancy": ["RowGroup"],
    "doctor.report": ["MobilityReport"],
    "dynamics.forward": ["ForwardDynamics", "forward_dynamics"],
    "dynamics.impacts": ["Impact", "impulse"],
    "dynamics.inverse": ["InverseDynamics", "inverse_dynamics"],
    "dynamics.tick.prepared_inverse": ["PreparedInverseDynamics"],
    "dynamics.tick.prepared_forward": ["PreparedForwardDynamics"],
    "dynamics.relaxed_inverse": ["inverse_dynamics_relaxed", "is_fully_actuated"],
    "dynamics.other_methods.fdgq": ["fdgq"],
    "rows.terms": ["Terms", "terms"],
    "base.errors": [
        "AssemblyError", "BranchError", "HoloctlError", "InconsistentError", "InputError",
        "LimitError", "LoadError", "NotActuatedError", "SingularityError", "SweepError",
    ],
    "io.load": ["load", "robot_file", "robot_names"],
    "constraints.joint_coordinates": ["JointMotion"],
    "mechanism.joint_motion": ["joint_motion"],
    "mechanism.limits": ["Limits"],
    "mechanism.default_limits": ["limits_of"],
    "mechanism.linkage": ["Linkage"],
    "mechanism.mechanism": ["Mechanism"],
    "mechanism.frame_displacements": ["Move"],
    "projector.state_projection": ["corrected"],
    "projector.partition": ["Partition", "partition"],
    "projector.projection": ["Projection", "project"],
    "rows.constraint_errors": ["ConstraintErrors", "constraint_errors"],
    "rows.evaluate": ["by_constraint"],
    "rows.reactions": ["ConstraintWrench", "constraint_wrenches"],
    "simulation.events": ["Event"],
    "simulation.plant": ["Integrator", "Plant"],
    "simulation.run": ["Run"],
    "simulation.sensors": ["Sensors"],
    "simulation.simulate": ["simulate"],
    "control.realtime": ["LoopStatistics", "realtime", "run_at_rate"],
    "tree.frames": ["Frame", "resolve_frame"],
    "tree.kinematics": ["Kinematics"],
    "tree.live_motion": ["LiveMotion"],
    "tree.numbering": ["renumbered"],
}  # fmt: skip
_MODULES = {"kinds"}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [*sorted(_HOME_OF), "__version__"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    """Import a public name from its home when it is first used: importing holoctl stays fast."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("holoctl")
    elif name in _HOME_OF:
        home = importlib.import_module(f"holoctl.{_HOME_OF[name]}")
        value = home if name in _MODULES else getattr(home, name)
    elif now := importlib.import_module("holoctl.base.renamed").RENAMED.get(name):
        warnings.warn(f"holoctl.{name} is holoctl.{now} now", DeprecationWarning, stacklevel=2)
        return __getattr__(now)
    else:
        raise AttributeError(f"module 'holoctl' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
