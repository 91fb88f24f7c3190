"""holoctl: inverse dynamics and torque control of robots with holonomic constraints.

Packages, from the lowest layer to the highest:

    base, tree     utilities, and queries on a plain `pin.Model`
    constraints    `Closure`, `Rod`, `Contact`, `Coupling`, ... bind to a model: rows of phi = 0
    forces         `JointFriction`, `Spring`, ... bind likewise: efforts F(q, v, t)
    mechanism, io  tree, constraints, forces and motors: a `Mechanism`, which `load` reads
    rows           `terms` evaluates the rows and the equation of motion at (q, v)
    closing        `assemble` finds a closed state
    projector      `partition` chooses rows and coordinates, `project` computes gamma and bias
    estimation     `ClosedStateEstimator` finds the closed state from the motors, at every tick
    dynamics       `inverse_dynamics` and `forward_dynamics`, each with a certificate
    doctor         `mobility` explains what moves, what is redundant, and why
    control        `ComputedTorque` controls motors, `TaskSpaceControl` poses
    codegen        `compile` and `export_c` make machine code of these laws
    design         `linearize`, `lqr`, `retime`, `sweep`: models, gains and motions, offline
    identification `identify` finds masses, friction and rotors from measurements
    simulation     `simulate` runs a controller against a plant
    app            `draw`, `plot_run`, `animate`, `view` make pictures; the command line

`results` has the classes that functions return, `protocols` what constraints, forces and tasks of a
user are written with. docs/reference/index.md lists all public names by task.

>>> import holoctl as hc
>>> mech = hc.load(hc.robot_file("five_bar"))
>>> q, v = hc.assemble(mech)
>>> hc.inverse_dynamics(mech, q, v, target=[0.0, 0.0]).certificate.ok
True
"""

from __future__ import annotations

