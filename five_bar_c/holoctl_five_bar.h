/* Written by holoctl 0.1.0: export again instead of editing.
 *
 * Inverse dynamics of the mechanism "five_bar" with its constraints and computed torque.
 *
 * C99, needs nothing but libm: no allocation, no input or output, no state of its own (everything
 * is in the struct, so one program may drive several robots, from several threads), no recursion,
 * no loop whose length depends on a value: a tick takes the same instructions every time, and in
 * trouble a bounded number more.
 *
 *   holoctl_five_bar c;
 *   holoctl_five_bar_init(&c);
 *   every tick: status = holoctl_five_bar_torque(&c, q, v, q_ref, v_ref, a_ref, u);
 *
 * u is always finite. Where the status is not HOLOCTL_FIVE_BAR_OK, u is what c.in_trouble says.
 * Pointers must not be null, arrays have the sizes given here, u may be one of the inputs.
 *
 * q, 4 numbers:
 *   q[0]       motor_left: rad
 *   q[1]       elbow_left: rad
 *   q[2]       motor_right: rad
 *   q[3]       elbow_right: rad
 *
 * v, 4 numbers, the rates that belong to q as Pinocchio has them:
 *   v[0]       motor_left, rad/s
 *   v[1]       elbow_left, rad/s
 *   v[2]       motor_right, rad/s
 *   v[3]       elbow_right, rad/s
 *
 * Motors, in the order of u and of every array of 2:
 *   u[0]       motor_left, N m
 *   u[1]       motor_right, N m
 *
 * Quaternions are in the order x y z w, of unit norm, and turn vectors from the axes of the body
 * to those of its parent; angles that turn without end are cosine and sine. The rates of a
 * floating base and of a ball joint are in the axes of the body. SI units throughout.
 *
 * Closure errors are scaled: lengths are divided by the size of their loop, angles are in rad.
 *
 * Content: 3725090d579142263beb572567217eec
 */
#ifndef HOLOCTL_FIVE_BAR_H
#define HOLOCTL_FIVE_BAR_H

#ifdef __cplusplus
extern "C" {
#endif

#define HOLOCTL_FIVE_BAR_HASH "3725090d579142263beb572567217eec"

enum { HOLOCTL_FIVE_BAR_NQ = 4, HOLOCTL_FIVE_BAR_NV = 4, HOLOCTL_FIVE_BAR_NU = 2 };

typedef enum {
  HOLOCTL_FIVE_BAR_OK = 0,
  HOLOCTL_FIVE_BAR_NOT_FINITE = 1,     /* an input is infinite or not a number */
  HOLOCTL_FIVE_BAR_NOT_NORMALISED = 2, /* a quaternion or cosine-sine pair is not of norm one, to 1e-6 */
  HOLOCTL_FIVE_BAR_OPEN = 3,           /* a closure error is above closure_limit */
  HOLOCTL_FIVE_BAR_SINGULAR = 4,       /* the constraints with the motors are singular here, or nearly */
  HOLOCTL_FIVE_BAR_PIVOT_GROWTH = 5,   /* not singular, but the order of pivots chosen at export, or the
                            * inertia of passive motions, loses too many digits here */
  HOLOCTL_FIVE_BAR_OVERFLOW = 6        /* the torque is not finite: an input or a gain is out of range */
} holoctl_five_bar_status;

enum { HOLOCTL_FIVE_BAR_STATUSES = 7 };

typedef enum {
  HOLOCTL_FIVE_BAR_HOLD = 0, /* u is the last good one; zero before the first */
  HOLOCTL_FIVE_BAR_ZERO = 1  /* u is zero */
} holoctl_five_bar_policy;

typedef struct {
  /* Configuration: set by init, yours to change between ticks. */
  double kp[2], kd[2]; /* of the export, at least 0 */
  double closure_limit; /* scaled; larger closure errors are OPEN. By init 0.02 */
  double doubt_limit;   /* doubt at which a tick is refused. By init 1, the tested value */
  double pivot_limit;   /* tells SINGULAR from PIVOT_GROWTH. By init 0.02 */
  holoctl_five_bar_policy in_trouble; /* By init HOLOCTL_FIVE_BAR_HOLD */

  /* Certificate of the last tick. HUGE_VAL: not known, such as after NOT_FINITE. */
  double closure;      /* largest closure error of all constraint rows, scaled */
  double velocity;     /* largest rate of them, scaled, 1/s */
  double acceleration; /* largest G a + drift of the rows kept, scaled, 1/s^2: of the solution */
  double missed;       /* largest difference of B' a from the target, rad/s^2 or m/s^2 */
  double doubt;        /* below 1: multipliers are below 50, scaled pivots above 1e-4 */
  double pivot;        /* smallest scaled pivot, over the largest; only where doubt is too large */

  /* For reading only. */
  double last[2];                     /* last good torque */
  unsigned long ticks;                  /* calls since init */
  unsigned long troubles;               /* calls in trouble since the last good one */
  unsigned long count[HOLOCTL_FIVE_BAR_STATUSES]; /* calls by status, since init */
} holoctl_five_bar;

/* Set the configuration of the export, and everything else to zero. */
void holoctl_five_bar_init(holoctl_five_bar *c);

/* The motor efforts for one tick of computed torque:
 *
 *   a_ref + kd (v_ref - B' v) + kp e = B' a
 *   gamma' B u = gamma' (M a + h)
 *
 * with e from the motors' positions to q_ref (wrapped to half a turn for continuous joints).
 *
 *   q[4], v[4]             measured state
 *   q_ref[2]                positions of the motors to follow, rad or m
 *   v_ref[2], a_ref[2]     rates and accelerations of the motors to follow
 *   u[2]                    efforts of the motors, N m or N: the result
 */
holoctl_five_bar_status holoctl_five_bar_torque(holoctl_five_bar *c, const double *q, const double *v,
    const double *q_ref, const double *v_ref, const double *a_ref, double *u);

/* The motor efforts that cause the accelerations target of the motors, B' a (rad/s^2, m/s^2).
 *
 * Targets that contradict each other (more motors than motions) are projected on the nearest
 * possible ones, see missed; passive motions follow the dynamics.
 *
 *   q[4], v[4]  measured state
 *   target[2]    accelerations of the motors
 *   u[2]         efforts of the motors, N m or N: the result
 */
holoctl_five_bar_status holoctl_five_bar_inverse_dynamics(holoctl_five_bar *c, const double *q, const double *v,
    const double *target, double *u);

/* A status in words; never null. */
const char *holoctl_five_bar_status_text(holoctl_five_bar_status status);

#ifdef __cplusplus
}
#endif

#endif
