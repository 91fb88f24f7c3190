"""All tolerances, in one table: name, value, unit, what it decides.

What is scaled is a pure number: lengths over the size of their loop, angles as they are. Where no
unit is given it is a ratio or a count. The pages in docs/ quote these numbers, and a test compares.
"""

from __future__ import annotations

# --- The tree: what a model and a configuration may miss

UNIT_AXIS = 1e-9
"""Norms of axes, and cosines of right angles, may be off by so much."""

SINGLE_PRECISION = 1e-6
"""Norms that miss one by this much are mended: quaternions in single precision."""

SIX_DIGITS = 1e-5
"""Relative error of numbers that were rounded to six digits in a file."""

MOVED_INERTIA = 1e-13
"""Rounding of an inertia that was moved to the centre of mass, as a share of mass times lever^2:
a point then has moments that are not quite zero, and may be below."""

LARGEST_LIMIT = 1e30  # N m, N, rad/s, m/s
"""A limit of an effort or velocity in a model that is as large is none."""

FARTHEST_LIMIT = 1e6  # rad, m
"""A limit of a position in a model that is as far is none: readers bound joints without limits so,
for random configurations to be drawn."""

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

LINEAR_IN_V = 1e-7
"""By so much a rate may miss being the Jacobian times v and what it is at rest."""

DERIVATIVES_AGREE = 1e-4
"""Derivatives given and differenced may differ by this much of their size."""

FIRST_DIFFERENCE, SECOND_DIFFERENCE = 1e-3, 1e-2  # rad, m, s
"""Steps of first and of second differences: rad, m or s."""

IDEMPOTENT = 1e-8  # rad, m
"""A corrected state may move by this much (rad, m) when it is corrected again."""

OPPOSITE_AXES = 0.2
"""A screw has no angle to be trusted where 1 + z1 . z2 of its axes is smaller."""

COMPOSED_REACHES = (3.0, 2.0, 1.0, 0.5, 0.5, 0.2, 0.2, 0.05)  # m, or cosines
"""Sizes of the parts of a composed row at which its derivatives are compared."""

SHORTEST_NORMAL = 1e-12
"""A shorter vector of a row has no direction."""

BESIDE_A_POLE = 1e-9
"""Where a function of rows divides by zero, it is evaluated this far beside."""

HALF_TURN = 0.1
"""Orientation rows are not evaluated where cos(angle / 2) is smaller."""

# --- Rows: states, ticks, anchors

FARTHEST, FASTEST = 1e6, 1e4  # m; m/s
"""Translational coordinates and their rates may be so large, m and m/s."""

ALWAYS_CLOSED = 1e-11  # scaled
"""A row between bodies whose scaled error is below this at random configurations is zero always."""

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

WRENCHES_AGREE = 1e-9
"""Wrenches of rows may miss their Jacobian by this much of 1 + its largest entry."""

TICK_AGREES = 1e-9
"""A tick that is offered may differ from the rows by this much of the largest entry."""

ANCHOR_WHOLE = 1e-6
"""Six rows count as an anchor where the least singular value of the scaled T is larger, at the
reference."""

ANCHOR_HALF_TURN = 2.9  # rad
"""A weld that is open by a larger angle is left to others: there our rows know no axis."""

ANCHOR_DOUBT = 1e4
"""Six other rows of an anchor are left to others where a pivot of the scaled T is smaller than
one over this."""

ANCHOR_AT_REST = 1e-9  # m/s, rad/s
"""Twists of an anchor up to this are rounding: their squares are nothing beside a."""

# --- Closing: steps, and the rank of a closed state

ROUNDING = 1e-15  # scaled
"""A scaled error of this size is none."""

LONGEST_STEP = 0.5  # scaled
"""A closing step is at most this long (scaled, about rad)."""

COMPROMISE, COMPROMISE_STEPS = 10.0, 20  # a weight; a count
"""Where closing starts, the squared error (scaled) weighs this much of the squared distance from
the guess; steps on the way there."""

SHORT_STEP = 0.05  # scaled
"""A step this short is left to Newton's method on the rows."""

EASIER, HARDER = 0.2, 10.0
"""Factors of the damping after a step that helped, and after one that did not."""

FALLING = 0.25
"""Past the tolerance closing goes on while the squared error falls to this much of it."""

STALLED, STALLS = 1e-4, 8  # a share; a count
"""A step in vain lowers the squared error by less than this share; closing may give up after so
many in a row."""

AT_LEAST_ERROR, STALL_OPEN = 1e-2, 1e-3  # scaled
"""It gives up where the slope of the error is below this, and the error above that: no step
closes it from there."""

SAME_LEAST, SAME_LEASTS = 2e-3, 12  # a share; a count
"""Least errors that differ by less than this share are the same; where so many starts end at the
least of all, no more are made."""

LIGHTEST = 1e-6
"""Weights below this share of the largest count as it, in the metric of steps."""

CORRECTIONS, CORRECTED, TIGHT = 8, 1e-9, 1e-13  # a count; scaled
"""Steps that the correction of a state may take; the error with which it ends if it falls no
more; and the one with which it may be after the last."""

CLOSEST = 1e-16  # scaled
"""As closely as states next to singular configurations are put back: there the motion is off by
this over s."""

CONTRACTS, LARGEST_CORRECTION = 0.25, 0.1  # a ratio; scaled
"""Each step of a user's correction is at most this part of the one before, else nobody knows where
they lead (it follows from Kantorovich's h <= 1/2); the first one may be so long."""

DOUBTFUL_ROWS = 1e3
"""Condition number of kept rows from which on a correction asks whether others are better."""

RANK, RANK_OPEN = 1e-8, 10.0
"""Smaller singular values (scaled) do not count for the rank; at a configuration that is open by
e, nor do those below the second number times sqrt(e)."""

ROUNDED = 1e-16  # scaled
"""A configuration that was closed by iteration is open by so much (scaled), even if its error
happens to be zero."""

GEOMETRY_OF_FILES = 1e-4  # scaled
"""How exactly the geometry of a file is meant, unless it is told: files of six digits leave errors
of 5e-7 to 1e-5."""

FINEST_TOLERANCE = 1e-12  # scaled
"""Geometry cannot be meant more exactly, but for exactly."""

CUT_ERRORS, LARGEST_CUT = 10.0, 1e-2
"""Where rows contradict each other a little: directions with singular values below so many times
the error do not move, nor do those below the second number at most."""

