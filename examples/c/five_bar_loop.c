/* The five-bar's controller in C at 10 kHz, against its plant in C: it reads the encoders of the two
 * motors, of 16 bits and with noise, and finds the passive joints itself.
 *
 *   five_bar_loop [seconds] [paced]
 *
 * "paced" keeps the ticks to the clock, as on a robot; else they follow each other at once. POSIX,
 * for its clock; the library itself needs none of it.
 */
#define _POSIX_C_SOURCE 200112L
#include "holoctl_five_bar.h"
#include "holoctl_five_bar_plant.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NQ = HOLOCTL_FIVE_BAR_NQ, NV = HOLOCTL_FIVE_BAR_NV, NU = HOLOCTL_FIVE_BAR_NU };
enum { RATE = 10000, MOST = 100 * RATE };

static const int *const motor = holoctl_five_bar_motor_q; /* where the motors are in q, and here in v */
static double nanoseconds[MOST];     /* of each tick; nothing is printed while the loop runs */

static const double pi = 3.141592653589793;

/* About normal, of standard deviation 1: twelve numbers that are equally likely in (0, 1), less 6. */
static double noise(void) {
  static unsigned long long state = 1;
  double sum = -6.0;
  for (int i = 0; i < 12; i++) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    sum += (double)(state >> 11) / 9007199254740992.0;
  }
  return sum;
}

/* What is measured: positions of the motors in counts of 2 pi / 65536, with noise, and their rates. */
static void encoders(const double *q, const double *v, double *q_m, double *v_m) {
  const double count = 2.0 * pi / 65536.0;
  for (int i = 0; i < NU; i++) {
    q_m[i] = count * floor((q[motor[i]] + 2e-5 * noise()) / count + 0.5);
    v_m[i] = v[motor[i]] + 5e-3 * noise();
  }
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void wait_for(struct timespec *next) {
  next->tv_nsec += 1000000000L / RATE;
  if (next->tv_nsec >= 1000000000L) {
    next->tv_nsec -= 1000000000L;
    next->tv_sec++;
  }
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL) == EINTR) {}
}

/* Both motors swing by 0.2 rad, twice a second and three times in two, and start at rest. */
static void reference(double t, const double *start, double *q, double *v, double *a) {
  for (int i = 0; i < NU; i++) {
    const double w = 2.0 * pi * (i == 0 ? 2.0 : 1.5);
    q[i] = start[motor[i]] + 0.1 * (1.0 - cos(w * t));
    v[i] = 0.1 * w * sin(w * t);
    a[i] = 0.1 * w * w * cos(w * t);
  }
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int count, char **arguments) {
  const double seconds = count > 1 ? atof(arguments[1]) : 2.0;
  const int paced = count > 2 && strcmp(arguments[2], "paced") == 0;
  const int ticks = seconds * RATE < MOST ? (int)(seconds * RATE) : MOST;
  holoctl_five_bar controller;
  double start[NQ], q[NQ], v[NV], u[NU], error = 0.0;
  struct timespec next;

  if (ticks < 1) return 2;
  if (holoctl_five_bar_init(&controller) != HOLOCTL_FIVE_BAR_OK) {
    fprintf(stderr, "this build computes wrong torques, or is not that of the header\n");
    return 1;
  }
  holoctl_five_bar_plant_start(start, v);
  memcpy(q, start, sizeof q);
  q[0] += 0.001; /* a disturbance that the controller does not know of; the first step closes it */
  clock_gettime(CLOCK_MONOTONIC, &next);

  for (int k = 0; k < ticks; k++) {
    const double t = (double)k / RATE;
    double q_ref[NU], v_ref[NU], a_ref[NU], q_m[NU], v_m[NU], before;
    if (paced) wait_for(&next);
    reference(t, start, q_ref, v_ref, a_ref);
    encoders(q, v, q_m, v_m);

    before = now();
    const holoctl_five_bar_status status =
        holoctl_five_bar_torque_from_motors(&controller, q_m, v_m, q_ref, v_ref, a_ref, u);
    nanoseconds[k] = now() - before;

    /* A robot would count and go on: u is the last good torque. Not for long, though. */
    if (controller.troubles > 10) {
      fprintf(stderr, "%s\n", holoctl_five_bar_status_text(status));
      return 1;
    }
    if (!holoctl_five_bar_plant_step(q, v, u, 1.0 / RATE)) return 1;

    if (t >= seconds / 2.0) /* the disturbance has died away */
      for (int i = 0; i < NU; i++) error = fmax(error, fabs(q_ref[i] - q[motor[i]]));
  }

  qsort(nanoseconds, (size_t)ticks, sizeof nanoseconds[0], by_size);
  printf("%d ticks at %d Hz, %llu of them good\n", ticks, RATE,
      controller.count[HOLOCTL_FIVE_BAR_OK]);
  printf("largest tracking error in the second half: %.1e rad\n", error);
  printf("tick: median %.0f ns, 99th percentile %.0f ns, worst %.0f ns\n", nanoseconds[ticks / 2],
      nanoseconds[ticks * 99 / 100], nanoseconds[ticks - 1]);
  return 0;
}
