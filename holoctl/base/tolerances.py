"""Tolerances that several packages use: name, value, unit, and what depends on it.

Tolerances that one package uses are at the top of the file that uses them.

"Scaled" quantities are pure numbers: lengths over the size of their loop, angles in rad. A number
without a unit is a ratio or a count. The pages in docs/ quote these numbers, and a test compares.
"""

from __future__ import annotations

# --- Models and files

SIX_DIGITS = 1e-5
"""Relative error of numbers that a file gives with six digits."""

LARGEST_LIMIT = 1e30  # N m, N, rad/s, m/s
"""An effort or velocity limit of a model that is at least this large means "unlimited"."""

# --- Constraints: derivatives given by a caller, and where rows are not defined

DIFFERENCE_REACHES = (0.5, 0.5, 0.2, 0.05, 1e-2, 1e-3, 1e-5)  # rad, m
"""Distances from the reference configuration at which callbacks are compared with differences, in
this order, as far as the callbacks are defined there."""

DIFFERENCE_STATES = 3
"""Number of states at which callbacks are compared with differences."""

DIFFERENCE_STEP = 1e-3  # rad, m
"""Step of the differences with which callbacks are compared; at most a tenth of the distance from
the reference."""

DIFFERENCE_PARTS = (1.0, 0.1, 0.01)
"""Fractions of `DIFFERENCE_STEP` that are tried: an interpolated table has a kink at every node,
and two nodes may be less than a step apart."""

DIFFERENCE_TIMES = (0.0, 0.1, 1.3, 2.1, 3.7, 10.3, 0.0, 0.0)  # s
"""Times at which user-defined constraints, forces and tasks are compared, one for each entry of
`DIFFERENCE_REACHES` and the last for the reference: a dependence on time may begin late."""

FIRST_DIFFERENCE = 1e-3  # rad, m, s
"""Step of numerical first derivatives."""

HALF_TURN = 0.1
"""Orientation rows are refused at a relative rotation whose cos(angle / 2) is smaller: near half a
turn the rotation vector is not unique."""

# --- Rows: states and real-time laws

FASTEST = 1e4  # m/s
"""Largest rate of a translational coordinate that is accepted."""

RANDOM_CONFIGURATIONS = 6
"""Number of random configurations at which a quantity is evaluated to find out whether it is zero,
or constant, at all of them."""

TOLERANCES = {
    "closure": 1e-6,
    "velocity_residual": 1e-6,
    "acceleration": 1e-8,
    "dynamics": 1e-8,
    "redundant": 1e-6,
    "power": 1e-6,
    "condition": 1e8,
}
"""A certificate is `ok` when every one of its numbers is at most this."""

CLOSURE_LIMIT = 1e-2  # scaled
"""Closure error from which a real-time law refuses a state, unless `closure_limit` is given."""

VELOCITY_LIMIT = 0.1  # scaled
"""Velocity error from which a real-time law refuses a state, unless `velocity_limit` is given."""

ALLOWANCE = 10.0
"""Redundant rows may be violated by this factor times the closure and velocity error of the
state."""

UNLIMITED = 1e6
"""Errors are divided by their limit, or by this number when they have none."""

TICK_AGREES = 1e-9
"""A user-defined `tick` may differ from the rows or efforts of the same class by this much of
1 + the largest entry."""

# --- Closing: steps, and the rank of a closed configuration

ROUNDING = 1e-15  # scaled
"""An error of this size is rounding and counts as zero."""

EASIER = 0.2
"""Factor on the damping of a least-squares iteration after a step that reduced the error."""

HARDER = 10.0
"""Factor on the damping of a least-squares iteration after a step that did not."""

SAME_LEAST = 2e-3
"""Least errors of several starts that differ by less than this fraction count as the same."""

CORRECTED = 1e-9  # scaled
"""A projection whose error no longer falls is accepted at this error."""

TIGHT = 1e-13  # scaled
"""Error at which a projection ends, and which is accepted after its last correction."""

CLOSEST = 1e-16  # scaled
"""Error to which states near singular configurations are projected: with a smallest singular value
s the direction of motion is then wrong by about this over s."""

RANK = 1e-8  # scaled
"""Singular values below this fraction of the largest (at least 1) do not count for the rank."""

RANK_OPEN = 10.0
"""At a configuration with closure error e, singular values below this times sqrt(e) do not count
for the rank either."""

ROUNDED = 1e-16  # scaled
"""Least closure error that is assumed of a configuration closed by iteration, even if its
evaluated error happens to be zero."""

GEOMETRY_OF_FILES = 1e-4  # scaled
"""Default tolerance of the geometry of a file: files of six digits leave errors of 5e-7 to 1e-5."""

LOOKED_AROUND = 4
"""Number of directions, each forwards and backwards, in which neighbouring configurations are
sampled to separate redundant rows from independent ones."""

REACHED = 0.1  # scaled
"""Distance of these neighbouring configurations."""