FARTHEST_SLIDE = 0.5  # scaled
"""What acts weakly moves a mechanism no farther than this for its rows to be rounded only."""

MEANT_STARTS = 6
"""Random starts from which rounded geometry is looked for."""

FALLS_NO_MORE, FALLS_UNSEEN = 0.9, 1e-8
"""An error that falls to no less than the first part of it has stalled; what a step may take off at
most, as a part of it, to be nothing: the square of that is rounding."""

WANDERED, CLOSES_IN = 1e-6, 10  # scaled; a count
"""Exact geometry closes this near to where its rows are met best, in no more steps of Newton's
method than these."""

LOOKED_AROUND, REACHED = 4, 0.1  # a count; scaled
"""Redundant rows are told from others at configurations along so many directions, both ways, and
so far off."""

FARTHER = (0.3, 0.6)  # scaled
"""From there it goes on by such steps, to choose rows that are good on a long way."""

LATENT_REACH, LATENT_ROOT = 0.02, 5.0  # scaled
"""Kept rows are walked along by this, or by so many times the root of the tolerance, to see whether
the others open."""

LEAST_INDEPENDENCE = 0.1
"""Rows in their order are kept, of rounded geometry too, unless their smallest singular value is
less than this share of that of all rows."""

CLEARLY_BETTER = 2.0
"""Rows that are closed where one is are kept unless others are this many times more independent."""

UNIT = 1.0
"""Size of scaled rows and of scaled motor columns: what a condition number is relative to."""

SINGULAR = 1e12
"""No solution is given with a matrix whose condition number is above this."""

# --- Geometry made exact again

PATH_STEPS = (0.3, 0.1, 0.03)  # scaled
"""Largest entry of a step (rad, or sizes of the loop) on paths along a motion; shorter where paths
end early."""

FEWEST_PATHS_END = 0.5
"""Paths that give less than this part of the configurations asked for are tried again."""

FEWEST_ON_PATHS = 6
"""With fewer configurations nothing is known of the motion."""

MOST_PATHS = 6
"""Directions in which paths go, both ways: one where there is one motion, else one more than
motions, up to this."""

PATH_WEAKENS, WELL_ABOVE = 0.02, 10.0
"""A path ends where the least singular value that counts is less than this part of that at its
start, or than so many times the tolerance."""

FEWEST_ALONG, ALONG_UNKNOWN = 30, 2
"""Configurations along the motion at which rows are to close, at least, and besides so many
equations for each unknown."""

FRESH = 1000
"""Added to a seed for configurations that were not used."""

SNAP_CUT = (1e3, 1e-9)  # a ratio; scaled
"""Directions of moves count whose singular value is above so many times what is open, and above the
second number: below, it is what slopes miss by being taken at geometry that is not exact yet."""

SNAP_ASTRAY = 10.0
"""What is open after a step may be so many times what it was before one of the last three, and
moves as many times the tolerance: where conditions are quadratic, it rises before it falls."""

SNAP_STEPS, MOST_STEPS_ASTRAY, SNAP_ROUNDS = 60, 8, 3
"""Steps at most, those in turn that may fail to help, and how often more configurations are
taken."""

SNAPPED = 1e-14  # scaled
"""Geometry is exact where no row is open by more."""

BARELY_MOVED = 1e-15  # scaled
"""A smaller move is none."""

# --- The projector: which rows and coordinates

CLOSED = 1e-6  # scaled
"""No rank is decided at a configuration whose scaled error is larger than this."""

EARLIER = 1e-9
"""By so much, times its place, a coordinate counts less than those before it: so ties have an
order."""

PREFERENCE = 1e3
"""Actuated coordinates are chosen as independent unless this many times worse conditioned."""

SPLIT_LIMIT = 1e5
"""`method="auto"` leaves the chosen split for the rank-revealing QR above this condition number
(gamma' M gamma squares it)."""

SPLIT_LOOKED_AT = 2.0
"""On the way, rows and coordinates are looked at where the condition number of the split is so many
times what it was where they were decided."""

SPLIT_WORN = (1e2, 1e3)
"""Rows are looked at above the first of these in any case; coordinates above it only, and above the
second in any case: ticks leave a split at `PASSIVE_DOUBT` or `INVERSE_DOUBT`."""

SPLIT_BETTER, MOTORS_AGAIN = 5.0, 20.0
"""Other coordinates are taken on the way where their split is conditioned so many times better; all
motors are independent again, by `PREFERENCE`, where it is at most the second number times worse."""

ROWS_WORN, ROWS_WORN_ROUNDED, ROWS_BETTER = 0.2, 0.5, 1.5
"""Kept rows are worn on the way where their smallest singular value, over that of all rows, falls
below the first number times what it was, or the second where geometry is rounded: worn rows then
tell another motion; others are taken that are so many times better as the third says."""

UNDETERMINED = 0.05
"""Where geometry is off by e, a motion is told while e condition^2 of the kept rows is less, their
condition number as pivots tell it."""

UNIQUE = 1e-9
"""A multiplier is unique if its leverage misses one by no more than this."""

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

SLOWEST_RATE_FILTER = 1e-6
"""The bandwidth of a filter of rates, times its tick, is at least so much."""

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

FEW_PIVOTS, MOST_SWAPS = 50, 1000  # counts
"""The product of so many pivots is within the range of floats; of so many orders of pivots it is
remembered which are even."""

UNSEEN_MOTION = 1e-3
"""Motions that move all sensors by less than this part are not seen."""

UNTOLD_WRENCH = 1e-4
"""Where the motions move a frame in some direction by less than this part of what they do in
others, in the metric of their inertia, they do not tell what acts along it."""

WRENCH_OF_TREE = 1e-3
"""What they do in others counts as this share at least of what the tree alone would do."""

STEP_MISSED = 0.1  # scaled
"""Between two ticks of an observer a coordinate may move by so much more, or less, than its rates
at both say."""

TURNED_TICK = 0.25
"""And gamma changes by at most this part of itself, scaled: near a dead point of its coordinates
means of two ticks tell nothing."""

# --- Dynamics: motors, targets, certificates

ACTUATION_SINGULAR = 1e10
"""Above this condition number of gamma' B the motors do not determine the motion."""

TYPE_2 = 1e-3
"""A trajectory goes through a type-2 singularity where the smallest singular value of gamma' B
along it, scaled, is below this."""

TASK_SINGULAR, TASK_DAMPED = 1e4, 1e-2
"""A task is singular where the condition number of its Jacobian, in scaled rows and motions, is
larger than the first; where damping is asked for it begins where the inverse of that Jacobian,
relative to its size, has a norm of one over the second."""

