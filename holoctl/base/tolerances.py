"""Tolerances that several files use: name, value, unit, what it decides.

Others stand at the top of the file that uses them.

What is scaled is a pure number: lengths over the size of their loop, angles as they are. Where no
unit is given it is a ratio or a count. The pages in docs/ quote these numbers, and a test compares.
"""

from __future__ import annotations

# --- The tree: what a model and a configuration may miss

SIX_DIGITS = 1e-5
"""Relative error of numbers that were rounded to six digits in a file."""

LARGEST_LIMIT = 1e30  # N m, N, rad/s, m/s
"""A limit of an effort or velocity in a model that is as large is none."""

# --- Constraints: derivatives that a caller gives, and where rows are not to be trusted

DIFFERENCE_REACHES = (0.5, 0.5, 0.2, 0.05, 1e-2, 1e-3, 1e-5)  # rad, m
"""How far from the reference callbacks are tried (rad, m), in turn, as far as they are defined."""

DIFFERENCE_STATES, DIFFERENCE_STEP = 3, 1e-3  # a count; rad, m
"""Callbacks are compared at so many states; by differences of this step, or of a tenth of the
reach where that is smaller."""

DIFFERENCE_PARTS = (1.0, 0.1, 0.01)
"""Parts of a step that are tried: a table that is interpolated has a kink at every node, and two
nodes may be less than a step apart."""

DIFFERENCE_BESIDE = 0.99
"""Part of the way to a state that disagrees, where it is asked once more: it may have been
beside a node by chance, and a wrong derivative is wrong there too."""

DIFFERENCE_TIMES = (0.0, 0.1, 1.3, 2.1, 3.7, 10.3, 0.0, 0.0)  # s
"""When what is given is looked at, one after the other with the reaches, the
last at the reference: it may set in later."""

FIRST_DIFFERENCE, SECOND_DIFFERENCE = 1e-3, 1e-2  # rad, m, s
"""Steps of first and of second differences: rad, m or s."""

HALF_TURN = 0.1
"""Orientation rows are not evaluated where cos(angle / 2) is smaller."""

# --- Rows: states, ticks, anchors

FARTHEST, FASTEST = 1e6, 1e4  # m; m/s
"""Translational coordinates and their rates may be so large, m and m/s."""

RANDOM_CONFIGURATIONS = 6
"""That row is looked at in so many random configurations."""

TOLERANCES = {
    "closure": 1e-6,
    "velocity": 1e-6,
    "acceleration": 1e-8,
    "dynamics": 1e-8,
    "redundant": 1e-6,
    "power": 1e-6,
    "condition": 1e8,
}
"""A certificate is `ok` when every number is at most this."""

CLOSURE_LIMIT, VELOCITY_LIMIT = 1e-2, 0.1  # scaled
"""How far a state may be off in a tick, unless told otherwise."""

ALLOWANCE = 10.0
"""Redundant rows may be broken by so many times what the state is off."""

MOST_CONDITION = TOLERANCES["condition"] / 10.0
"""A tick refuses from this condition number on: ten times earlier than the certificate."""

UNLIMITED = 1e6
"""Errors are counted over this where they are not limited."""

TICK_AGREES = 1e-9
"""A tick that is offered may differ from the rows by this much of the largest entry."""

# --- Closing: steps, and the rank of a closed state

ROUNDING = 1e-15  # scaled
"""A scaled error of this size is none."""

LONGEST_STEP = 0.5  # scaled
"""A closing step is at most this long (scaled, about rad)."""

EASIER, HARDER = 0.2, 10.0
"""Factors of the damping after a step that helped, and after one that did not."""

SAME_LEAST, SAME_LEASTS = 2e-3, 12  # a share; a count
"""Least errors that differ by less than this share are the same; where so many starts end at the
least of all, no more are made."""

CORRECTIONS, CORRECTED, TIGHT = 8, 1e-9, 1e-13  # a count; scaled
"""Steps that the correction of a state may take; the error with which it ends if it falls no
more; and the one with which it may be after the last."""

CLOSEST = 1e-16  # scaled
"""As closely as states next to singular configurations are put back: there the motion is off by
this over s."""

RANK, RANK_OPEN = 1e-8, 10.0
"""Smaller singular values (scaled) do not count for the rank; at a configuration that is open by
e, nor do those below the second number times sqrt(e)."""

