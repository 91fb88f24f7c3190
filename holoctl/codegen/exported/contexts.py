"""What the templates are filled with: a value for each, and one that they share.

A field is what ``@{field}`` stands for. Where something may be absent, its text is empty; texts
that are lines of their own end with a newline.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "Build",
    "GravityTorque",
    "Header",
    "KeptNoise",
    "LimitedGravityTorque",
    "LimitedSolve",
    "PlantFile",
    "PlantHeader",
    "Readme",
    "Rotation",
    "SelfTest",
    "SensedTest",
    "Shared",
    "Solve",
    "Source",
    "TaskDeclaration",
    "TaskTorque",
    "TorqueDeclaration",
]


@dataclass(frozen=True)
class Shared:
    """What several files of one library are told.

    Attributes
    ----------
    P, U : str
        What names of C begin with, in lower and in upper case; files, too.
    marker : str
        Tells that holoctl wrote the file, with its version.
    title : str
        The name of the mechanism, as it may stand in a comment.
    nq, nv, nu : int
    states : int
        How many the self-test knows.
    closure_limit, velocity_limit, pivot_limit : str
        What init sets; numbers of C.
    earlier : str
        How many times `velocity` may be larger than that of a certificate.
    POLICY : str
        What is done in trouble: HOLD or ZERO.
    hold_limit : str
        For how many calls HOLD holds; a number of C.
    usual_call : str
        A call of the function that most will use, as a statement.
    t_parameter, t_given, t_refused, t_contract : str
        Where there is a time: its parameter, argument, check, and line of documentation.
    state : str
        Arguments: q, and t where there is a time.
    normalised : str
        Statements that normalise q in front of a law, where there is something to normalise.
    references, references_given : str
        What a controller follows: parameters of the functions for its torque, and arguments.
    rates_parameter, v_ref_given : str
        Where friction is taken at the rates of motors: their parameter, and those of a reference
        as an argument.
    or_a_force : str
        What a refused tick may come from besides pivots, where some force is not defined
        everywhere.
    flags, divides, arithmetic : str
        C in front of others: refused flags of compilers, what a division is, and a check that the
        arithmetic is that of doubles.
    """

    P: str
    U: str
    marker: str
    title: str
    nq: int
    nv: int
    nu: int
    states: int
    closure_limit: str
    velocity_limit: str
    pivot_limit: str
    earlier: str
    POLICY: str
    hold_limit: str
    usual_call: str
    t_parameter: str
    t_given: str
    t_refused: str
    t_contract: str
    state: str
    normalised: str
    references: str
    references_given: str
    rates_parameter: str
    v_ref_given: str
    or_a_force: str
    flags: str
    divides: str
    arithmetic: str


@dataclass(frozen=True)
class Header:
    """``header.h``: the contract.

    Attributes
    ----------
    what : str
        What the library computes besides inverse dynamics.
    version : int
        Of holoctl, as one number.
    q_table, v_table, motor_table : str
        What each number of q, v and u is.
    gains : str
        The fields of the gains of a controller.
    torque_declaration : str
        The function for the torque of a controller.
    or_forces, forces_contract : str
        Of the forces of the mechanism: the comment of a status, and a line of documentation.
    stack : int
        How much of it a call takes, bytes.
    hash, content : str
        Of the whole library, and its first 32 bits as a number of C; both empty while it is found.
    measured_sizes, measured_table, memory_type, memory_field, sensed_declaration : str
        Of the closed state from what is measured; see exported/sensed.py.
    limits_contract, limit_fields : str
        Of limits: lines of documentation, and fields; see exported/limits.py.
    left_out : str
        Lines of documentation; see exported/left_out.py.
    """

    what: str
    version: int
    q_table: str
    v_table: str
    motor_table: str
    gains: str
    torque_declaration: str
    or_forces: str
    forces_contract: str
    stack: int
    hash: str
    content: str
    measured_sizes: str
    measured_table: str
    memory_type: str
    memory_field: str
    sensed_declaration: str
    limits_contract: str
    limit_fields: str
    left_out: str


@dataclass(frozen=True)
class TorqueDeclaration:
    """``torque.h``: the torque of a controller in the header.

    Attributes
    ----------
    law : str
        Its equations, lines of a comment.
    """

    law: str


@dataclass(frozen=True)
class TaskDeclaration:
    """``torque_task.h``: the torque of a law of one task in the header.

    Attributes
    ----------
    task : str
        Its name.
    law : str
        Its equations, lines of a comment.
    rows : int
    rows_table : str
        What each row is.
    value : str
        What a reference gives.
    """

    task: str
    law: str
    rows: int
    rows_table: str
    value: str


@dataclass(frozen=True)
class TaskTorque:
    """``torque_task.c``: the torque of a law of one task.

    Attributes
    ----------
    rows, numbers : int
        Of the task, and of the value of its reference.
    rotation, check : str
        The function that tells rotations, and its call, where axes turn.
    t_address : str
        The time as an argument of the law.
    noise : str
        How far the state is off.
    """

    rows: int
    numbers: int
    rotation: str
    check: str
    t_address: str
    noise: str


@dataclass(frozen=True)
class Rotation:
    """``rotation.c``; `most` is by how much the numbers may be off."""

    most: str


@dataclass(frozen=True)
class Source:
    """``source.c``: the laws and what judges them.

    Attributes
    ----------
    rows, closed, kept : int
        Rows of the matrix, of the closure errors, of the acceleration.
    allowance, tolerance : str
        How far redundant rows may be broken.
    kept_noise : str
        Where geometry is rounded, the function for how far the state is off.
    laws : str
        The straight-line code.
    largest : str
        The function for the largest magnitude.
    normalise : str
        The functions that normalise, where they are needed.
    state_parameters, matrix_arguments : str
        Of functions that take the state.
    shares, rates_given : str
        Where the law takes rates of motors: constants, and what it is given without a reference.
    trial, declare_t, read_t : str
        The state at which init tries a tick; its time, where there is one.
    set_gains : str
        Statements that set the gains of a controller.
    solve : str
        The function for a tick of inverse dynamics.
    torque : str
        The function for the torque of a controller.
    closed_state, begin, sensed : str
        Of the closed state from what is measured; see exported/sensed.py.
    limits, limit_held, limit_zero, set_limits : str
        Of limits; see exported/limits.py.
    """

    rows: int
    closed: int
    kept: int
    allowance: str
    tolerance: str
    kept_noise: str
    laws: str
    largest: str
    normalise: str
    state_parameters: str
    matrix_arguments: str
    shares: str
    rates_given: str
    trial: str
    declare_t: str
    read_t: str
    set_gains: str
    solve: str
    torque: str
    closed_state: str
    begin: str
    sensed: str
    limits: str
    limit_held: str
    limit_zero: str
    set_limits: str


@dataclass(frozen=True)
class Solve:
    """``solve.c``: a tick of inverse dynamics.

    Attributes
    ----------
    law_arguments : str
        Of the law.
    noise : str
        How far the state is off.
    """

    law_arguments: str
    noise: str


@dataclass(frozen=True)
class LimitedSolve:
    """``solve_limited.c``: the same within limits; `passed` numbers pass from stage to stage, the
    others are those of ``limits_c.Calls``."""

    law_arguments: str
    noise: str
    passed: int
    given: str
    declared: str
    moved: str


@dataclass(frozen=True)
class KeptNoise:
    """``kept_noise.c``: how far the kept rows are off.

    Attributes
    ----------
    kept_rows : str
        Their places among the errors.
    kept_count : int
    """

    kept_rows: str
    kept_count: int


@dataclass(frozen=True)
class GravityTorque:
    """``torque_gravity.c``: the torque of a controller that compensates gravity alone.

    Attributes
    ----------
    hold_arguments : str
        Of the law of holding.
    """

    hold_arguments: str


@dataclass(frozen=True)
class LimitedGravityTorque:
    """``torque_gravity_limited.c``: the same within limits; the rest as in `LimitedSolve`."""

    hold_arguments: str
    passed: int
    given: str
    declared: str
    moved: str


@dataclass(frozen=True)
class PlantFile:
    """``plant.c``: the exact plant, for trials.

    Attributes
    ----------
    laws : str
        The straight-line code.
    norm, parts : str
        A function that normalises, where it is needed, and its calls.
    start : str
        The configuration to start at, an array.
    t_ahead, after : str
        Where there is a time: the argument for a stage of a step, and the time at its end.
    motion_arguments, correction_arguments : str
        Of the laws.
    """

    laws: str
    norm: str
    parts: str
    start: str
    t_ahead: str
    after: str
    motion_arguments: str
    correction_arguments: str


@dataclass(frozen=True)
class PlantHeader:
    """``plant.h``.

    Attributes
    ----------
    plant_t_contract : str
        The line of documentation of the time, where there is one.
    stack : int
        How much of it a call takes, bytes.
    """

    plant_t_contract: str
    stack: int


@dataclass(frozen=True)
class SelfTest:
    """``test.c``.

    Attributes
    ----------
    arrays : str
        The states and the torques expected there.
    first : int or str
        Size of the first input behind the state, as C has it.
    more_inputs : str
        Declarations of the references of a controller, behind the first input.
    copies : str
        Statements that copy the inputs of state k.
    tick : str
        The call that is tested.
    x_t : str
        The time among its arguments, where there is one.
    golden_torque : str
        Statements that compare the torque of a controller.
    more_bad : str
        Statements that try what is not finite in inputs that not everyone has.
    more_refused : str
        Statements that try what not every mechanism can refuse.
    storm_seen : str
        A check that a storm of inputs made a torque overflow.
    sensed, sensed_call : str
        The test of the closed state from what is measured, and its call.
    or_beyond, limited_seen : str
        Of limits: a condition for efforts past them, and a check that some state is limited.
    """

    arrays: str
    first: int | str
    more_inputs: str
    copies: str
    tick: str
    x_t: str
    golden_torque: str
    more_bad: str
    more_refused: str
    storm_seen: str
    sensed: str
    sensed_call: str
    or_beyond: str
    limited_seen: str


@dataclass(frozen=True)
class SensedTest:
    """``sensed_test.c``.

    Attributes
    ----------
    numbers, rates, ticks : int
        Of what is measured, and how often.
    arrays : str
        What is measured, and the states expected.
    unused_k, t_k, t_start : str
        Where there is no time, a use of k; else the times as arguments.
    storm : str
        Statements that ask for a torque in the storm.
    """

    numbers: int
    rates: int
    ticks: int
    arrays: str
    unused_k: str
    t_k: str
    t_start: str
    storm: str


@dataclass(frozen=True)
class Build:
    """``CMakeLists.txt``.

    Attributes
    ----------
    more_sources : str
        That of the plant, where it is written.
    """

    more_sources: str


@dataclass(frozen=True)
class Readme:
    """``README.md``.

    Attributes
    ----------
    summary : str
        What the library computes.
    more_files : str
        Lines of the table of files, for the plant.
    from_motors : str
        What is called where more is measured, or less.
    within_limits : str
        What `LIMITED` means, where there are limits.
    left_out : str
        A paragraph; see exported/left_out.py.
    """

    summary: str
    more_files: str
    from_motors: str
    within_limits: str
    left_out: str