TASK_NEAR, TASK_HELD = (4, 0.3), 1e-7  # a count and a scaled step; a share
"""The usual size of a row of a task is the largest at the reference, and at so many configurations
so far from there; closures hold it still where it is less than this share of what the tree would
move."""

TASK_NONE = 1e-12  # scaled
"""A task whose rows are all shorter than this, along coordinates of the tree, is moved by none."""

TASKS_REMEMBERED = 100
"""For so many tasks a mechanism remembers what is usual."""

TASK_DOUBT, BESIDE_DAMPED = 1e3, 0.9
"""Tasks in a tick: the general path takes over where the scaled inverse of the Jacobian, or in code
and for fewer rows than motions its inverse pivots, have a larger norm; and where damping is asked
for, already at this share of where it begins."""

TASK_LOST = 1e-12
"""Directions of a task count as moved by so much at least, squared, where its damping is found."""

JACOBI_LEFT, JACOBI_STAYS = 1e-12, 1e-18
"""Rotations that make a matrix diagonal are enough where the rest is the first share of its trace;
an entry of the second share is left as it is."""

GAIN_SYMMETRIC = 1e-9
"""By how much of its size a gain may miss symmetry, or have an eigenvalue below zero."""

NOT_A_ROTATION = 1e-9
"""By how much the determinant of the rotation of a reference may miss one, and its squares three:
its angles are right to 3e-5 rad then."""

MOST_UNEQUAL = 1e12
"""Weights of motors that differ by more leave no digits for the lighter ones."""

TARGET_CONSISTENT = 1e-6
"""A target may miss what the constraints allow by this much, relative to its size."""

SEPARATING = 1e-9
"""Contacts that open faster than this, relative to 1 + the fastest row, do not hit."""

IMPACT_CONSISTENT = 1e-8
"""Rows that were left out as redundant may miss v_plus by this much, relative to its size."""

FULL_PIVOT = 1e-8
"""Whether the motors determine the motion: pivots of the scaled N' B below this count as zero."""

WEIGHT_SHARE = 1e-6
"""Where all efforts are rounding, as in a pendulum that hangs, they are compared with this share
of the weight of all bodies on a lever of the size of the mechanism."""

ENERGY_MOVED, ENERGY_LONGEST, ENERGY_SHORTEST = 1e-2, 1e-2, 1e-2  # scaled; s; -
"""Energy is differenced over a step that moves the mechanism by this much (scaled) and its
velocity by this share, s at the most; the velocity shortens it by this factor at the most."""

KINK_PARTS = (0.5, 0.05, 0.005)
"""Where that step may lie across a kink of a spring, such as a rope that gets taut, its energy is
differenced on either side, by these parts of the step."""

STANDING = 1e-9  # 1/s
"""Below this scaled speed, 1/s, a mechanism counts as standing still."""

INVERSE_DOUBT, PASSIVE_DOUBT = 1e4, 3e2
"""Inverse dynamics in a tick: the general path takes over where the inverse scaled pivots have a
larger norm. The motion of passive coordinates depends on gamma' M gamma, whose condition number
is that of G_dep squared."""

UNEQUAL_PIVOTS = 1e8
"""By so much the pivots of weighted motors may differ in a tick."""

HEAVY = 1e3
"""Forward dynamics in a tick: the general path takes over where the inertias, scaled by those at
the reference, are larger: the pivots then have no common measure."""

FORWARD_DOUBT = 1e6
"""There too: the general path takes over where a scaled pivot is smaller than one over this."""

PROXIMAL_MU, PROXIMAL_ITERATIONS, PROXIMAL_ACCURACY = 1e-10, 30, 1e-13
"""Of Pinocchio's constrained dynamics: regularisation, most iterations, and the accuracy at
which they end."""

PROXIMAL_CLOSED = 1e-6  # scaled
"""The proximal method takes states up to this scaled error."""

REFINEMENTS, REFINED = 3, 1e-13
"""Of the sparse factorisation: steps of refinement at most, and to what its rows and its
equations of motion then hold, each relative to the largest of their terms."""

ANCHOR_BLIND = 1e6
"""Condition number from which on rows of ours do not tell those of an anchor."""

# --- The doctor: what is worth a word

CLOSED_ALREADY = 1e-12  # scaled
"""A configuration that is open by more than this (scaled) is closed first."""

RESTARTS, RESTART_STEPS = (4, 20), 60
"""What does not close from the configuration given is closed from so many starts around it, with so
many Newton steps each."""

RESTART_DESCENTS = 5
"""The best of them is followed down so many times, until no motion reduces its error."""

RESTART_WORK, RESTART_CALLS = 5000.0, 5e5
"""All starts together take about so many steps of a small mechanism; the calls of a step cost as
much as so many products in it."""

FAR = 0.7  # scaled
"""A coordinate that moved by more (rad, or sizes of its loop) while closing is told."""

CONTRADICTION_SHARE = 1e-3
"""Rows count as part of a contradiction from this share of the largest error on."""

STATIONARY = 1e-4
"""Largest ``|G' phi| / |phi|`` (scaled) at which no motion reduces the error."""

PARALLEL_HINGES = 1e-4
"""Sine of the angle below which hinges of a loop are parallel: files write a right angle as
1.5708, which is off by 3.7e-6, at every joint of a chain."""

CROSSED_HINGES = 0.02
"""Sine of the angle from which an axis was not meant to be parallel: less is rounding."""

BODY_AT_REST = 1e-5
"""What moves by less than this share of a motion counts as at rest."""

WALK_MIXTURES = 9
"""So many random mixtures of directions that no step went are tried, with their length held."""

IDLE_RANK = 1e-7  # scaled
"""Smaller singular values of the rows on a few bodies, all others at rest, do not hold them."""

IDLE_NEW = 1e-3
"""Share of an idle motion that must be new beside others, so that it counts."""

HELD_APART = 1e-4  # of the size of the mechanism
"""Points that are nearer to each other do not hold an axis: it may tilt about them."""

MASS_OF_PARTS = 1e-6
"""Between the hinges of a ball, bodies of less of the mass of the one that spins are its parts;
heavier ones are links, and so are all where it has none."""

MOST_FREE = 4
"""A joint that holds a point of an axis allows three turns about it and a slide along it."""

