/* Written by holoctl 0.1.0: export again instead of editing.
 *
 * A plant for trials: the exact forward dynamics of "five_bar". For simulations on a computer,
 * not for the robot.
 */
#ifndef HOLOCTL_FIVE_BAR_PLANT_H
#define HOLOCTL_FIVE_BAR_PLANT_H

#ifdef __cplusplus
extern "C" {
#endif

/* The closed configuration next to the reference of the robot, at rest. */
void holoctl_five_bar_plant_start(double *q, double *v);

/* One step of the state under constant motor efforts, by the classical Runge-Kutta method; then
 * the state is brought back to where the closures hold.
 *
 *   q, v   state, as in holoctl_five_bar.h; replaced by the one after the step
 *   u      efforts of the motors, N m or N
 *   dt     s
 *
 * Returns 1; or 0 where the step is singular or not finite, and the state is then as before.
 */
int holoctl_five_bar_plant_step(double *q, double *v, const double *u, double dt);

#ifdef __cplusplus
}
#endif

#endif