ROUNDED = 1e-16  # scaled
"""A configuration that was closed by iteration is open by so much (scaled), even if its error
happens to be zero."""

GEOMETRY_OF_FILES = 1e-4  # scaled
"""How exactly the geometry of a file is meant, unless it is told: files of six digits leave errors
of 5e-7 to 1e-5."""

LOOKED_AROUND, REACHED = 4, 0.1  # a count; scaled
"""Redundant rows are told from others at configurations along so many directions, both ways, and
so far off."""

LATENT_REACH, LATENT_ROOT = 0.02, 5.0  # scaled
"""Kept rows are walked along by this, or by so many times the root of the tolerance, to see whether
the others open."""

UNIT = 1.0
"""Size of scaled rows and of scaled motor columns: what a condition number is relative to."""

SINGULAR = 1e12
"""No solution is given with a matrix whose condition number is above this."""

# --- Geometry made exact again

PATH_WEAKENS, WELL_ABOVE = 0.02, 10.0
"""A path ends where the least singular value that counts is less than this part of that at its
start, or than so many times the tolerance."""

# --- The projector: which rows and coordinates

CLOSED = 1e-6  # scaled
"""No rank is decided at a configuration whose scaled error is larger than this."""

SPLIT_LIMIT = 1e5
"""`method="auto"` leaves the chosen split for the rank-revealing QR above this condition number
(gamma' M gamma squares it)."""

UNCERTAIN = 100.0
"""A smaller gap between singular values leaves the rank open, as does one that counts by a
smaller factor."""

# --- Estimation: the closed state from what is measured

PREDICTED_STEP, FIRST_CORRECTION = 0.5, 0.25  # scaled
"""Longest prediction of a substep, and longest first correction, of a coordinate, scaled."""

CONTRACTION, DETERMINANT_CHANGE = 0.25, 2.0
"""Each correction is at most this part of the one before; and a determinant changes at most by this
factor in a substep."""

SETTLED_TICK = 2e-13  # scaled
"""Rows that are open by less are closed, in a loop."""

LEFT_OPEN = 1e-9  # scaled
"""So far open redundant rows may stay in a loop where geometry is exact."""

FACTORED_TICK, FACTORED_START = 40, 1000
"""So many factorisations a call may take, and where a loop is to find where it is."""

SHORTEST_SUBSTEP = 1e-4
"""Where a substep of this share of the way does not count, the way ends."""

BEND = 2.0
"""The second order of a prediction counts at most so many times."""

GAIN_LIMIT, GAIN_DOUBT = 100.0, 30.0
"""Noise of sensors may be amplified by so much; and a way that ends where it is more than the
second ends at a dead point."""

DEAD_POINT_TICKS = 3.0
"""A determinant must not vanish within so many calls, if it goes on as in the last two."""

FIRST_TICK, FIRST_WAIT, FIRST_GAP, FIRST_SLOWED = 0.01, 0.05, 0.25, 2.0  # s; s; s; -
"""Where the past does not tell, rates must not lead away from a dead point that is so near,
straight back: within the fourth times what has gone by, for rates may have fallen meanwhile, which
counts up to the third; no less than the first, nor than the third where the determinant changed by
more than a third, so that it was no tick. Where nobody tells the time, within the second, or the
third. Behind more than the third the past tells nothing; back by more than the first is another
run."""

FIRST_WAY, FIRST_TURN = 0.5, 0.1  # scaled
"""Where the rates of a first reading tell a longer way than the first for the time since, they
change by no more than the second over this time on that way: else it is not straight, and tells
nothing."""

TURNED_BACK = 0.25
"""A determinant that falls below this share of itself straight back vanishes on the way: two
factors of it may do so at once."""

BACK_LONGEST, BACK_SHORTEST, BACK_TRIALS = 2.0, 0.02, 20  # scaled; scaled; a count
"""It is looked at straight back at most so far away, then half as far, down to a way so short, at
most so many times."""

BORDERS_WORN = 1.4
"""Borders are decided anew where the determinant has changed by this factor."""

NEAR_TICK, FAR_TICK = 0.1, 0.5  # scaled
"""A call that fails for a step of the sensors below the first may be at a dead point: nothing
proves the branch then. A step above the second is no motion of one tick."""