MODE_CLOSED, MODE_ITERATIONS = 1e-10, 100  # scaled; a count
"""An assembly mode is closed to this; Newton steps for each start, twice where axes are pushed."""

MODE_SINGULAR = 1e-6  # scaled
"""An assembly mode is singular where the least singular value that counts is smaller, or smaller
than the tolerance of rounded geometry."""

SAME_MODE = (0.1, 1e-5)  # a share; scaled
"""Modes are the same where all bodies that count are nearer than this share of the least singular
value, near which there is no other, or than the second number, to which singular ones are found."""

MODE_GOES_ON = 0.1  # scaled
"""Steps with motors held tell motions that no motor drives from a singular mode."""

IDLE_SHARE = 1e-3
"""Motions and coordinates of them that have a smaller share are not counted, where motors are
held."""

NEARER_BY = 1e-6
"""Of the same mode, a configuration counts as nearer to the reference if it is by this share."""

MODE_ORDER = 6
"""Digits of distances by which modes are put in order, before coordinates are compared."""

PATH_SEARCH, PATH_STEP, PATH_FACTORED = 0.2, 0.05, 8  # scaled; scaled; a count
"""Steps that join assembly modes, while they are searched and in the path that is told: how far the
coordinate that moves most is predicted to go; factorisations for each."""

PATH_RUN, PATH_MEET, PATH_MET = 25, 100, 1e-9  # counts; scaled
"""Steps in one direction, before another one is drawn; towards another tree of configurations; what
may be left of the way between motors that met."""

PATH_OVERHEAD = 5
"""As so many steps a direction counts that is blocked at once."""

PATH_LONGEST = 10_000
"""Steps of a straight part of a path."""

OFF_WAY = 0.5
"""Share of a step by which motors may miss it, where they are more than motions."""

PATH_TURN, PATH_SLIDE = 3.14, 2.0  # rad; of the size of the mechanism
"""How far from the modes motors are sent, at most."""

MOST_HUNG, ON_A_LINE = 10, 1e-3  # a count; of the size of the mechanism
"""Signs of modes are told apart from those of legs that roll where so many bodies hang on points at
most, and none but legs on points of one line."""

NO_ROW = 1e-11  # scaled
"""A row whose Jacobian is smaller at configurations anywhere holds nothing: planar loops have
such."""

GRAVITY_WORKS = 1e-6
"""Gravity works on a motion by more than this share of the weight of all times its size."""

REPEATS = 1e-6  # scaled
"""A row follows from another with a coefficient larger than this (scaled)."""

COARSE_CUT, ROUNDING_MARGIN, LARGEST_WANTED = 3e-3, 30.0, 5e-3  # scaled; -; scaled
"""Where a mechanism does not close or move, it is looked at once more with this tolerance; one that
serves is so many times what its rows are off, and at most the last."""

SPECIAL = 1e-7
"""Axes of a loop are parallel, or meet, where they are off by less: loops have names by that."""

WEAK_ROWS = 5e-3
"""Combinations of rows with a smaller singular value hardly act."""

VIOLATED, NEEDED_REACH = 1e-11, 0.03  # scaled
"""A row left out was needed where its scaled error grows beyond the first number, after steps of
the second for each direction."""

MOTION_REACH = 0.01  # scaled
"""Scaled length of the steps that tell whether a motion goes on."""

WALK_REACH = 0.1  # scaled
"""Scaled length, for each direction, of steps to other configurations: a term of fourth order is
then 1e-4."""

OPEN_STILL = 1e-9  # scaled
"""A configuration that is open by more was not closed by a walk of the doctor."""

WALK_ROUNDING = 1e-14  # scaled
"""What is left open by less is rounding, on a walk of the doctor near the origin."""

WALK_STRONG_STEPS, WALK_STEPS, WALK_FLAT = 20, 60, 1e-3  # counts; -
"""Newton steps of a walk: for the rows that act where it starts, and for the others; slopes of
these below this share of the largest ask for no step."""

FEW_STEPS = 12
"""Of many directions so many random mixtures are followed, where few of them lead back."""

LOOKED_AT = 3
"""So many reachable configurations are looked at closely, beside the one asked about."""

WORTH_A_SENSOR = 0.9
"""One more sensor helps where the noise gain with it is at most so much of that without."""

# --- Machine code: when its answer is in doubt

GROWTH = 50.0
"""A scaled multiplier of this size puts the result in doubt."""

LEAST_PIVOT = 1e-4
"""A scaled pivot of this size puts the result in doubt."""

PIVOT_THRESHOLD = 0.15
"""A pivot is acceptable if it is this large, compared with the entries below it."""

PHI_AGREES, EXPRESSIONS_AGREE = 1e-9, 1e-5
"""An expression that a constraint offers may differ from its phi, and its derivatives from those of
its rows, which may be by differences, by this much of 1 + the largest."""

FORCES_AGREE = 1e-9
"""An expression that a force offers may differ from its efforts by this much of 1 + the largest."""

UNIT_NORM = 5e11
"""One over how far the square of a norm may be from one: what Pinocchio takes as normalised."""

PIVOT_SAMPLES = 8
"""Pivots are chosen at so many closed configurations near the reference, besides it."""

NEARLY_SETTLED = 2e-7  # scaled
"""After a correction of this size compiled code takes the rows for closed, and looks."""

FARTHEST_TURN, TURN_TERMS = 2.0, 12  # rad; a count
"""A compiled step turns a body by no more, and has so many terms in the series of a rotation: exact
to rounding that far."""

DERIVED = 3.0
"""Derivatives are in doubt at pivots so many times larger than their function."""

REDUCED = 1e7
"""``N' M N`` is in doubt where a pivot is less than one over this of its diagonal entry."""

NO_SIZE = 1e-300
"""What is not finite puts a certificate in doubt: squares count by so much, which finite ones do
not feel; and sizes that would be zero are taken for this."""

TURNED = 3.0
"""The largest sum of magnitudes along three axes, ``max_k sum_j |e_k . w_j|``, changes by so
much at most when the axes are turned: it is at least a third of the sum of all ``|w_j|``, and no
more than that sum."""

PIVOT_LIMIT = 0.02
"""With a smaller pivot, whatever their order, a state in doubt counts as singular: one over the
multiplier that is in doubt."""

LARGEST_REFERENCE = 1e6  # rad, m
"""Of the reference configuration, in rad and m: the states of the self-test, drawn around it,
then have ten digits left."""

