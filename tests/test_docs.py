"""Commands and programs in the documentation print what the documentation says."""

from __future__ import annotations

import inspect
import math
import re
import shlex
from importlib import import_module
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from pages import ALL_PAGES, is_one_program, rounded
from shared_robots import SHARED_ROBOT_NAMES, shared_robot
from support import ROOT

import holoctl as hc
from holoctl.app.cli import main

DOCS = ROOT / "docs"
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "holoctl").rglob("*.py")
]


def one_by_one():
    """Pages whose blocks stand by themselves; for the others there is test_pages_in_order.py."""
    return [page for page in ALL_PAGES if not is_one_program(page)]


def sessions():
    """Every ``$ holoctl`` line of a console block, with the file and what is printed below it."""
    for page in one_by_one():
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL):
            first, _, printed = block.partition("\n")
            yield pytest.param(first, printed, id=f"{page.stem}: {first}")


@pytest.mark.parametrize(("command", "printed"), list(sessions()))
def test_a_command_prints_what_the_page_says(command, printed, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # what a command writes, it writes there
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "holoctl"
    for i, argument in enumerate(arguments):
        robot = argument.split("/")[0]
        if robot in SHARED_ROBOT_NAMES:
            arguments[i] = str(shared_robot(robot) / "robot.urdf")
    main(arguments)
    assert rounded(capsys.readouterr().out) == rounded(printed)


def test_there_are_such_commands():
    assert len(list(sessions())) >= 4


def programs():
    """Every python block that is followed by the text it prints."""
    for page in one_by_one():
        text = page.read_text(encoding="utf-8")
        found = re.findall(r"```python\n(.*?)```\s+```text\n(.*?)```", text, flags=re.DOTALL)
        for i, (program, printed) in enumerate(found):
            yield pytest.param(program, printed, id=f"{page.stem}-{i}")


@pytest.mark.parametrize(("program", "printed"), list(programs()))
def test_a_program_prints_what_the_page_says(program, printed, tmp_path, monkeypatch, capfd):
    """In this process, which has imported already what a program imports."""
    monkeypatch.chdir(tmp_path)
    if "import mujoco" in program:
        pytest.importorskip("mujoco", minversion="4.0", reason="MuJoCo 4 is missing")
    for package in ("pandas", "pxr"):
        if f"import {package}\n" in program or f"from {package} " in program:
            pytest.importorskip(package)
    with np.printoptions():
        exec(program, {"__name__": "__main__"})  # our own page
    assert rounded(capfd.readouterr().out) == rounded(printed)


def test_the_accelerations_are_those_of_sympy():
    """By KanesMethod of SymPy 1.14, as the page says, at the state that our program prints."""
    page = (DOCS / "from-sympy.md").read_text(encoding="utf-8")
    program, *_ = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    (sentence,) = re.findall(r"precision: (.*)\.\n", page)
    names: dict = {}
    exec(re.sub(r"^print.*$", "", program, flags=re.MULTILINE), names)  # our own page
    kane = np.array([float(x) for x in sentence.split(",")])
    assert names["mech"].coordinate_names == ("motor", "elbow", "pivot")
    np.testing.assert_allclose(names["a"], kane, rtol=1e-12)


PROGRAMS = [
    *ALL_PAGES, *(DOCS.parent / "examples").glob("*.py"), DOCS.parent / "README.md",
]  # fmt: skip


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_no_program_looks_up_positions_by_places_in_v(path):
    """With continuous joints q and v differ in length; names of coordinates are places in v."""
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"coordinate_names\.index|B\.T @ \(?(run\.)?q\b", text)


# ------------------------------------------------------------------------- numbers in the pages


def of(name):
    """A constant by ``file.NAME``, of an entry with ``file.NAME[key]``; a file of a name that
    others have too, by ``room.file.NAME``."""
    file, _, rest = name.rpartition(".")
    constant, _, key = rest.rstrip("]").partition("[")
    (module,) = (m for m in MODULES if f".{m}".endswith(f".{file}"))
    value = getattr(import_module(module), constant)
    return value[int(key) if key.isdigit() else key] if key else value


def default(function, parameter):
    """The default value of a parameter."""
    return inspect.signature(function).parameters[parameter].default


def written(path, pattern):
    """A number that has no name in the code, from the line where it stands."""
    found = set(re.findall(pattern, (ROOT / "holoctl" / path).read_text(encoding="utf-8")))
    assert len(found) == 1, f"{path}: {pattern} finds {found}"
    return float(found.pop())


def half_turn():
    """The relative rotation in whole degrees at which a quaternion's scalar is the limit."""
    return math.floor(math.degrees(2.0 * math.acos(of("tolerances.HALF_TURN"))))


WORDS = {"twice": 2, "three": 3, "four": 4, "six": 6, "nine": 9, "twenty": 20, "a third": 3,
         "half": 0.5, "quarter": 0.25}  # fmt: skip


def restarts():
    return (default(hc.assemble, "restarts"),)


def random_step():
    return (default(of("closing.nearby_configurations.nearby_configurations"), "step"),)


DERIVATIONS, DECISIONS = "docs/derivations*.md", "docs/decisions/*.md"
FILES, EMBEDDED = "docs/file-formats*.md", "docs/embedded*.md"
REALTIME = "docs/realtime.md"
ENCODERS = "docs/encoders.md"
LIMITS = "docs/limits.md"
TASK_SPACE = "docs/task-space.md"
INVERSE_KINEMATICS = "docs/inverse-kinematics.md"
SIMULATION = "docs/simulation.md"