LATENT_ROOT = 5.0
"""The path on which rows left out are tested for opening is at least this times the square root of
the geometry's tolerance long."""

UNIT = 1.0
"""Size of scaled rows and of scaled motor columns: the reference of condition numbers."""

SINGULAR = 1e12
"""A matrix with a larger condition number is singular: no solution is returned."""

# --- Random paths from a configuration

WELL_ABOVE = 10.0
"""A singular value counts clearly only above this times the tolerance of the geometry."""

# --- The projector: choice of rows and coordinates

CLOSED = 1e-6  # scaled
"""A configuration with a larger closure error counts as open: no rank is decided there."""

UNCERTAIN = 100.0
"""The rank is uncertain if the singular values that count and those that do not are separated by a
smaller factor, or if one that counts exceeds its threshold by a smaller factor."""

# --- Estimation: the closed state from measurements

PREDICTED_STEP = 0.5  # scaled
"""Longest prediction of a coordinate in one substep of a continuation."""

FIRST_CORRECTION = 0.25  # scaled
"""Longest first Newton correction of a coordinate in one substep of a continuation."""

CONTRACTION = 0.25
"""Each Newton correction of a substep is at most this fraction of the one before."""

DETERMINANT_CHANGE = 2.0
"""Largest factor by which the determinant of K may change in one substep."""

SETTLED_TICK = 2e-13  # scaled
"""Closure error below which the continuation stops correcting."""

LEFT_OPEN = 1e-9  # scaled
"""Largest error of redundant rows that an estimator accepts when the geometry is exact."""

FACTORED_TICK = 40
"""Most factorisations in one call of an estimator."""

SHORTEST_SUBSTEP = 1e-4
"""Shortest substep of a continuation, as a fraction of the whole path: if it fails, the path
ends."""

BEND = 2.0
"""Largest factor with which the second-order term of a prediction is extrapolated."""

GAIN_LIMIT = 100.0
"""Largest amplification of sensor noise that an estimator accepts."""

DEAD_POINT_TICKS = 3.0
"""The determinant of K, extrapolated from the last two calls, must not vanish within this number of
calls."""

# Without history (the first readings, or a long gap) the measured rates are extrapolated backwards
# in time: a reading is rejected if the determinant of K nearly vanishes within the time horizon.

FIRST_TICK = 0.01  # s
"""Least horizon of the backward test if the determinant changed by less than a third, as from one
tick to the next. Time that goes back by more starts another run."""

FIRST_WAIT = 0.05  # s
"""Horizon of the backward test if the calls give no time and the determinant changed by less than a
third."""

FIRST_GAP = 0.25  # s
"""Longest elapsed time that the backward test considers; its least horizon if the determinant
changed by more than a third. After a longer gap the history is discarded."""

FIRST_SLOWED = 2.0
"""The horizon of the backward test is this times the elapsed time: the mechanism may have been
faster before."""

FIRST_WAY = 0.5  # scaled
"""If the measured rates cover a longer path than this in the elapsed time, the backward test also
requires that path to be straight."""

FIRST_TURN = 0.1  # scaled
"""Largest change of the rates over a straight path, times the elapsed time; a path that bends more
is rejected."""

TURNED_BACK = 0.25
"""The backward test fails where the determinant falls below this fraction of its present value: two
of its factors may vanish together without a change of sign."""

BACK_LONGEST = 2.0  # scaled
"""Longest distance over which the backward test extrapolates; it is then halved repeatedly."""

BACK_SHORTEST = 0.02  # scaled
"""Shortest distance that the backward test evaluates."""

BACK_TRIALS = 20
"""Most distances that the backward test evaluates."""

BORDERS_WORN = 1.4
"""The borders of K are chosen again after the determinant has changed by this factor."""

NEAR_TICK = 0.1  # scaled
"""A call that fails after a shorter step of the sensors may be at a dead point: the branch is then
no longer proved."""

FAR_TICK = 0.5  # scaled
"""A longer step of the sensors is a jump, not the motion of one tick."""

JUMPS_BY = 5.0
"""A step of the sensors that is longer than this times the usual step, and than `JUMPS_FROM`, may
be a glitch."""

JUMPS_FROM = 0.01  # scaled
"""Shorter steps of the sensors are never glitches."""

SIZE_FADES = 0.99
"""The usual step of the sensors is the largest of the past, multiplied by this at each call: slowly
sampled sensors repeat their readings."""

WAY_BACK = 0.2
"""A step of the sensors reverses the one before if at most this fraction of that one remains."""

SENSORS_AGREE = 0.05  # scaled
"""Redundant sensors that differ by more contradict each other."""

UNSEEN_MOTION = 1e-3
"""A motion that moves all sensors (or motors) by less than this fraction counts as unobserved."""

# --- Dynamics: motors, targets, certificates

ACTUATION_SINGULAR = 1e10
"""Above this condition number of gamma' B the motors do not determine the motion."""

TASK_SINGULAR = 1e4
"""A task is singular where the condition number of its Jacobian, in scaled rows and motions, is
larger."""