HOLD_LIMIT = 100  # ticks
"""For so many ticks in trouble, one behind the other, exported C holds the last good torque: 0.1 s
at 1 kHz, which bridges readings that are lost, and does not drive a robot on blindly."""

SELF_TEST_STATES = 64
"""States of the self-test."""

SELF_TEST_NEAR = 16
"""So many of them are near the manifold, not on it."""

# --- Forces

COINCIDENT = 1e-6
"""Ends of a spring nearer than this share of its length have no direction between them."""

CONSTANT_RATE = 1e-13
"""The rate of a cut joint follows the coordinates by a constant matrix, as in the plane, where its
entries change by no more than this."""

SMALL_TURN = 1e-8
"""Square of the sine of half an angle below which its rotation vector is by a series."""

NO_LOSS = 1e-9
"""Losses of a force of one's own may give so much power, as a share of the sizes of its terms."""

# --- Runs

LOOK_AGAIN, STEPS_AHEAD = 0.1, 5.0
"""Singular values are taken anew where the scaled rows may have changed them by this share; and
where so many steps like the last could make one vanish, with their rates."""

TURNED_OVER, MOST_TURNED = 0.5, 24  # -; a count
"""A singular value that is larger than what the scaled rows change by, over this, does not go
through zero; so many of the smallest are asked whether they did."""

LOOK_STEP = 1e-4  # scaled
"""Rates of singular values are differences over this (scaled) to either side."""

NEARBY_LOOKS = 2
"""What is usual for the independence of rows is asked along so many directions, both ways."""

NODES, FEWER_NODES, NODES_APART = (8, 9, 10, 5, 4), (6, 7, 3), 0.0375  # counts; a share
"""Nodes of the step over a singular configuration, and of the one it is compared with: the first
of these counts with which they stay away from it by this share of the step."""

PICARD, PICARD_STEPS = 1e-13, 40  # scaled; a count
"""Its iteration ends where x changes by less, or falls no more near the root of it; and has so many
steps."""

BESIDE, REFINED_INSTANTS = 0.02, 4  # a share; a count
"""The instant of a singular configuration is found with singular vectors of a state beside it, by
this share of the step; so many times."""

PREDICTED_BY = 6
"""So many accepted states predict the motion over it."""

NEAR_SINGULAR, LOST = 0.05, 1e-4
"""Rows are close to singular where s is below this share of what is usual; and below the second
nothing is told by them, but over them."""

PASSED, MISSED = 1e-10, 1e-8  # scaled
"""A motion passes a singular configuration where no row opens by more than the first; where one
opens by more than the second it misses it. In between it cannot be told."""

PASSES = (10.0, 1e-10)  # -; scaled
"""The step over it may be off by so many times rtol, or by the second number."""

RECORDED = 1e-12  # scaled
"""States between the ends of a step are put back where they are off by more."""

FINEST, COARSEST = 1e-14, 1e-2
"""Tolerances of a simulation are between these."""

LAST_TICK, ROUNDED_INSTANT = 1e-9, 1e-12  # a share of a tick; of the duration
"""A last tick that is shorter is no tick; an instant to record that is no farther from the end is
the end."""

TICK_ROUNDED = 1e-6
"""Delays and times between ticks count as whole ticks within this share of one."""

FAR_TICKS = 3.0
"""Under a controller a singular configuration is stepped over where it is nearer than so many
ticks."""

PUT_IMPLICIT = (1e13, 1e5)
"""Implicit methods are put back where they are off by so many times rtol times `PUT_BACK`, or by
the second number times it: each time they start anew."""

TIMED_TICKS = 10.0
"""Where what acts depends on time, no step is longer than so many ticks, not to jump over it."""

COARSEST_STEPS = 1e-8
"""LSODA and BDF have tolerances of this at the most: with coarser ones each of their steps is put
back, so that they start anew, and errors add up."""

JUMPS, JUMPS_NEAR = (1e5, 1e-6), 1e-2
"""Putting a state back may change its velocity by so many times rtol and this, relative; close to a
singular configuration, where another path is near, by that times the last."""

MOST_JUMP = 0.1
"""But never by more than this."""

OFF = 1e-6  # scaled
"""A state that is open by more is no result."""

NEXT_TO, LENGTHS = 0.2, (0.5, 0.2, 0.1)  # shares
"""Where the motion is next to it, by this share of the time in which s gets usual, the step over it
is longer: by these shares, one after the other."""

ALIKE = 2.0
"""Rows that open along a step by the same, within this factor, when looked at from nearer, tell
that the motion misses it."""

SOON = 1e-3
"""A singular configuration beyond the end of a run is stepped over only where s is below this share
of what is usual."""

SHORTEST_STEP = 1e-14  # s
"""Steps are not shortened below this, or this share of the time."""

STOPS_SHORT = 1e-6
"""A motion that is not to go over a singular configuration ends before it by this share of the step
over it."""

AS_CLOSED, STARTS = 4e-16, 2e-6  # scaled
"""A start that is off by no more than the first stays as it is: next to a singular configuration,
to put it back would turn its velocity. By more than the second, relative, nothing may."""

PUT_BACK = (1e-12, 1e-12)  # scaled
"""States are put back where they are open, or slide, by more."""

EVENT_LOOKS, EVENT_TIME = 4, 1e-13  # a count; s
"""Functions of events are looked at so many times a step; and how exactly their zero is found."""

EVENT_HALVES = 30
"""Where a motion starts, or something has happened, they are also looked at where the step is
halved so many times."""

EVENT_LEFT = 1e-9
"""A function of an event that is below this counts as zero where a motion starts, and after the
event, until it was larger."""

EVENT_STOPPED = 1e-3
"""An event whose function goes on by less than this part of its rate was stopped by its
reaction."""

EVENT_SHORT = 1e-9  # s
"""A shorter step does not tell where an event goes after its reaction; the next one does."""

EVENT_AGAIN = 5
"""How often at most the step to an event is taken again, to end at its instant."""

MOST_EVENTS = 1000
"""So many events within one tick, and a run counts as gone wild."""

SLOPE_STEP = 1e-7  # scaled
"""Accelerations are differenced by positions over this, for implicit methods."""

STIFF = {"RK45": 2.5, "DOP853": 3.0}
"""A step counts as shortened by stability, and not by accuracy, from this size on of h times the
fastest rate: half of what the methods bear; regular motions have up to 1.5."""

STIFF_STEPS = 15
"""Where so many steps were shortened by stability, forces are stiff."""

MOST_STEPS = 10_000
"""Evaluations of the dynamics within one tick before a run counts as gone wild."""