CLAIMS = [  # page, the words around each number {}, what the code has in its place
    (DERIVATIONS, "Where both agree to {} and no jump of the slope is seen, the step is taken; "
     "else it is ten times shorter, down to {}. Rates start at {},",
     ("linear.numeric_differentiation.SMOOTH_ENOUGH",
      "linear.numeric_differentiation.STEPS_OF_STATES[4]",
      "linear.numeric_differentiation.STEPS_OF_RATES[0]")),
    (DERIVATIONS, "Where nothing agrees to {} there is no derivative",
     "linear.numeric_differentiation.NOT_SMOOTH"),
    (DERIVATIONS, "half-way for one of two reasons: where rows are open there by more than {} "
     "(scaled);",
     "paths.closed_path.CURVE_CLOSED"),
    (DERIVATIONS, "are not those of the path to {}, since an angle", "closed_path.CURVE_RATES"),
    (DERIVATIONS, "acceleration of friction. While that is below {} s and the point",
     "simulation.contact_motion.CREEP"),
    (DERIVATIONS, "Nodes nearer than {} of the path are left out", "closed_path.CURVE_APART"),
    (DERIVATIONS, "determinant has changed by a factor of {}. If the sensors",
     "tolerances.BORDERS_WORN"),
    (DECISIONS, "by the same program, to {} of the acceleration", "tolerances.EFFORT_REGULAR"),
    (DECISIONS, "Moments below {} kg m^2 of a link without mass are zero", "urdf.NOISE_INERTIA"),
    (DERIVATIONS, r"with \lvert\rho\rvert at most {}, and with", "tolerances.BEND"),
    (DERIVATIONS, "the prediction is at most {} long, the first correction at most {}; each "
     "correction is at most {} of the one before; the determinant of K has the same sign at every "
     "iterate and changes by at most a factor of {}.",
     ("tolerances.PREDICTED_STEP", "tolerances.FIRST_CORRECTION", "tolerances.CONTRACTION",
      "tolerances.DETERMINANT_CHANGE")),
    (DERIVATIONS, "A call may factor K {} times, `resynchronise` {} times; rows are closed at {}.",
     ("tolerances.FACTORED_TICK", "estimator_errors.FACTORED_START", "tolerances.SETTLED_TICK")),
    (DERIVATIONS, "amplification of noise: above {} there is no state", "tolerances.GAIN_LIMIT"),
    (DERIVATIONS, "extrapolated over {} calls by each", "tolerances.DEAD_POINT_TICKS"),
    (DERIVATIONS, "where a step of less than {} is not followed", "tolerances.NEAR_TICK"),
    (DERIVATIONS, "over distances from {} at most down to {}.",
     ("tolerances.BACK_LONGEST", "tolerances.BACK_SHORTEST")),
    (DERIVATIONS, "Where it falls below {} of itself there is an error", "tolerances.TURNED_BACK"),
    (DERIVATIONS, "T is {} times the time since the last state, of which at most {} s count, and "
     "at least {} s. If the determinant changed by more than a third since the last state, more "
     "than one tick lies between, and T is at least {} s. If the call gives no time, T is {} s, "
     "or {} s after such a change.",
     ("tolerances.FIRST_SLOWED", "tolerances.FIRST_GAP", "tolerances.FIRST_TICK",
      "tolerances.FIRST_GAP", "tolerances.FIRST_WAIT", "tolerances.FIRST_GAP")),
    (DECISIONS, "a singular configuration that is less than {} s back", "tolerances.FIRST_WAIT"),
    (DECISIONS, "twice that and at least {} s count", "tolerances.FIRST_TICK"),
    (DERIVATIONS, "longer than {} may be a glitch if it is more than {} times the largest one "
     "before, which decays by {} from call to call.",
     ("tolerances.JUMPS_FROM", "tolerances.JUMPS_BY", "tolerances.SIZE_FADES")),
    (DERIVATIONS, "rows that are {} times more independent are then", "repartition.ROWS_BETTER"),
    (DECISIONS, "or a step of less than {} that cannot be followed", "tolerances.NEAR_TICK"),
    (DECISIONS, "Redundant sensors may disagree by {} rad", "tolerances.SENSORS_AGREE"),
    (DECISIONS, "by less than {} of their own size count as not seen",
     "tolerances.UNSEEN_MOTION"),
    (ENCODERS, "the constraints twice, at most {} times, or {} times if",
     lambda: (of("tolerances.FACTORED_TICK"), 2 * of("tolerances.FACTORED_TICK"))),
    (ENCODERS, "where *noise* would be amplified by more than {}, the branch",
     "tolerances.GAIN_LIMIT"),
    (SIMULATION, "no step is longer than {} ticks of", "simulate.TIMED_TICKS"),
    (SIMULATION, "must be on the constraints to {} (scaled)", "tolerances.CLOSED"),
    (SIMULATION, "They are between {} and {}. The error",
     ("simulation.plant.FINEST", "simulation.plant.COARSEST")),
    (SIMULATION, "Functions are evaluated {} times a step", "simulation.events.EVENT_LOOKS"),
    (SIMULATION, "less than a {} of a step may be missed",
     lambda: (1.0 / of("simulation.events.EVENT_LOOKS"),)),
    (SIMULATION, "once its function was larger than {}, in its own",
     "events.EVENT_LEFT"),
    (SIMULATION, "more than {} evaluations within one tick", "simulation.motion.MOST_STEPS"),
    (DERIVATIONS, "after {} such steps scipy's LSODA", "stepping.STIFF_STEPS"),
    (DERIVATIONS, "A state that is off by {} is projected", "simulation.motion.PUT_BACK[0]"),
    (DERIVATIONS, "They are open by no more than {}, or by", "simulation.motion.OFF"),
    (DERIVATIONS, "they slide by no more than {} `rtol` and {} of the speed",
     ("simulation.motion.JUMPS[0]", "simulation.motion.JUMPS[1]")),
    (DERIVATIONS, "Where s is below {} of its usual value and falls", "motion.NEAR_SINGULAR"),
    (DERIVATIONS, "its values at {} Gauss points inside", "collocation.NODES[0]"),
    (DERIVATIONS, "along the polynomial by more than {}, s changes its sign, and the same with {} "
     "nodes", ("singularity_crossing.PASSED", "collocation.FEWER_NODES[0]")),
    (DERIVATIONS, "where that is more than {} the motion is followed as it is",
     "singularity_crossing.MISSED"),
    (DERIVATIONS, "where s falls below {} of its usual value without", "singularity_crossing.LOST"),
    (DECISIONS, "Between {} and {} this is undecided",
     ("singularity_crossing.PASSED", "singularity_crossing.MISSED")),
    (DECISIONS, "What is within {} of zero at a start", "events.EVENT_LEFT"),
    (DECISIONS, "in halves of the step, down to a part in {}.",
     lambda: (float(f"{2.0 ** of('events.EVENT_HALVES'):.0e}"),)),
    (DERIVATIONS, "Where s is below {} (a relative rotation of {} degrees",
     lambda: (of("tolerances.HALF_TURN"), half_turn())),
    (DERIVATIONS, r"| jacobian | \phi along each coordinate | {} |", "tolerances.FIRST_DIFFERENCE"),
    (DERIVATIONS, r"| rate_t | \phi along t | {} s |", "tolerances.FIRST_DIFFERENCE"),
    (DERIVATIONS, r"q \oplus s v, t + s | {} / max(1, abs(v)) s |", "tolerances.FIRST_DIFFERENCE"),
    (DERIVATIONS, "along the same path, twice | {} / max", "callbacks.SECOND_DIFFERENCE"),
    (DERIVATIONS, "which is refused above {} (1 + max", "explicit_chart.IDEMPOTENT"),
    (DERIVATIONS, "if both agree to {}, the result is on",
     "transmission.transmission.SAME_POSITION"),
    (DERIVATIONS, "of J, in scaled units, must be below {}.",
     "transmission.transmission.CONTROL_LOST"),
    (DERIVATIONS, "{} points for one joint, {} along each of two, {} along each of three.",
     ("transmission.table.POINTS[1]", "transmission.table.POINTS[2]",
      "transmission.table.POINTS[3]")),
    (DERIVATIONS, "at {} seeded states near the reference. Along", "tolerances.DIFFERENCE_STATES"),
    (DERIVATIONS, r"must be G_c \dot y and g_s, to {} of their size",
     "constraints.derivative_check.DERIVATIVES_AGREE"),
    (DERIVATIONS, r"above \max({}, {} \sqrt{e}) times the largest, or times {} where",
     ("tolerances.RANK", "tolerances.RANK_OPEN", "tolerances.UNIT")),
    (DERIVATIONS, "no rank is decided where e is above {}.", "tolerances.CLOSED"),
    (DERIVATIONS, "drawn at random, followed by {} forwards", random_step),
    (DERIVATIONS, "below {} the rank is called uncertain", "tolerances.UNCERTAIN"),
    (DERIVATIONS, "with a floor of {} of the largest, while", "newton.LIGHTEST"),
    (DERIVATIONS, "The factor is divided by {} after a success and multiplied by {} after",
     lambda: (1.0 / of("tolerances.EASIER"), of("tolerances.HARDER"))),
    (DERIVATIONS, r"e(q)\rvert^2 \quad \text{is least,} \quad c = {} ",
     "damped_start.START_WEIGHT"),
    (DERIVATIONS, "Gauss-Newton steps, at most {}, within a trust",
     "damped_start.START_STEPS"),
    (DERIVATIONS, "until they are shorter than {}.", "damped_start.SHORT_STEP"),
    (DERIVATIONS, "Steps are at most {} long", "closing.newton.LONGEST_STEP"),
    (DERIVATIONS, "{} steps in a row have lowered the squared error by less than {} of",
     ("newton.STALLS", "newton.STALLED")),
    (DERIVATIONS, r"e\rvert is below {} of \lvert e\rvert, itself above {}.",
     ("newton.AT_LEAST_ERROR", "newton.STALL_OPEN")),
    (DERIVATIONS, "Where {} of them end at rest with the same least error, to {} of",
     ("closing.assembly.SAME_LEASTS", "tolerances.SAME_LEAST")),
    (DERIVATIONS, "while the squared error falls to a {} or less", "newton.FALLING"),
    (DERIVATIONS, "the guess itself, and {} seeded random ones", restarts),
    (DERIVATIONS, "a step of {} at most in each", lambda: (of("random_paths.PATH_STEPS")[0],)),
    (DERIVATIONS, "above {} times the remaining error ({} at least)",
     lambda: of("repaired_geometry.SNAP_CUT")),
    (DERIVATIONS, "twice as many: scaled errors up to {}, and", "tolerances.CLOSED_ALREADY"),
    (DERIVATIONS, r"with a cut of \max(\tau, \min({} \lvert e\rvert, {})) until the error falls",
     ("least_squares.CUT_ERRORS", "least_squares.LARGEST_CUT")),
    (DERIVATIONS, r"(to {} of it at the least), then of \tau", "least_squares.FALLS_NO_MORE"),
    (DERIVATIONS, "if that leads farther than {} away", "least_squares.FARTHEST_SLIDE"),
    (DERIVATIONS, "at steps of {} both ways along {} random mixtures",
     ("tolerances.REACHED", "tolerances.LOOKED_AROUND")),
    (DERIVATIONS, "unless another is {} times more independent", "toleranced_rows.CLEARLY_BETTER"),
    (DERIVATIONS, "and at others {} and {} farther along",
     lambda: of("toleranced_rows.FARTHER")),
    (DERIVATIONS, "a state where that is above {} gets no torque", "partition.UNDETERMINED"),
    (DERIVATIONS, r"along the kept rows, by \max({}, {} \sqrt{\tau}), is",
     ("closing.toleranced_rows.LATENT_REACH", "tolerances.LATENT_ROOT")),
    (DERIVATIONS, "If all rows close within {} of the least-squares point",
     "toleranced_rows.WANDERED"),
    (DERIVATIONS, "The default for files, {}, has room", "tolerances.GEOMETRY_OF_FILES"),
    (DECISIONS, "`tolerance` is {} for files", "tolerances.GEOMETRY_OF_FILES"),
    (DECISIONS, "A tolerance from {} to less than {}, the usual",
     ("description.FINEST_TOLERANCE", "tolerances.CLOSURE_LIMIT")),
    (DERIVATIONS, "with a tolerance of {}, and proposes {} times the remaining error, up to {}",
     ("rounding.COARSE_CUT", "rounding.ROUNDING_MARGIN", "rounding.LARGEST_WANTED")),
    (DERIVATIONS, r"has a condition number above {} (\gamma", "partition.SPLIT_LIMIT"),
    (DERIVATIONS, "take only pivots above {} of the largest, or of {} where",
     lambda: (1.0 / of("partition.SPLIT_LIMIT"), of("tolerances.UNIT"))),
    (DERIVATIONS, "more than {} times worse conditioned than free", "partition.PREFERENCE"),
    (DERIVATIONS, "ill-conditioned where k / s is below {} of what it was", "repartition.ROWS_ILL"),
    (DERIVATIONS, "if their k is more than {} times that of the kept", "repartition.ROWS_BETTER"),
    (DERIVATIONS, "unless that is {} times worse than the best. They are taken if c gets {} times "
     "better, to at most {}.",
     ("partition.PREFERENCE", "repartition.SPLIT_BETTER", "partition.SPLIT_LIMIT")),
    (DERIVATIONS, "their split is at most {} times worse than the present",
     "repartition.MOTORS_AGAIN"),
    (DERIVATIONS, "where c is at most {} what it was, and at most {}, costs",
     lambda: (of("repartition.SPLIT_LOOKED_AT"), of("repartition.SPLIT_ILL")[0])),
    (DERIVATIONS, "and in any case above {}, before ticks leave",
     lambda: (of("repartition.SPLIT_ILL")[1],)),
    (DERIVATIONS, "where s is above {} times the next singular value, and {} times the tolerance",
     ("tolerances.WELL_ABOVE", "tolerances.WELL_ABOVE")),
    (DERIVATIONS, "count as ill-conditioned at {}, k and s are", "repartition.ROWS_ILL_ROUNDED"),
    (DERIVATIONS, "from configurations {} along up to {} motions, in both",
     ("tolerances.REACHED", "tolerances.LOOKED_AROUND")),
    (DERIVATIONS, "where it changes by more than {} (scaled) a tick is rejected",
     "momentum_observer.TURNED_TICK"),
    (DERIVATIONS, "q may be {} (scaled) off the mean rate", "momentum_observer.STEP_MISSED"),
    (DERIVATIONS, "ends where a pivot is below {} of the largest entry", "payload_law.WEAKEST"),
    (DERIVATIONS, "change by more than {} per unit of one of them", "payload_law.CARRIED"),
    (DERIVATIONS, "zero up to {} of the largest column", "frame_wrench.UNDETERMINED_WRENCH"),
    (DERIVATIONS, "factorisation of the system with -{} in the place",
     "pinocchio_constraints.PROXIMAL_MU"),
    (DERIVATIONS, "with a regularisation of {}.", "pinocchio_constraints.PROXIMAL_MU"),
    (DERIVATIONS, "by the sparse factorisation, without the -{},",
     "pinocchio_constraints.PROXIMAL_MU"),
    (DERIVATIONS, "by more than {} of its size is refused", "dynamics.actuation.TARGET_CONSISTENT"),
    (DERIVATIONS, "nearly singular (condition number above {})",
     "tolerances.ACTUATION_SINGULAR"),
    (DERIVATIONS, "It is used from {} rows on, if it is at most {} as wide",
     lambda: (of("coordinate_split.BAND_FROM"),
              written("projector/coordinate_split.py", r"if (\d) \* \(2 \* lower \+ upper"))),
    (DERIVATIONS, "inverse pivots above {} indicates ill-conditioning", "tolerances.INVERSE_DOUBT"),
    (DERIVATIONS, "With passive motions the limit is {}, since", "inverse_tick.PASSIVE_DOUBT"),
    (DERIVATIONS, "The limits ({}, and {} in scaled entries)",
     ("elimination.GROWTH", "codegen.elimination.LEAST_PIVOT")),
    (DERIVATIONS, r"The step \delta is at most {} s and moves the mechanism by at most {} "
     "(scaled). Where the velocity would change by more than {} percent on the way, "
     r"\delta is shortened until it does not, but no more than by a factor of {}.",
     lambda: (of("certificate.ENERGY_LONGEST"), of("certificate.ENERGY_MOVED"),
              100.0 * of("certificate.ENERGY_MOVED"), 1.0 / of("certificate.ENERGY_SHORTEST"))),
    (DECISIONS, "within {} of norm 1 (single precision)", "configurations.SINGLE_PRECISION"),
    (DECISIONS, "triangle inequality by {} of its size", "tolerances.SIX_DIGITS"),
    (DECISIONS, "may be off by {} of mass times", "inertia_checks.MOVED_INERTIA"),
    (DECISIONS, "holds a joint at its value, within {} rad or m", "robot_arguments.TYPED_FARTHEST"),
    (DECISIONS, "a run has at most {} ticks", "tolerances.MOST_TICKS"),
    (DECISIONS, "`closure_limit` is {} by default", "tolerances.CLOSURE_LIMIT"),
    (DECISIONS, "`velocity_limit` is {}: a failed", "tolerances.VELOCITY_LIMIT"),
    (DECISIONS, "refuses from a condition number of {} on", "rows.state_limits.MOST_CONDITION"),
    (DECISIONS, "redundant rows by {} times what the state is off", "tolerances.ALLOWANCE"),
    (DERIVATIONS, "violate them by {} times the error of the state", "tolerances.ALLOWANCE"),
    (DERIVATIONS, "times the error of the state, or by {}.",
     lambda: (of("tolerances.TOLERANCES")["acceleration"],)),
    (DECISIONS, "Lengths up to {} m and speeds up to {} m/s",
     ("mechanism.checks.FARTHEST", "tolerances.FASTEST")),
    (REALTIME, "the condition number is above {}, a tenth", "rows.state_limits.MOST_CONDITION"),
    (REALTIME, "**`closure_limit`** ({}) and **`velocity_limit`** ({}) are",
     ("tolerances.CLOSURE_LIMIT", "tolerances.VELOCITY_LIMIT")),
    (REALTIME, "(a scaled multiplier above {}, a scaled pivot below {})",
     ("elimination.GROWTH", "codegen.elimination.LEAST_PIVOT")),
    (DECISIONS, "by steps of {} for first and {} for second",
     ("tolerances.FIRST_DIFFERENCE", "callbacks.SECOND_DIFFERENCE")),
    (DECISIONS, "idempotent** to {} (1 + largest", "explicit_chart.IDEMPOTENT"),
    (DECISIONS, "at up to {} seeded states near the reference; a difference of {} is refused",
     ("tolerances.DIFFERENCE_STATES", "constraints.derivative_check.DERIVATIVES_AGREE")),
    (DECISIONS, "if it turns nothing (to {}) at",
     lambda: (written("tree/coordinates.py", r"> (1e-\d+)\)\.any"),)),
    (DECISIONS, "above `max({}, {} sqrt(error))` times the largest, or times {} where",
     ("tolerances.RANK", "tolerances.RANK_OPEN", "tolerances.UNIT")),
    (DECISIONS, "decided at a scaled error above {}.", "tolerances.CLOSED"),
    (DECISIONS, "both signs, steps of {}.", random_step),
    (DECISIONS, "A gap below {} between", "tolerances.UNCERTAIN"),
    (DECISIONS, "unless that is {} times worse", "partition.PREFERENCE"),
    (DECISIONS, "becomes dependent, by {} times its place", "partition.EARLIER"),
    (DECISIONS, "Tolerance** {} on the largest scaled", lambda: (default(hc.assemble, "tol"),)),
    (DECISIONS, "At most {} iterations for each start, the guess and {} seeded",
     lambda: tuple(default(hc.assemble, x) for x in ("max_iter", "restarts"))),
    (DECISIONS, "A closing step is at most {} (scaled", "closing.newton.LONGEST_STEP"),
    (DECISIONS, "squared distance and {} times the squared error", "damped_start.START_WEIGHT"),
    (DECISIONS, "only where {} starts end at the same least", "closing.assembly.SAME_LEASTS"),
    (DECISIONS, "the split up to a condition number of {}, then", "partition.SPLIT_LIMIT"),
    (DECISIONS, "with a matrix above {}; `gamma^T B` is singular above {}.",
     ("tolerances.SINGULAR", "tolerances.ACTUATION_SINGULAR")),
    (DECISIONS, "off by no more than {} of its size", "dynamics.actuation.TARGET_CONSISTENT"),
    (DECISIONS, "leverage exceeds 1 - {}.", "multipliers.UNIQUE"),
    (DECISIONS, "Rows left out: redundant {}, or the", "tolerances.TOLERANCES[redundant]"),
    (DECISIONS, "Random steps of {} (scaled) for each direction", "lyapunov_schmidt.WALK_REACH"),
    (DECISIONS, "{} of the points reached are looked at", "sampled_configurations.LOOKED_AT"),
    (DECISIONS, "if closing after a step of {} keeps it", "lyapunov_schmidt.MOTION_REACH"),
    (DECISIONS, "on some path within {} of here", "redundancy.NEEDED_REACH"),
    (DECISIONS, "tried from {} to {} starts of {} steps each",
     lambda: (*of("contradiction.RESTARTS"), of("contradiction.RESTART_STEPS"))),
    (DECISIONS, "counts as open by {} at least", "tolerances.ROUNDED"),
    (DECISIONS, "compared with their terms, and with {} of the weight", "tolerances.WEIGHT_SHARE"),
    (DECISIONS, "the best start is at rest: `|G^T phi|` below {} of", "contradiction.STATIONARY"),
    (DECISIONS, "closure and velocity {}, acceleration and dynamics {}, power {}, condition {}.",
     tuple(f"tolerances.TOLERANCES[{x}]" for x in ("closure", "dynamics", "power", "condition"))),
    (DECISIONS, "from up to {} closed configurations",
     lambda: (1 + of("expressions.PIVOT_SAMPLES"),)),
    (DECISIONS, "least fill-in among pivots of at least {} of", "elimination.PIVOT_THRESHOLD"),
    (DECISIONS, "multipliers over {}, scaled pivots under {}, reduced",
     ("elimination.GROWTH", "codegen.elimination.LEAST_PIVOT")),
    (DECISIONS, "is compared with its phi at {} configurations",
     lambda: (1 + of("expressions.PIVOT_SAMPLES"),)),
    (DECISIONS, "a difference of {} is refused. Its derivatives",
     "tolerances.PHI_AGREES"),
    (DECISIONS, "in parts of {} lines", "c_source.PART"),
    (DECISIONS, "`closure_limit` is {} by default",
     lambda: (default(hc.ComputedTorque, "closure_limit"),)),
    (DECISIONS, "is mended to {}, as in Python", "configurations.SINGLE_PRECISION"),
    (DECISIONS, "below a pivot of {}, one over", "c_sources.PIVOT_LIMIT"),
    (DECISIONS, "up to {} rad; beyond, libm",
     lambda: (written("codegen/templates/sines_cosines.c.in", r"< (1e\d)\)\)"),)),
    (DECISIONS, "embeds {} states on the manifold and {} within",
     lambda: (of("tolerances.SELF_TEST_STATES") - of("self_test_states.SELF_TEST_NEAR"),
              of("self_test_states.SELF_TEST_NEAR"))),
    (DECISIONS, "inverse scaled pivots above {}, or {} with passive",
     ("tolerances.INVERSE_DOUBT", "inverse_tick.PASSIVE_DOUBT")),
    (DECISIONS, "differ by a factor of {}.", "tolerances.MOST_UNEQUAL"),
    (DECISIONS, "The band is used from {} dependent", "coordinate_split.BAND_FROM"),
    (DECISIONS, "Rates are from {} to {} Hz.", ("realtime.SLOWEST", "realtime.FASTEST")),
    (DECISIONS, "with {} % bins from {} us to {} s",
     lambda: (100.0 * (of("realtime.RESOLUTION") - 1.0), 1e6 * of("realtime.SHORTEST"),
              of("realtime.LONGEST"))),
    (DECISIONS, "`rtol` {}, `atol` {};",
     lambda: tuple(default(hc.Integrator, x) for x in ("rtol", "atol"))),
    (DECISIONS, "The start may be off by {} (scaled)", "tolerances.CLOSED"),
    (DECISIONS, "More than {} evaluations of the dynamics", "simulation.motion.MOST_STEPS"),
    (DECISIONS, "The correction takes at most {} steps, to {}, or to {} where",
     lambda: (of("closing.manifold_projection.CORRECTIONS"),
              default(of("manifold_projection.projected_onto_manifold"), "tol"),
              of("tolerances.CORRECTED"))),
    (DECISIONS, "follows steps of at most {} that each shrink to a quarter",
     "state_projection.LARGEST_CORRECTION"),
    (DECISIONS, "all rows to {}; the simulation", "tolerances.CLOSED"),
    (DECISIONS, "with bounds of {} rad: an angle", "io.reader_limits.FREE"),
    (DECISIONS, "first motor off ({} rad or {} mm)",
     lambda: (of("demo.DEMOS[five_bar]").start, 1e3 * of("demo.DEMOS[stewart]").start)),
    (DECISIONS, "a transition of {} rad/s or m/s by", "joint_friction.TRANSITION"),
    (DECISIONS, "Ends of a spring nearer than {} of its", "spring.COINCIDENT"),
    ("docs/forces.md", "that a mapping does not name have {}.", "joint_friction.TRANSITION"),
    ("docs/doctor.md", "tries the guess, and {} to {} random starts",
     lambda: of("contradiction.RESTARTS")),
    ("docs/doctor.md", "scaled sensor values by at least 1/{} of",
     lambda: (1.0 / of("tolerances.UNSEEN_MOTION"),)),
    ("docs/doctor.md", "the noise gain is above {}, `hc.ClosedStateEstimator` raises",
     "tolerances.GAIN_LIMIT"),
    ("docs/from-spatial-v2.md", "q must stay within {} |", "explicit_chart.IDEMPOTENT"),
    (FILES, "get bounds of {} rad or m, finite", "io.reader_limits.FREE"),
    (FILES, "infinite, {} or more, positions of {} or more",
     lambda: (of("tolerances.LARGEST_LIMIT"), of("default_limits.FARTHEST_LIMIT"))),
    ("docs/closing-axes.md", "`hc.load` takes {} unless another is given",
     "tolerances.GEOMETRY_OF_FILES"),
    (EMBEDDED, "requested beyond {} times their limits are", "tolerances.FARTHEST_ASKED"),
    (LIMITS, "efforts exceed {} times their limits, where", "tolerances.FARTHEST_ASKED"),
    (LIMITS, "for the same motion, to {} of the acceleration", "tolerances.EFFORT_REGULAR"),
    (EMBEDDED, "off norm one by more than {}; smaller",
     "configurations.SINGLE_PRECISION"),
    (EMBEDDED, "the self-test: {} states with torques", "tolerances.SELF_TEST_STATES"),
    (EMBEDDED, "the {} states show whether", "tolerances.SELF_TEST_STATES"),
    (EMBEDDED, "one behind the other: {} by default", "tolerances.HOLD_LIMIT"),
    (DECISIONS, "It is held for {} ticks", "tolerances.HOLD_LIMIT"),
    (DERIVATIONS, r"\frac{S H S}{\text{trace}(S H S)} + {} I", "tolerances.EFFORT_REGULAR"),
    (DERIVATIONS, "is off by about {} of the acceleration that is missed",
     "tolerances.EFFORT_REGULAR"),
    (DERIVATIONS, r"at a cost of \lvert e\rvert^2 / (2 \cdot {})", "tolerances.SOFT_ROWS"),
    (DERIVATIONS, r"elsewhere \epsilon = {} of all tasks",
     "contact_program.CONTACT_REGULAR"),
    (DERIVATIONS, "Therefore the bounds have margins: {} of the available braking, {} the tick for "
     r"\Delta t, and limits {} rad and {} rad/s nearer",
     ("tolerances.BRAKE_SHARE", "tolerances.TICKS_AHEAD", "tolerances.POSITION_MARGIN",
      "tolerances.VELOCITY_MARGIN")),
    (DERIVATIONS, "spring with a time constant of {} ticks",
     "laws.acceleration_bounds.LED_BACK_TICKS"),
    (LIMITS, "The controller stays {} rad and {} rad/s (times",
     ("tolerances.POSITION_MARGIN", "tolerances.VELOCITY_MARGIN")),
    (LIMITS, "If a velocity exceeds {} of its limit, now or predicted", "tolerances.NEAR_SPEED"),
    (DERIVATIONS, "is beyond {} of it. A criterion", "tolerances.NEAR_SPEED"),
    (EMBEDDED, "beyond {} of its limit, or would be", "tolerances.NEAR_SPEED"),
    (LIMITS, "beyond {} of its limit, forward dynamics", "tolerances.NEAR_SPEED"),
    ("docs/trajectories.md", "is detected by a minimum below {}.", "type_2.TYPE_2"),
    (LIMITS, "is brought back over some {} ticks", "laws.acceleration_bounds.LED_BACK_TICKS"),
    (DERIVATIONS, "a task is singular where it is above {}. With", "tolerances.TASK_SINGULAR"),
    (DERIVATIONS, "less than {} of the longest row of J along", "task_singularity.TASK_HELD"),
    (DERIVATIONS, r"s \lt d, \ \text{else}\ 0 \qquad d = {}", "tolerances.TASK_DAMPED"),
    (DERIVATIONS, "over its diagonal. Where they are above {}, the", "tolerances.TASK_DOUBT"),
    (TASK_SPACE, "(`task_terms(...).condition`) above {}.", "tolerances.TASK_SINGULAR"),
    (INVERSE_KINEMATICS, "poses to `tol` ({}, scaled)",
     lambda: (default(hc.inverse_kinematics, "tol"),)),
    (INVERSE_KINEMATICS, "on the constraints (at most {}, scaled)",
     "constrained_least_squares.REACH_STEP"),
    (TASK_SPACE, "relative to its size, exceeds {}, it is damped",
     lambda: (1.0 / of("tolerances.TASK_DAMPED"),)),
    (DECISIONS, "too weak** give {} of the way", "demo.BETWEEN_HOLDING_AND_MOVING"),
    (DECISIONS, "Meshes have {} MB together",
     lambda: (1e-6 * of("reader_limits.MOST_MESH_BYTES"),)),
    (DECISIONS, "A drag stops {} (scaled) before", "drag_path.DRAG_SHORTEST"),
    (DECISIONS, "Its chart has {} stretches", "recorded_run.PLACES"),
    (DECISIONS, "is more than {} times the size of the mechanism", "report_sentences._WIDE"),
    ("holoctl/constraints/custom.py", "(steps of {} rad or m) and along time",
     "tolerances.FIRST_DIFFERENCE"),
    ("docs/design.md", "may differ from the input by {}.", "tolerances.CLOSED"),
    ("docs/trajectories.md", "must agree with each other, to {}.", "closed_path.PATH_MEETS"),
    ("docs/design.md", "computed every {} ms, at most {} of them",
     lambda: (1e3 * of("lqr_along.MODEL_EVERY"), of("lqr_along.MOST_MODELS"))),
    ("docs/trajectories.md", "exceeds its limit by more than {} % there are more",
     lambda: (100.0 * of("retiming.solve.RETIME_OVER"),)),
    ("docs/design.md", "decay more than {} as fast", "sampled_loop.DECAYS_FASTER"),
    ("docs/sweeps.md", "then as many as take about {} s, and", "chunks.SWEEP_CHUNK"),
    ("docs/sweeps.md", "done with its chunk in {} s gives", "chunk_evaluation.SWEEP_PATIENCE"),
    ("docs/trajectories.md", "about the axis hardly matters ({} of the", "dynamics.IDLE_BALANCED"),
    ("docs/trajectories.md", "or with fewer than {} intervals", "retime.RETIME_CHECKED"),
    ("docs/rounded-geometry.md", "of `hc.load`, where it is {} unless",
     "tolerances.GEOMETRY_OF_FILES"),
    (REALTIME, "tolerance of the certificate itself is {}, because",
     "tolerances.TOLERANCES[closure]"),
    (ENCODERS, "between them; at least {} s, at most {} s | | no `t` | {} s | | the measurement "
     "is farther from the `reset` than one tick can move | at least {} s",
     lambda: (of("tolerances.FIRST_TICK"), 2 * of("tolerances.FIRST_GAP"),
              of("tolerances.FIRST_WAIT"), of("tolerances.FIRST_GAP"))),
    (ENCODERS, "if `t` goes back by more than {} s without", "tolerances.FIRST_TICK"),
    (ENCODERS, "After {} s without a measurement", "tolerances.FIRST_GAP"),
    (DECISIONS, "Time that goes back by more than {} s is another", "tolerances.FIRST_TICK"),
    (DECISIONS, "A gap of more than {} s is no tick", "tolerances.FIRST_GAP"),
    (ENCODERS, "(without `t`: in {} s) is short, or nearly straight. If it is longer than {} "
     "(about {} rad, or half the size of a loop), and the change of the rates along it, times "
     "this time, exceeds {}, there",
     ("tolerances.FIRST_WAIT", "tolerances.FIRST_WAY", "tolerances.FIRST_WAY",
      "tolerances.FIRST_TURN")),
    (DERIVATIONS, "path since the last state ({} s without a time) is longer than {}, it must "
     "also be straight: if the rates at its two ends, times this time, differ by more than {},",
     ("tolerances.FIRST_WAIT", "tolerances.FIRST_WAY", "tolerances.FIRST_TURN")),
    (ENCODERS, "The error comes up to {} calls before",
     "tolerances.DEAD_POINT_TICKS"),
    (EMBEDDED, "the farther the sensors moved, and at most {}.",
     "tolerances.FACTORED_TICK"),
    (EMBEDDED, "differ by more than {} from the state", "tolerances.SENSORS_AGREE"),
    (EMBEDDED, "a determinant that is not 1, to {})", "tolerances.NOT_A_ROTATION"),
    (FILES, "other two, up to {} for rounding", "tolerances.SIX_DIGITS"),
    (FILES, "which counts before it; {} without", "tolerances.GEOMETRY_OF_FILES"),
    (FILES, "at most {} coordinates", "io.reader_limits.MOST_COORDINATES"),
    (FILES, "{} MB | URDF, MJCF",
     lambda: (1e-6 * of("reader_limits.MOST_BYTES"),)),
    (FILES, "{} files, {} of them one in the other",
     ("io.reader_limits.MOST_INCLUDES", "io.reader_limits.MOST_DEEP_INCLUDES")),
    (FILES, "{}, and {} elements with all copies",
     ("io.reader_limits.MOST_REPLICATES", "io.reader_limits.MOST_ELEMENTS")),
    (FILES, "{} MB, {} values,",
     lambda: (1e-6 * of("io.reader_limits.MOST_SHEET_BYTES"), of("io.reader_limits.MOST_VALUES"))),
    (FILES, "{} elements, {} attributes each",
     ("io.reader_limits.MOST_ELEMENTS", "io.reader_limits.MOST_ATTRIBUTES")),
    (FILES, "{} bodies, frames and sites; {} geoms; {} keys; {} default classes",
     ("io.reader_limits.MOST_PARTS", "io.reader_limits.MOST_GEOMS", "io.reader_limits.MOST_KEYS",
      "io.reader_limits.MOST_CLASSES")),
    (FILES, "{} closures,", "io.reader_limits.MOST_CONSTRAINTS"),
    (FILES, "{} in size: lengths", "io.reader_limits.LARGEST"),
    ("holoctl/control/realtime.py", "at most {} % too high ({} us for all",
     lambda: (100.0 * (of("realtime.RESOLUTION") - 1.0), 1e6 * of("realtime.SHORTEST"))),
]  # fmt: skip