TASK_DAMPED = 1e-2
"""With damping requested, a task is damped where the inverse of its scaled Jacobian, relative to
its size, has a norm above one over this."""

TASK_DOUBT = 1e3
"""A real-time task hands over to the general path where the inverse of its scaled Jacobian (in
exported code, and for fewer rows than motions, its inverse pivots) has a larger norm."""

TASK_LOST = 1e-12
"""Least squared singular value that is assumed of a task where its damping is computed."""

NOT_A_ROTATION = 1e-9
"""Largest error of the determinant and of the squares of a reference rotation matrix; its angles
are then accurate to 3e-5 rad."""

MOST_UNEQUAL = 1e12
"""Largest ratio of two weights: a larger one leaves no digits for the smaller weight."""

WEIGHT_SHARE = 1e-6
"""Where all efforts are rounding, as in a pendulum that hangs, residuals of efforts are compared
with this fraction of the weight of all bodies on a lever of the size of the mechanism."""

INVERSE_DOUBT = 1e4
"""Real-time inverse dynamics hands over to the general path where the inverse scaled pivots have a
larger norm."""

# --- Analysis of a mechanism

CLOSED_ALREADY = 1e-12  # scaled
"""A configuration with a larger closure error is closed before it is analysed."""

BODY_AT_REST = 1e-5
"""A body that moves by less than this fraction of a motion counts as at rest."""

IDLE_NEW = 1e-3
"""Fraction of an idle motion that must be independent of the others for it to count."""

# --- Expressions and exported code: when a result is in doubt

PHI_AGREES = 1e-9
"""An expression of a user-defined constraint may differ from its phi by this much of
1 + the largest entry."""

EXPRESSIONS_AGREE = 1e-5
"""Derivatives of such an expression may differ from those of the rows, which may be numerical, by
this much of 1 + the largest entry."""

REDUCED = 1e7
"""``N' M N`` is in doubt where a pivot is smaller than its diagonal entry over this."""

HOLD_LIMIT = 100  # ticks
"""Number of failed ticks in a row for which exported C repeats the last good torque: 0.1 s at 1
kHz, long enough for lost readings and short enough not to drive a robot on without control."""

SELF_TEST_STATES = 64
"""Number of states in the self-test of exported code."""

# --- Simulation

TICK_ROUNDED = 1e-6
"""Delays and times between ticks count as whole ticks within this fraction of a tick."""

MOST_TICKS = 10_000_000
"""Largest number of recorded ticks of a run: more would fill the memory."""

# --- Limits of efforts and motions

EFFORT_REGULAR = 1e-7
"""Weight of each effort by itself in the metric of limited efforts, as a fraction of the weight of
the motion that the efforts cause."""

SOFT_ROWS = 1e-2
"""A limit of an acceleration that cannot be kept is softened; its slack e costs e^2 over twice
this."""

BRAKE_SHARE = 0.8
"""Fraction of the available braking acceleration that position limits rely on."""

TICKS_AHEAD = 2.0  # ticks
"""Time ahead over which limits of positions and velocities are kept."""

POSITION_MARGIN = 2e-6  # rad, or lengths over the size of the loop
"""Distance that positions keep from their limits."""

VELOCITY_MARGIN = 1e-3  # rad/s, or m/s over the size of the loop in m
"""Difference that velocities keep from their limits."""

NEAR_SPEED = 0.9
"""From this fraction of a velocity limit, reached now or `TICKS_AHEAD` ticks later with the
acceleration that the efforts cause, the bounds of the acceleration hold at the end of the tick
too."""

OTHER_MOTION = 0.01
"""The end of the tick is evaluated again if its limits change a rate there by more than this
fraction of the velocity limit."""

DAQP_FEASIBLE = 1e-11
"""Largest scaled violation of a bound that DAQP may leave; the result is then clipped."""

UNMOVED = 1e-9  # rad/s^2, m/s^2
"""If full efforts cause a smaller acceleration, the motors do not move a coordinate."""

FARTHEST_ASKED = 1e8
"""Largest commanded effort as a multiple of its limit: beyond it the nearest allowed effort is lost
in rounding."""

# --- Inverse kinematics

WITHIN_LIMIT = 1e-12  # scaled
"""A position that exceeds its limit by no more counts as within it, and is set to the limit."""

REACH_STALLED = 1e-4  # scaled
"""Largest residual from which Newton's method refines the end of a search."""

# --- Design

NOT_DAMPED = 1e-6
"""A mode with a smaller damping ratio is reported as undamped."""

TAKES_PART = 0.2
"""A coordinate is named as part of a mode if its component is at least this fraction of the
largest."""

# --- Pictures and the view

PRINTED_AS_ZERO = 1e-14
"""In printed tables, numbers below this fraction of the largest are zero."""

DRAG_LOCKED = 1e-7
"""A motor that the motions move by less than this fraction is locked, or at a dead point of its
own; motors that remain by as little independent of it count as dependent."""