HOPELESS = (1000, 30.0, 0.01)  # a count; -; -
"""It counts as that after so many already, where all of the tick would take as many times the most
at the same pace, and accelerations are not below this part of the largest within the tick."""

MOST_PROCESSES = 1024
"""A sweep starts so many processes of its own at most: machines have fewer cores."""

MOST_TICKS = 10_000_000
"""A run records every tick: more would fill the memory."""

TYPED_FARTHEST = 1e6  # rad, m
"""Positions of joints beyond this, rad or m, are taken for slips of the keyboard."""

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

LED_BACK_TICKS = 20.0
"""What is beyond a limit is led back with a time constant of so many ticks."""

ACTIVE_LIMIT = 1e-14
"""A limit counts as acting where its multiplier is above this share of the largest: where motors
are redundant, multipliers are as small as what their efforts are worth of their own."""

ACTIVE_FOR_REFERENCE = 1e-9  # scaled
"""Multipliers that the reference, Clarabel, leaves below this are zero."""

DAQP_FEASIBLE = 1e-11
"""By so much DAQP may miss a bound, scaled; what is left of that is clipped."""

OFF_A_BOUND = 1e-14
"""In machine code, by so much of the largest number of the program it may miss a bound, scaled."""

DEPENDENT_BOUND = 1e-20
"""In machine code, a bound depends on others where they leave less than this of its square."""

LIMITED_AGREE = 1e-11
"""Efforts within limits in C are those of Python to this share of the largest one."""

GIVEN_WAY = 1e-6
"""A limit of a joint counts as given way where the acceleration is past its bound by this share."""

UNMOVED = 1e-9  # rad/s^2, m/s^2
"""Where full efforts cause less than this, motors count as not moving a coordinate."""

SAME_TICK = 1e-6
"""By this share the tick of a controller may differ from that of a simulation."""

FAR_SIDE = 1e4  # rad, m, rad/s, m/s, rad/s^2, m/s^2
"""How wide a range that is open on one side is looked at before it is looked at closely."""

FARTHEST_ASKED = 1e8
"""So many times their limits efforts may be asked for: beyond that the nearest is lost in
rounding."""

WIDE_OPEN = 1e7  # N m, N
"""Limits of efforts from here on are as good as none: they are no unit to count efforts in."""

LEAST_PART = 1e-2
"""Coordinates that have less than this part of their braking at once are not known to be braked."""

NO_SHARE = 1e-12
"""A motor without a limit brakes no coordinate that an effort of it moves by less than this share
of what the same effort of another one does."""

ALMOST_ONE = 1.0 - 1e-12
"""What is below this share of its limit is within it, whatever was rounded."""

HELD_STILL = 1e-4  # rad/s^2, m/s^2
"""Limits exclude holding still where they leave more than this acceleration."""

CLARABEL_GAPS = (1e-13, 1e-11, 1e-9)
"""What the reference, Clarabel, is asked for, gap and feasibility: the first that it attains."""

# --- Inverse kinematics

HALF_TURN_LEFT = 1e-7
"""A frame counts as turned by half a turn, so that any axis leads back, where the sine that is left
is smaller; and as not turned at all, where the cosine is one."""

REACH_STEP, REACH_STEPS = 0.3, 300  # scaled; a count
"""Longest step on the way to a pose, and steps."""

REACH_DECIDED = 3
"""So many times which rows decide the motion is decided anew where a way ends."""

REACH_CLOSED, REACH_BENT = 1e-10, 0.5  # scaled; a share
"""After a step the mechanism is closed again to within the first; a correction longer than this
share of the step leads elsewhere, and the step is taken shorter."""

REACHED_POSE = 1e-11  # scaled
"""The way ends where so little is left of it; Newton's method does the rest."""

REACH_SLOW, REACH_AT_REST = 0.5, 1e-9  # a share; scaled
"""A step that leaves more than this share of what is left asks for second derivatives; one that is
shorter than the last leads nowhere."""

REACH_GAINS, REACH_SHORT = 1e-12, 1e-4  # a share; scaled
"""Steps that lower the squares by less than the first share are in vain, unless they are shorter
than the second: then rounding hides what they gain."""

REACH_SADDLE, REACH_KICK = 1e-6, (0.1, 0.03)  # a share; scaled
"""At rest, but where a second derivative is below minus this share of the largest, the way goes on
along its direction, by such a step."""

REACH_DAMPED = (1e-3, 1e-12)  # shares
"""Damping of the steps, of the largest second derivative times what is left: at first, at least."""

WITHIN_LIMIT, AT_LIMIT = 1e-12, 1e-9  # scaled
"""A position beyond its limit by no more is within it, and is put there; one that is nearer to it
than the last is stopped by it, where it would go on."""

REACH_STALLED = 1e-4  # scaled
"""Newton's method is asked where no more than this is left of the way."""

REACH_WORST = 1e-9  # scaled
"""Rates and accelerations may miss what is asked for by this share of 1 + the largest."""

REACH_WEAK = 1e-3  # scaled
"""Combinations of rows that motions move by less count as not moved, where the way ended."""

# --- Design: linear models

STEPS_OF_STATES = (3e-3, 3e-4, 3e-5, 3e-6, 3e-7)  # scaled
"""Steps of differences of sixth order along a motion, from the first on until one is short enough;
beside a singular configuration, or where friction sets in, the later ones are."""

STEPS_OF_RATES = (0.3, 3e-2, 3e-3, 3e-4, 3e-5, 3e-6, 3e-7)  # scaled, 1/s
"""The same along a rate. Without friction the acceleration is quadratic in it, and any will do."""

SMOOTH_ENOUGH, NOT_SMOOTH = 1e-8, 1e-6
"""Differences of fourth and sixth order that agree to the first, relative, are good; where none
agree to the second there is no derivative, and half the jump of the slope counts as such."""

BESIDE_VALUE = 1e-5
"""Derivatives below this share of the value count as so much: it is rounded, and they are not
known better."""

KINK_STEP, KINK, BESIDE_KINK = 1e-7, 1e-4, 1e-2  # scaled; relative, both
"""Where derivatives are exact, slopes on both sides of the point are compared with them by steps of
the first length, and may differ by the second; those below the third share of the value count as
so much."""

SLIDES_AGAINST = 1e-5  # scaled
"""Motions of a partition that open rows by more, of all there are, are none of this mechanism."""