import importlib
import sys
import warnings
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holoctl import methods, protocols, results
    from holoctl.app.animate import animate
    from holoctl.app.draw import draw
    from holoctl.app.identification_plot import plot_fit
    from holoctl.app.plot_run import plot_run
    from holoctl.app.style import style
    from holoctl.app.view.view import save_view, view
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
    )
    from holoctl.closing.assembly import assemble
    from holoctl.closing.repaired_geometry import repaired_geometry
    from holoctl.codegen.compile import compile
    from holoctl.codegen.exported.export import export_c
    from holoctl.codegen.exported.ros2 import export_ros2
    from holoctl.codegen.functions_for_optimisation import casadi_functions
    from holoctl.constraints.closure import Closure
    from holoctl.constraints.contact import Contact
    from holoctl.constraints.coupling import Coupling
    from holoctl.constraints.custom import Custom
    from holoctl.constraints.explicit_chart import GammaQ
    from holoctl.constraints.rod import Rod
    from holoctl.constraints.unilateral_contact import UnilateralContact
    from holoctl.control.computed_torque import ComputedTorque
    from holoctl.control.contact_inverse_dynamics import contact_inverse_dynamics
    from holoctl.control.limited_inverse_dynamics import WithinLimits, limited_inverse_dynamics
    from holoctl.control.reach.inverse_kinematics import inverse_kinematics
    from holoctl.control.realtime import realtime, run_at_rate
    from holoctl.control.task_space.impedance import Impedance
    from holoctl.control.task_space.task_space_control import TaskSpaceControl
    from holoctl.control.tasks.center_of_mass_task import CenterOfMassTask
    from holoctl.control.tasks.custom_task import CustomTask
    from holoctl.control.tasks.frame_task import FrameTask
    from holoctl.control.tasks.posture_task import PostureTask
    from holoctl.control.tasks.task_terms import task_terms
    from holoctl.design.equilibria.equilibrium import equilibrium
    from holoctl.design.feedback.crossing_control import CrossingControl
    from holoctl.design.feedback.gains import gains_for
    from holoctl.design.feedback.lqr import lqr
    from holoctl.design.feedback.lqr_along import lqr_along
    from holoctl.design.linear.linearize import linearize
    from holoctl.design.maps.motor_map import motor_map
    from holoctl.design.paths.trajectory import Trajectory
    from holoctl.design.planning.connect import connect
    from holoctl.design.planning.sheet import sheet
    from holoctl.design.retiming.retime import retime
    from holoctl.design.sweeps.sweep import sweep
    from holoctl.doctor.assembly_mode_paths import joined_modes
    from holoctl.doctor.assembly_modes import assembly_modes
    from holoctl.doctor.mobility_analysis import mobility
    from holoctl.dynamics.energy import energy, power
    from holoctl.dynamics.forward import forward_dynamics
    from holoctl.dynamics.impacts import impulse
    from holoctl.dynamics.inverse import inverse_dynamics
    from holoctl.dynamics.tick.prepared_forward import PreparedForwardDynamics
    from holoctl.dynamics.tick.prepared_inverse import PreparedInverseDynamics
    from holoctl.estimation.closed_state_estimator import ClosedStateEstimator
    from holoctl.estimation.momentum_observer import MomentumObserver
    from holoctl.estimation.payload_estimator import PayloadEstimator
    from holoctl.estimation.rate_filter import RateFilter
    from holoctl.forces.counterbalance import Counterbalance
    from holoctl.forces.custom_force import CustomForce
    from holoctl.forces.joint_friction import JointFriction
    from holoctl.forces.joint_spring import JointSpring
    from holoctl.forces.spring import Spring
    from holoctl.identification.base_parameters import base_parameters
    from holoctl.identification.diagnosis import measurement_diagnosis, residual_diagnosis
    from holoctl.identification.drive_gains import identify_gains
    from holoctl.identification.excitation import excitation
    from holoctl.identification.fit import identify
    from holoctl.identification.load import identify_load
    from holoctl.identification.measurements import Measurements
    from holoctl.identification.parameters import Parameters
    from holoctl.identification.regression import regression
    from holoctl.io.load import load, robot_file, robot_names
    from holoctl.io.save import save
    from holoctl.mechanism.default_limits import limits_of
    from holoctl.mechanism.joint_motion import joint_motion
    from holoctl.mechanism.limits import Limits
    from holoctl.mechanism.linkage import Linkage
    from holoctl.mechanism.mechanism import Mechanism
    from holoctl.projector.partition import partition
    from holoctl.projector.projection import project
    from holoctl.projector.state_projection import corrected
    from holoctl.rows.constraint_errors import constraint_errors
    from holoctl.rows.reactions import constraint_wrenches
    from holoctl.rows.terms import terms
    from holoctl.simulation.events import Event
    from holoctl.simulation.plant import Integrator, Plant
    from holoctl.simulation.rollouts import Rollouts
    from holoctl.simulation.run import Run
    from holoctl.simulation.sensors import Sensors
    from holoctl.simulation.simulate import simulate
    from holoctl.transmission.robot import transmissions
    from holoctl.transmission.serial_robot import serial_model
    from holoctl.transmission.transmission import Transmission
    from holoctl.tree.numbering import renumbered