JUMPS_BY, JUMPS_FROM, SIZE_FADES = 5.0, 0.01, 0.99  # -; scaled; -
"""A step of the sensors that is so many times the usual one, and longer than the second, may be a
glitch, and no motion that goes on. Usual is the largest one, which fades by the third
from call to call: sensors may be read more slowly than they are asked."""

WAY_BACK = 0.2
"""A step of the sensors takes back the one before where no more than this part of it is left."""

SENSORS_AGREE = 0.05  # scaled
"""Redundant sensors that differ by more contradict each other."""

UNSEEN_MOTION = 1e-3
"""Motions that move all sensors by less than this part are not seen."""

# --- Dynamics: motors, targets, certificates

ACTUATION_SINGULAR = 1e10
"""Above this condition number of gamma' B the motors do not determine the motion."""

TASK_SINGULAR, TASK_DAMPED = 1e4, 1e-2
"""A task is singular where the condition number of its Jacobian, in scaled rows and motions, is
larger than the first; where damping is asked for it begins where the inverse of that Jacobian,
relative to its size, has a norm of one over the second."""

TASK_DOUBT, BESIDE_DAMPED = 1e3, 0.9
"""Tasks in a tick: the general path takes over where the scaled inverse of the Jacobian, or in code
and for fewer rows than motions its inverse pivots, have a larger norm; and where damping is asked
for, already at this share of where it begins."""

TASK_LOST = 1e-12
"""Directions of a task count as moved by so much at least, squared, where its damping is found."""

NOT_A_ROTATION = 1e-9
"""By how much the determinant of the rotation of a reference may miss one, and its squares three:
its angles are right to 3e-5 rad then."""

MOST_UNEQUAL = 1e12
"""Weights of motors that differ by more leave no digits for the lighter ones."""

WEIGHT_SHARE = 1e-6
"""Where all efforts are rounding, as in a pendulum that hangs, they are compared with this share
of the weight of all bodies on a lever of the size of the mechanism."""

INVERSE_DOUBT, PASSIVE_DOUBT = 1e4, 3e2
"""Inverse dynamics in a tick: the general path takes over where the inverse scaled pivots have a
larger norm. The motion of passive coordinates depends on gamma' M gamma, whose condition number
is that of G_dep squared."""

# --- The doctor: what is worth a word

CLOSED_ALREADY = 1e-12  # scaled
"""A configuration that is open by more than this (scaled) is closed first."""

FAR = 0.7  # scaled
"""A coordinate that moved by more (rad, or sizes of its loop) while closing is told."""

BODY_AT_REST = 1e-5
"""What moves by less than this share of a motion counts as at rest."""

IDLE_NEW = 1e-3
"""Share of an idle motion that must be new beside others, so that it counts."""

MODE_CLOSED, MODE_ITERATIONS = 1e-10, 100  # scaled; a count
"""An assembly mode is closed to this; Newton steps for each start, twice where axes are pushed."""

PATH_SEARCH, PATH_STEP, PATH_FACTORED = 0.2, 0.05, 8  # scaled; scaled; a count
"""Steps that join assembly modes, while they are searched and in the path that is told: how far the
coordinate that moves most is predicted to go; factorisations for each."""

PATH_RUN, PATH_MEET, PATH_MET = 25, 100, 1e-9  # counts; scaled
"""Steps in one direction, before another one is drawn; towards another tree of configurations; what
may be left of the way between motors that met."""

# --- Machine code: when its answer is in doubt

LEAST_PIVOT = 1e-4
"""A scaled pivot of this size puts the result in doubt."""

PHI_AGREES, EXPRESSIONS_AGREE = 1e-9, 1e-5
"""An expression that a constraint offers may differ from its phi, and its derivatives from those of
its rows, which may be by differences, by this much of 1 + the largest."""

REDUCED = 1e7
"""``N' M N`` is in doubt where a pivot is less than one over this of its diagonal entry."""

HOLD_LIMIT = 100  # ticks
"""For so many ticks in trouble, one behind the other, exported C holds the last good torque: 0.1 s
at 1 kHz, which bridges readings that are lost, and does not drive a robot on blindly."""

SELF_TEST_STATES = 64
"""States of the self-test."""

# --- Runs