AT_EQUILIBRIUM = 1e-6  # rad/s, m/s, rad/s^2, m/s^2
"""A point whose own rate is no larger is at an equilibrium."""

NEXT_TO_EQUILIBRIUM = 1e-8  # scaled
"""So is one that has an equilibrium this near: stiff springs turn rounding into accelerations."""

LOST_IN_A_TICK = 1e-9
"""Of a model in long ticks, the share of the largest rate that rounding may leave of the others."""

OF_MODEL = 1e-9
"""How well accelerations of a linear model are taken to be known, as a share of the largest by the
same state (at least 1): eigenvalues that this may move to zero are said to be zero."""

ROUNDED_STEP = 1e-15
"""What entries of a model in discrete time are rounded to, as a share of themselves or of 1."""

CRITICAL = 1e-3
"""A pair of eigenvalues may be one that is there twice where its imaginary part is this small, as
a share: rounding makes pairs of such."""

LEAST_SPEED = 1e-12  # rad/s
"""Eigenvalues are compared at such a speed where they are slower, and products of eigenvectors
that are less count as this."""

NOT_DAMPED = 1e-6
"""Damping ratios below this are said to be none."""

TAKES_PART = 0.2
"""Coordinates that take part in a mode by this share of the one that does so most are named."""

# --- Design: equilibria

BALANCED, BALANCED_NEARLY = 1e-10, 1e-8  # of the efforts that act
"""At an equilibrium what no motor, or not the efforts given, balances is at most the first share of
all that acts; a search that ends below the second ends for rounding, and is told as it is."""

UNBALANCED_ENDS = 3
"""Where so many starts end where the same least is out of balance, no more are made."""

BALANCE_ROUNDED = 4.0
"""What is out of balance by so many roundings of the largest effort, times coordinates, is not."""

BALANCE_STEP = 1e-5  # scaled
"""Step of the differences by which the way to an equilibrium is found."""

STIFFNESS_STEP = 1e-4  # scaled
"""Step of the differences of what pulls back, at an equilibrium."""

STIFFNESS_NONE, STIFFNESS_SYMMETRIC = 1e-6, 1e-5
"""A motion is pulled back, or falls, by more than the first share of the largest stiffness, or of
the weight on a lever; stiffness that misses symmetry by the second has no energy."""

STIFFNESS_KINK = 1e-5
"""Stiffness that jumps by more than this share of what acts, from one side to the other, is none:
a rope gets taut there."""

MOVES_BY_ITSELF = 1e-9  # 1/s, 1/s^2, scaled
"""Constraints that impose a faster rate or acceleration at rest allow no rest."""

# --- Design: gains

LOOP_ANGLES = (400, 64)  # counts
"""Where a pole of a sampled loop crosses the unit circle is looked for at so many angles, and at so
many more for each tick that it is late."""

BARELY_DAMPED = 1e-6
"""With a damping ratio up to this a loop is unstable so early that a tick is half of it a delay."""

NEAR_ONE, POLE_STEPS, POLES_EXACT = 0.1, 50, 1e-14  # -; a count; relative
"""Poles of a sampled loop this near to z = 1 are made exact by so many steps of Newton's method at
most, until they change by no more."""

DECAYS_FASTER = 2.0
"""Poles that decay faster than those asked for by this factor do not count in the damping left."""

DELAY_NODES = 30
"""Nodes along the history of a loop that is late and has no ticks."""

SLOW_LOOP = 0.1
"""Poles that turn or decay by less than this while the loop is late begin as if it were not."""

DELAY_TICKS, HARDLY_LATE = 40, 1e-3
"""A loop on a model that is late and has no ticks is looked at with so many for the delay; where
the delay times its fastest pole is less than the second, as if it were not late."""

LARGEST_OF_LOOP = 1e50
"""Bandwidth, damping, rate and delay of a loop are at most this, in SI units, and at least one over
it: their powers are floats."""

MOST_TICKS_LATE = 200
"""A loop may be late by so many ticks."""

LOOP_UNSTABLE = 1e-6
"""A pole of the loop on a model this far outside of the unit circle grows; nearer ones drift."""

FIRST_DOUBLING = 0.25
"""Norm of the first step of a model whose cost over a tick is found by doubling: there thirteen
terms of the series are exact."""

RICCATI_HOLDS = 1e-6
"""The Riccati equation may miss by this share of its largest term."""

POLISHED = 2  # a count
"""Steps that a solution of the Riccati equation gets to its last digits."""

NOT_MOVING = 1e-5
"""Regulators: an eigenvalue this near the border, 1/s or a share of the largest, may lie on it."""

MOVED_BY_MOTORS, SEEN_BY_WEIGHTS = 1e-7, 1e-7  # scaled
"""A mode is moved by the motors where ``[A - lambda, B]`` has no smaller singular value, and seen
by the weights where ``[A - lambda; Q^1/2]`` has none; columns of B, and the largest entry of Q^1/2,
are 1."""

WEIGHT_NEGATIVE, WEIGHT_SYMMETRIC = 1e-10, 1e-10
"""By how much of the largest entry weights may be below zero, or not symmetric."""

MODEL_EVERY, MOST_MODELS = 0.01, 101  # s; a count
"""Along a motion linear models are made so often, and so many at most, unless told otherwise."""

AT_END = 1e-6  # 1/s, scaled
"""Where a motion ends, it rests: no faster than this, times 1 + its mean speed."""

FOLLOWS_DYNAMICS = 1e-4
"""A trajectory is a motion of its mechanism where the accelerations that its efforts cause miss its
own by this share of 1 + the largest."""

COUPLED = 1e-7
"""States that are left out of a regulator may act on the others by this share of the largest."""

# --- Trajectories

PATH_SHORTEST = 1e-4
"""Where a step of this share of the way to the next point of a path does not count, it ends."""

PATH_STALLED = 1e-11  # scaled
"""Newton's method on a path that contracts no more is at its end where less is left."""

PATH_HALVED = 1e-5  # scaled
"""Half-way between two nodes of a path Newton's method starts from what is open by less."""

CURVE_CLOSED = 1e-10  # scaled
"""Between its nodes a trajectory is closed to within this, or it gets more nodes."""

CURVE_RATES = 1e-6  # scaled
"""Half-way between its nodes the rates of a trajectory, times the interval, are as wanted to within
this: whole turns that were missed show here, not in angles."""

CURVE_APART = 1e-4
"""Nodes that are given to a trajectory count where they are not nearer to each other than this
share of it: its accelerations are known to the rounding of configurations over the distance
squared."""

