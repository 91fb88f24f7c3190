"""The classes of results: what functions of the library return. A user names them in annotations,
and never makes one.
"""

from __future__ import annotations

from holoctl.app.view.view import View
from holoctl.base.errors import SweepError
from holoctl.closing.closed_state import ClosedMotion, ClosedState
from holoctl.closing.repaired_geometry import RepairedGeometry
from holoctl.codegen.compiled.compiled import Compiled
from holoctl.codegen.compiled.compiled_tasks import CompiledTasks
from holoctl.codegen.devices.batch_functions import BatchFunctions
from holoctl.codegen.devices.batch_status import BatchStatus
from holoctl.codegen.functions_for_optimisation import CasadiFunctions
from holoctl.constraints.joint_coordinates import JointMotion
from holoctl.control.contact_certificate import ContactCertificate
from holoctl.control.contact_inverse_dynamics import ContactInverseDynamics
from holoctl.control.limited_inverse_dynamics import LimitedInverseDynamics
from holoctl.control.loop import Loop, Tracking
from holoctl.control.loop_memory import TaskReport
from holoctl.control.realtime import LoopStatistics
from holoctl.control.tasks.task_terms import TaskTerms
from holoctl.design.equilibria.equilibrium import Equilibrium
from holoctl.design.feedback.crossing_control import CrossingReport
from holoctl.design.feedback.gains import Gains
from holoctl.design.feedback.state_feedback import StateFeedback
from holoctl.design.linear.model import Linearization
from holoctl.design.linear.modes import Mode
from holoctl.design.maps.result import MotorMap
from holoctl.design.paths.planned_crossing import PlannedCrossing
from holoctl.design.planning.connect import ConnectedPath
from holoctl.design.planning.sheet import SheetSigns
from holoctl.design.sweeps.sweep import Sweep
from holoctl.doctor.assembly_mode_paths import JoinedModes
from holoctl.doctor.assembly_modes import AssemblyMode, AssemblyModes
from holoctl.doctor.motion_types import Motion
from holoctl.doctor.redundancy import RowGroup
from holoctl.doctor.report import MobilityReport
from holoctl.dynamics.batch_certificate import BatchCertificate
from holoctl.dynamics.certificate import Certificate
from holoctl.dynamics.energy import Energy, Power
from holoctl.dynamics.forward import ForwardDynamics
from holoctl.dynamics.impacts import Impact
from holoctl.dynamics.inverse import InverseDynamics
from holoctl.estimation.closed_state_estimator import EstimatorReport
from holoctl.estimation.frame_wrench import FrameWrench
from holoctl.identification.base_parameters import BaseParameters
from holoctl.identification.diagnosis import MeasurementDiagnosis, ResidualDiagnosis
from holoctl.identification.drive_gains import DriveGains
from holoctl.identification.excitation import Excitation
from holoctl.identification.fit import Fit
from holoctl.identification.inertia_ellipsoids import InertiaEllipsoid
from holoctl.identification.load import Load
from holoctl.identification.regression import Regression
from holoctl.mechanism.frame_displacements import Move
from holoctl.projector.partition import Partition
from holoctl.projector.projection import Projection
from holoctl.rows.constraint_errors import ConstraintErrors
from holoctl.rows.reactions import ConstraintWrench
from holoctl.rows.terms import Terms
from holoctl.simulation.rollouts import RolloutResult
from holoctl.transmission.check import TransmissionCheck
from holoctl.transmission.polytope import Polytope
from holoctl.transmission.report import TransmissionReport
from holoctl.transmission.robot import RobotTransmissions
from holoctl.transmission.serial_robot import SerialRobot
from holoctl.transmission.table import TransmissionTable
from holoctl.transmission.transmission import JointGains, MotorEfforts

__all__ = [
    "AssemblyMode",
    "AssemblyModes",
    "BaseParameters",
    "BatchCertificate",
    "BatchFunctions",
    "BatchStatus",
    "CasadiFunctions",
    "Certificate",
    "ClosedMotion",
    "ClosedState",
    "Compiled",
    "CompiledTasks",
    "ConnectedPath",
    "ConstraintErrors",
    "ConstraintWrench",
    "ContactCertificate",
    "ContactInverseDynamics",
    "CrossingReport",
    "DriveGains",
    "Energy",
    "Equilibrium",
    "EstimatorReport",
    "Excitation",
    "Fit",
    "ForwardDynamics",
    "FrameWrench",
    "Gains",
    "Impact",
    "InertiaEllipsoid",
    "InverseDynamics",
    "JoinedModes",
    "JointGains",
    "JointMotion",
    "LimitedInverseDynamics",
    "Linearization",
    "Load",
    "Loop",
    "LoopStatistics",
    "MeasurementDiagnosis",
    "MobilityReport",
    "Mode",
    "Motion",
    "MotorEfforts",
    "MotorMap",
    "Move",
    "Partition",
    "PlannedCrossing",
    "Polytope",
    "Power",
    "Projection",
    "Regression",
    "RepairedGeometry",
    "ResidualDiagnosis",
    "RobotTransmissions",
    "RolloutResult",
    "RowGroup",
    "SerialRobot",
    "SheetSigns",
    "StateFeedback",
    "Sweep",
    "SweepError",
    "TaskReport",
    "TaskTerms",
    "Terms",
    "Tracking",
    "TransmissionCheck",
    "TransmissionReport",
    "TransmissionTable",
    "View",
]