PREDICTED_BY = 6
"""So many accepted states predict the motion over it."""

NEAR_SINGULAR, LOST = 0.05, 1e-4
"""Rows are close to singular where s is below this share of what is usual; and below the second
nothing is told by them, but over them."""

TICK_ROUNDED = 1e-6
"""Delays and times between ticks count as whole ticks within this share of one."""

SHORTEST_STEP = 1e-14  # s
"""Steps are not shortened below this, or this share of the time."""

EVENT_LOOKS, EVENT_TIME = 4, 1e-13  # a count; s
"""Functions of events are looked at so many times a step; and how exactly their zero is found."""

EVENT_SHORT = 1e-9  # s
"""A shorter step does not tell where an event goes after its reaction; the next one does."""

MOST_TICKS = 10_000_000
"""A run records every tick: more would fill the memory."""

# --- Limits

EFFORT_REGULAR = 1e-7
"""What a motor is worth of its own in the metric of limited efforts, as a share of what motors are
worth for the motion."""

SOFT_ROWS = 1e-2
"""Limits of accelerations that give way cost the square of what they miss over twice this."""

BRAKE_SHARE = 0.8
"""Of the braking that a coordinate has, so much is counted on."""

TICKS_AHEAD = 2.0
"""Limits of positions and velocities are kept over so many ticks."""

POSITION_MARGIN, VELOCITY_MARGIN = 2e-6, 1e-3  # rad, rad/s
"""Positions and velocities are kept this far within their limits, times the size of the loop for
lengths."""

NEAR_SPEED = 0.9
"""Beyond this share of its limit of velocity, now or `TICKS_AHEAD` ticks later with the
acceleration that efforts cause, the bounds of a coordinate's acceleration hold at the end of the
tick too."""

OTHER_MOTION = 0.01
"""Where limits at the end of the tick change the rate that a coordinate has there by more than this
share of its limit of velocity, the end of the tick is another one: it is looked at once more."""

DAQP_FEASIBLE = 1e-11
"""By so much DAQP may miss a bound, scaled; what is left of that is clipped."""

UNMOVED = 1e-9  # rad/s^2, m/s^2
"""Where full efforts cause less than this, motors count as not moving a coordinate."""

FARTHEST_ASKED = 1e8
"""So many times their limits efforts may be asked for: beyond that the nearest is lost in
rounding."""

# --- Inverse kinematics

REACH_CLOSED, REACH_BENT = 1e-10, 0.5  # scaled; a share
"""After a step the mechanism is closed again to within the first; a correction longer than this
share of the step leads elsewhere, and the step is taken shorter."""

REACH_SADDLE, REACH_KICK = 1e-6, (0.1, 0.03)  # a share; scaled
"""At rest, but where a second derivative is below minus this share of the largest, the way goes on
along its direction, by such a step."""

WITHIN_LIMIT, AT_LIMIT = 1e-12, 1e-9  # scaled
"""A position beyond its limit by no more is within it, and is put there; one that is nearer to it
than the last is stopped by it, where it would go on."""

REACH_STALLED = 1e-4  # scaled
"""Newton's method is asked where no more than this is left of the way."""

# --- Design: modes of linear models

NOT_DAMPED = 1e-6
"""Damping ratios below this are said to be none."""

TAKES_PART = 0.2
"""Coordinates that take part in a mode by this share of the one that does so most are named."""

# --- Trajectories

PATH_STALLED = 1e-11  # scaled
"""Newton's method on a path that contracts no more is at its end where less is left."""

# --- Motor maps: from point to point on one branch

PRINTED_AS_ZERO = 1e-14  # a share
"""In tables for people, numbers below this share of the largest one are printed as zero."""

# --- Pictures: what is drawn

DRAWN_LENGTH = 1e-9  # m
"""Lines that are shorter are left out."""

# --- The view: motors that are dragged, motions that are played

DRAG_LOCKED = 1e-7
"""A motor that the motions move by less than this part is locked, or at a dead point of its own;
and by as little others are no longer independent of it."""

DRAG_AT_REST = 1e-9
"""Motors that move by less than this part of the motion stand still, and are held so exactly."""

LED_SHARE = 0.3
"""At a dead point those coordinates are named, and bodies told to move, that do so by this part of
the largest."""