CURVE_SHORTEST = 1e-7
"""Nodes of a trajectory are never nearer to each other than this share of it."""

PATH_SAMPLES, PATH_SAMPLED, PATH_SMOOTH = (200, 3200), 1e-9, 1e-6  # counts; scaled
"""Samples of a function that is a path, at first and at most: until between them it is off by no
more than the second; at most it may be off by the third."""

PATH_MEETS = 1e-6  # scaled
"""By how much a way-point may miss the path of the closed mechanism: motors, or joints, that
contradict the others."""

PATH_STILL = 1e-7
"""A path stands still where its derivative is below this share of the largest."""

IDLE_BALANCED = 1e-3
"""Bodies that spin freely are held still on a path, where efforts about their axes, which nothing
gives, are below this share of the others: so little do they matter to the motors."""

MOST_FACETS, SAME_COLUMN = 1000, 1e-9  # a count; a share
"""What more motors than motions can do together has at most twice so many facets; motions that
efforts move by less than the share count as not moved by them."""

RETIME_GAPS = (1e-9, 1e-7)
"""What Clarabel is asked for on the fastest way, gap and feasibility: the first it attains."""

RETIME_CAP = 1e6
"""Squared speeds along a path count as not limited above so many times the usual ones."""

RETIME_ROUNDS, RETIME_SETTLED = 12, 1e-3  # a count; a share
"""So often forces that change with the speed are linearised anew at most, until the duration
changes by less than the share."""

RETIME_OVER, RETIME_REFINED, RETIME_TIGHTENED = 5e-3, 5, 5  # a share; counts
"""Where a trajectory exceeds limits between its nodes by more than the share it gets more nodes, so
often at most; then limits are taken tighter there, so often at most."""

RETIME_CHECKED = 100  # a count
"""At so many places between its nodes a trajectory is looked at, at least."""

RETIME_ACTIVE = 2e-3
"""What is within this share of its limit is at it."""

RETIME_SLOW = 0.2
"""The slow motion from which forces that change with the speed are linearised at first: a share of
the speed that limits leave where nothing accelerates."""

NODE_SLIPS = 1e-5  # scaled, 1/s, or of the fastest rate
"""By so much velocities of nodes that are given may contradict the constraints."""

THROUGH_NODES = 50
"""A trajectory through way-points in time has so many nodes between two of them."""
# --- Sweeps: many items on many workers

SWEEP_SHARE, SWEEP_PATIENCE = 0.1, 0.2  # s; s
"""What a worker gets takes so long, by what was seen before; what is not begun after the second
goes back to the others."""

SWEEP_LEAST, SWEEP_SHARES_LEFT = 2e-3, 2  # s; a count
"""Towards the end a worker gets of what is left as much as makes so many shares for each, but not
less than takes the first."""

SWEEP_GROWTH, SWEEP_CUT = 8, 8  # counts
"""A share has at most so many times the items of the longest that was done; one that was lost is
cut into so many."""

SWEEP_FUNCTIONS = 4  # a count
"""Functions that a worker of somebody else's keeps."""

SWEEP_GOODBYE = 5.0  # s
"""A worker that is sent home and does not go in this time is killed."""

PATH_GAIN = 1e8
"""At a dead point what is driven moves some coordinate by more than this, scaled."""
# --- Motor maps: from point to point on one branch

MAP_EVALUATIONS = 400  # a count
"""Evaluations that a way to a neighbour may take."""

MAP_STARTS = 20  # a count
"""So many points of a grid are tried as the first one, the nearest to the start first."""

MAP_ALIKE, MAP_SAME = 0.3, 1e-6  # a share; scaled
"""Neighbours are on one branch where the way between them is that of the slope to within the first;
and configurations are the same to within the second."""

PRINTED_AS_ZERO = 1e-14  # a share
"""In tables for people, numbers below this share of the largest one are printed as zero."""

MAP_PAIRS = 50  # a count
"""Pairs that are compared in one item."""

TURNS_APART = 0.02
"""Where a joint turns back on a path there is a node, unless one is nearer than this share of their
distance."""

# --- Pictures: what is drawn

DRAWN_LENGTH = 1e-9  # m
"""Lines that are shorter are left out."""

IN_A_PLANE = 1e-9
"""Axes of a planar mechanism are parallel to within this, or the tolerance of its geometry, and its
slides across them."""

# --- The view: motors that are dragged, motions that are played

DRAG_STEP, DRAG_LONGEST = 0.1, 0.5  # scaled
"""A drag goes in steps in which nothing is expected to go farther than the first; a motor itself,
as a rotor does that moves all else slowly, may go as far as the second."""

DRAG_SHORTEST, DRAG_LEAST = 1e-5, 1e-10  # scaled
"""Where a step of the first length does not count, a drag stops: so far before a dead point. Steps
that lead away from one may be as short as the second."""

DRAG_GAIN = 1e4
"""Where a motor moves some coordinate by so many times what it moves itself, scaled, and by more on
the way, a drag stops."""

DRAG_LOCKED = 1e-7
"""A motor that the motions move by less than this part is locked, or at a dead point of its own;
and by as little others are no longer independent of it."""

DRAG_AT_REST = 1e-9
"""Motors that move by less than this part of the motion stand still, and are held so exactly."""

LIMIT_MET, LIMIT_OVER = 1e-7, 1e-10  # rad, m
"""A drag that stops at a limit of a joint stops so close to it, on the inside; over it by less than
the second is at it."""

LED_UNSEEN = 0.05
"""A drag stopped at a dead point where the smallest singular value of what leads it is less."""

LED_SHARE = 0.3
"""At a dead point those coordinates are named, and bodies told to move, that do so by this part of
the largest."""

IN_LINE = 0.03
"""Axes of two bars count as parallel, and their turns as pure, up to this."""

SLIDER_TURNS, SLIDER_SLIDE = 12.6, 0.3  # rad; of the size of the loop
"""Limits that are farther apart are none for a slider, which then goes half a turn both ways; and a
slide goes as far as the second both ways."""

ROTOR_MOVES = 1e-6
"""The slider of a rotor goes as far as if it moved something else by this part at least."""

PLAYED_ANGLE, PLAYED_SHARE = 0.3, 0.95  # scaled; a share
"""A motion is played so far both ways, or this part of the way to where it stops."""

PLAYED_BACK = 0.02  # scaled
"""An idle spin is back at its start, after a whole turn, within this; it is played to and fro where
it is not."""