_HOMES = {
    "app.animate": ["animate"],
    "app.draw": ["draw"],
    "app.identification_plot": ["plot_fit"],
    "app.plot_run": ["plot_run"],
    "app.style": ["style"],
    "app.view.view": ["save_view", "view"],
    "closing.assembly": ["assemble"],
    "estimation.momentum_observer": ["MomentumObserver"],
    "estimation.payload_estimator": ["PayloadEstimator"],
    "estimation.closed_state_estimator": ["ClosedStateEstimator"],
    "estimation.rate_filter": ["RateFilter"],
    "closing.repaired_geometry": ["repaired_geometry"],
    "codegen.compile": ["compile"],
    "codegen.functions_for_optimisation": ["casadi_functions"],
    "codegen.exported.export": ["export_c"],
    "codegen.exported.ros2": ["export_ros2"],
    "constraints.closure": ["Closure"],
    "constraints.contact": ["Contact"],
    "constraints.coupling": ["Coupling"],
    "constraints.custom": ["Custom"],
    "constraints.explicit_chart": ["GammaQ"],
    "constraints.rod": ["Rod"],
    "constraints.unilateral_contact": ["UnilateralContact"],
    "forces.counterbalance": ["Counterbalance"],
    "forces.custom_force": ["CustomForce"],
    "forces.joint_friction": ["JointFriction"],
    "forces.joint_spring": ["JointSpring"],
    "forces.spring": ["Spring"],
    "dynamics.energy": ["energy", "power"],
    "control.computed_torque": ["ComputedTorque"],
    "control.contact_inverse_dynamics": ["contact_inverse_dynamics"],
    "control.reach.inverse_kinematics": ["inverse_kinematics"],
    "control.limited_inverse_dynamics": ["WithinLimits", "limited_inverse_dynamics"],
    "control.task_space.impedance": ["Impedance"],
    "control.task_space.task_space_control": ["TaskSpaceControl"],
    "control.tasks.center_of_mass_task": ["CenterOfMassTask"],
    "control.tasks.custom_task": ["CustomTask"],
    "control.tasks.frame_task": ["FrameTask"],
    "control.tasks.posture_task": ["PostureTask"],
    "control.tasks.task_terms": ["task_terms"],
    "design.equilibria.equilibrium": ["equilibrium"],
    "design.feedback.gains": ["gains_for"],
    "design.linear.linearize": ["linearize"],
    "design.feedback.lqr": ["lqr"],
    "design.feedback.crossing_control": ["CrossingControl"],
    "design.feedback.lqr_along": ["lqr_along"],
    "design.planning.connect": ["connect"],
    "design.planning.sheet": ["sheet"],
    "design.retiming.retime": ["retime"],
    "design.paths.trajectory": ["Trajectory"],
    "design.maps.motor_map": ["motor_map"],
    "design.sweeps.sweep": ["sweep"],
    "doctor.assembly_modes": ["assembly_modes"],
    "doctor.assembly_mode_paths": ["joined_modes"],
    "doctor.mobility_analysis": ["mobility"],
    "dynamics.forward": ["forward_dynamics"],
    "dynamics.impacts": ["impulse"],
    "dynamics.inverse": ["inverse_dynamics"],
    "dynamics.tick.prepared_inverse": ["PreparedInverseDynamics"],
    "dynamics.tick.prepared_forward": ["PreparedForwardDynamics"],
    "rows.terms": ["terms"],
    "base.errors": [
        "AssemblyError", "BranchError", "HoloctlError", "InconsistentError", "InputError",
        "LimitError", "LoadError", "NotActuatedError", "SingularityError",
    ],
    "identification.base_parameters": ["base_parameters"],
    "identification.diagnosis": ["measurement_diagnosis", "residual_diagnosis"],
    "identification.drive_gains": ["identify_gains"],
    "identification.excitation": ["excitation"],
    "identification.fit": ["identify"],
    "identification.load": ["identify_load"],
    "identification.measurements": ["Measurements"],
    "identification.parameters": ["Parameters"],
    "identification.regression": ["regression"],
    "io.load": ["load", "robot_file", "robot_names"],
    "io.save": ["save"],
    "mechanism.joint_motion": ["joint_motion"],
    "mechanism.limits": ["Limits"],
    "mechanism.default_limits": ["limits_of"],
    "mechanism.linkage": ["Linkage"],
    "mechanism.mechanism": ["Mechanism"],
    "projector.state_projection": ["corrected"],
    "projector.partition": ["partition"],
    "projector.projection": ["project"],
    "rows.constraint_errors": ["constraint_errors"],
    "rows.reactions": ["constraint_wrenches"],
    "simulation.events": ["Event"],
    "simulation.plant": ["Integrator", "Plant"],
    "simulation.rollouts": ["Rollouts"],
    "simulation.run": ["Run"],
    "simulation.sensors": ["Sensors"],
    "simulation.simulate": ["simulate"],
    "control.realtime": ["realtime", "run_at_rate"],
    "transmission.robot": ["transmissions"],
    "transmission.serial_robot": ["serial_model"],
    "transmission.transmission": ["Transmission"],
    "tree.numbering": ["renumbered"],
    "methods": ["methods"],
    "protocols": ["protocols"],
    "results": ["results"],
}  # fmt: skip
_MODULES = {"methods", "protocols", "results"}
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
    elif now := _present_name(name):
        warnings.warn(f"holoctl.{name} is holoctl.{now} now", DeprecationWarning, stacklevel=2)
        return attrgetter(now)(sys.modules[__name__])
    else:
        raise AttributeError(f"module 'holoctl' has no attribute {name!r}")
    globals()[name] = value
    return value


def _present_name(former: str) -> str | None:
    """The name that replaces a former one. Private names, for which tools ask, import nothing."""
    if former.startswith("_"):
        return None
    now: str | None = importlib.import_module("holoctl.base.renamed").RENAMED.get(former)
    if now is None:
        for place in sorted(_MODULES):
            if former in importlib.import_module(f"holoctl.{place}").__all__:
                return f"{place}.{former}"
    return now


def __dir__() -> list[str]:
    return sorted(__all__)