ANY_WORD = "|".join(sorted(WORDS, key=len, reverse=True))
NUMBER = rf"(10\^\{{-?\d+\}}|\d[\d,]*(?:\.\d+)?(?:e-?\d+)?|{ANY_WORD})"


def page_text(page):
    """A page, or all that a pattern names, on one line, letters in formulas like all others."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(ROOT.glob(page))]
    return re.sub(r"\s+", " ", " ".join(texts).replace("$", ""))


def found_claim(page, words):
    pattern = re.sub(r"(?:\\ |\s)+", " ", re.escape(re.sub(r"\s+", " ", words)))
    return re.finditer(pattern.replace(r"\{\}", NUMBER), page_text(page), flags=re.IGNORECASE)


def as_number(text):
    if text.startswith("10^{"):  # in a formula
        return 10.0 ** int(text[4:-1])
    word = WORDS.get(text.lower())
    return float(text.replace(",", "")) if word is None else float(word)


@pytest.mark.parametrize(
    ("page", "words", "names"), CLAIMS, ids=[f"{Path(c[0]).stem}: {c[1]:.40}" for c in CLAIMS]
)
def test_a_number_in_a_page_is_that_of_the_code(page, words, names):
    names = (names,) if isinstance(names, str) else names
    expected = names() if callable(names) else tuple(of(name) for name in names)
    found = list(found_claim(page, words))
    assert found, f"{page} no longer says {words!r}: change CLAIMS in this file with it"
    for match in found:
        assert [as_number(x) for x in match.groups()] == pytest.approx(list(expected)), match[0]


NO_CONSTANTS = {  # numbers of these pages that are no limits of the code, by the words around them
    DERIVATIONS: (
        "leave errors of 5e-7 to 1e-5",  # of files
        "a misfit of 1e-2 has none",
        "one of 1e-3 may be taken",
        "of a hanging parallelogram with friction in a joint that was cut, to 1e-10",  # a test
    ),
    REALTIME: ("sys.setswitchinterval(1e-4)",),
    ENCODERS: (),
    LIMITS: ("of that test goes 1e-4 rad beyond",),  # measured
    SIMULATION: (),
    TASK_SPACE: (),
    INVERSE_KINEMATICS: (),
    "docs/design.md": (
        "A kink at a distance of 1e-6 rad or m from",  # the longest step of a difference is more
    ),
    "docs/trajectories.md": (
        "as it takes to be within 1e-9 |",  # of its samples; tests
        "whole closed state: within 1e-9 at",  # tests
    ),
    "docs/doctor.md": (),
    "docs/rounded-geometry.md": (),
    EMBEDDED: (
        "angles of 1e22 rad",
        "velocities of 1e-155",
        "error is below 2e-16",  # a test
    ),
    FILES: ("`qfrc_passive`, to 1e-12",),  # a test
    DECISIONS: (
        "six digits leave errors up to 1e-5",
        "below 2e-16 up to",  # measured, by a test of its own
        "16 within 1e-4 of it, drawn",
        "is `max(1e-12, 100 eps cond)`",
        "each alone at 1e200, make",
        "opens a loop by more than 1e-3 (scaled)",  # in the template of the plant
        "off by more than 1e-8 is not timed",  # benchmarks
        "quaternions within 1e-2 of unit norm",
    ),
}


@pytest.mark.parametrize("page", NO_CONSTANTS)
def test_no_limit_stands_in_a_page_unread(page):
    """A number like 1e-8 or 10^{-8} in these pages is compared above, or is said to be no
    constant."""
    text = page_text(page)
    prose = re.sub(r"```.*?```", lambda m: re.sub(r"\d", "x", m[0]), text)  # not what runs
    spans = [m.span(i + 1) for p, words, _ in CLAIMS if p == page for m in found_claim(page, words)
             for i in range(len(m.groups()))]  # fmt: skip
    for words in NO_CONSTANTS[page]:
        assert words in text, f"{page} no longer says {words!r}: change NO_CONSTANTS with it"
        spans.append((text.index(words), text.index(words) + len(words)))
    for m in re.finditer(r"(?<![\w.])(?:\d+(?:\.\d+)?e-?\d+|10\^\{?-?\d+)", prose):
        known = any(a <= m.start() and m.end() <= b for a, b in spans)
        assert known, (
            f"{page}: ...{text[m.start() - 60 : m.end() + 30]}...: give CLAIMS its constant"
        )


NAMED = re.findall(
    r"`(_?[A-Za-z]\w*)` in `([\w/]+\.py)`",
    "".join(page.read_text(encoding="utf-8") for page in ALL_PAGES),
)


@pytest.mark.parametrize(("name", "path"), sorted(set(NAMED)))
def test_a_name_that_a_page_puts_in_a_file_stands_there(name, path):
    files = [p for p in (ROOT / "holoctl").rglob("*.py") if str(p).endswith("/" + path)]
    assert files, f"no {path}"
    assert any(re.search(rf"\b{name}\b", p.read_text(encoding="utf-8")) for p in files)


SECTIONS = {
    heading: path.name
    for path in DOCS.glob("derivations-*.md")
    for heading in re.findall(r"^###? (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
}


def test_sections_that_the_code_cites_are_in_the_contents():
    """``docs/derivations.md, "Section"`` in the code: one click from the contents there."""
    contents = (DOCS / "derivations.md").read_text(encoding="utf-8")
    cited = set()
    for path in (ROOT / "holoctl").rglob("*.py"):
        text = re.sub(r"\s+", " ", path.read_text(encoding="utf-8"))
        for m in re.finditer(r'derivations\.md,((?: (?:and )?"[^"]+")+)', text):
            cited |= set(re.findall(r'"([^"]+)"', m[1]))
    assert len(cited) > 20
    for section in cited:
        anchor = section.lower().replace(" ", "-")
        link = f'<a id="{anchor}"></a>[{section}]({SECTIONS.get(section)}#{anchor})'
        assert link in contents, link


def test_files_that_these_pages_name_exist():
    folders = ("holoctl", "tests", "examples", "docs")
    files = {str(path.relative_to(ROOT)) for x in folders for path in (ROOT / x).rglob("*.py")}
    pages = [*DOCS.glob("derivations*.md"), *DOCS.glob("architecture*.md"), DOCS / "notation.md"]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    named = set(re.findall(r"`([\w/]+\.py)`", text))
    assert len(named) > 90
    assert [name for name in named if not any(f"/{f}".endswith(f"/{name}") for f in files)] == []


def test_custom_calls_phi_as_often_as_it_says():
    """6 nv + 8 calls for each evaluation without derivatives, with time 6 more."""
    (a, b), (more,) = (
        [int(x) for m in found_claim("holoctl/constraints/custom.py", w) for x in m.groups()]
        for w in ("costs {} nv + {} calls of `phi`", "with time {} more")
    )
    for nv in (1, 2, 3):
        for time in (False, True):
            calls = []

            def phi(q, t=0.0, calls=calls):
                calls.append(t)
                return [q[0]]

            model = pin.Model()
            for i in range(nv):
                j = model.addJoint(i, pin.JointModelRZ(), pin.SE3.Identity(), f"j{i}")
                model.appendBodyToJoint(j, pin.Inertia.FromSphere(1.0, 0.1), pin.SE3.Identity())
            mech = hc.Mechanism(model, [hc.Custom(phi, time=time)])
            calls.clear()
            hc.terms(mech, np.zeros(nv), np.ones(nv))
            assert len(calls) == a * nv + b + (more if time else 0)


def test_what_pinocchio_has_by_the_readme_it_has():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    names = re.findall(
        r"`(\w+)`", text[text.index("Pinocchio gives M") : text.index("holoctl adds")]
    )
    assert len(names) >= 4
    assert [name for name in names if not hasattr(pin, name)] == []


def test_pages_name_what_there_is():
    """Every `hc.name` of a page is public."""
    for page in [*ALL_PAGES, ROOT / "README.md"]:
        names = set(re.findall(r"\bhc\.([A-Za-z]\w*)", page.read_text(encoding="utf-8")))
        assert [name for name in sorted(names) if name not in dir(hc)] == [], page.name


def said_by(text):
    """Sentences of a source, with the strings that Python joins joined."""
    return re.sub(r'"\s*\n\s*f?"', "", text)


def test_troubleshooting_quotes_what_is_really_said():
    """Each phrase in italics stands in a source, where it belongs in one that knows the error."""
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    sources = [said_by(p.read_text(encoding="utf-8")) for p in (ROOT / "holoctl").rglob("*.py")]
    errors, quoted = set(), 0
    for title, section in re.findall(r"^## (.*?)$(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL):
        error = title if title.endswith("Error") else ""
        errors |= {error}
        for words in re.findall(r"^\| \*(.+?)\*", section, flags=re.MULTILINE):
            pattern = r"[^\n]*?".join(re.escape(part.strip()) for part in words.split("..."))
            assert any(error in s and re.search(pattern, s) for s in sources), (title, words)
            quoted += 1
    members = {x for x in [*dir(hc), *dir(hc.results)] if x.endswith("Error")} - {"HoloctlError"}
    assert errors - {""} == members
    assert quoted > 60
