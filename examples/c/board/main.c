/* The controller of the five-bar in the interrupt of a timer, at 1 kHz for one second. There is no robot
 * yet: its plant, in C too, moves in its place. Returns 0 if all is well. */
#include "holoctl_five_bar.h"
#include "holoctl_five_bar_plant.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

#ifndef NUMBER
#define NUMBER double /* of the controller; -DNUMBER=float if it was exported with --single */
#endif
typedef NUMBER number;

#define SYSTICK ((volatile uint32_t *)0xE000E010u) /* control, reload value, value: it counts down */
enum { CLOCK = 25000000, RATE = 1000, TICKS = 1000 }; /* CLOCK of the board, Hz */
enum { NQ = HOLOCTL_FIVE_BAR_NQ, NV = HOLOCTL_FIVE_BAR_NV, NU = HOLOCTL_FIVE_BAR_NU };

static const int *const motor = holoctl_five_bar_motor_q; /* where the motors are in q, and here in v */
static holoctl_five_bar controller;
static double start[NQ], q[NQ], v[NV], error; /* of the plant; largest error, rad */
static uint32_t longest;                      /* counts of the timer in a tick */
static volatile int ticks, failed;

/* The interrupt of the timer. */
void tick(void) {
  number q_m[NU], v_m[NU], q_ref[NU], v_ref[NU], a_ref[NU], u[NU];
  double efforts[NU];
  const double t = (double)ticks / RATE, w = 12.0;
  uint32_t before, after, counts;
  if (ticks == TICKS) return;
  for (int i = 0; i < NU; i++) { /* read encoders and a reference here */
    q_m[i] = (number)q[motor[i]];
    v_m[i] = (number)v[motor[i]];
    q_ref[i] = (number)(start[motor[i]] + 0.1 * (1.0 - cos(w * t)));
    v_ref[i] = (number)(0.1 * w * sin(w * t));
    a_ref[i] = (number)(0.1 * w * w * cos(w * t));
    error = fmax(error, fabs((double)(q_ref[i] - q_m[i])));
  }
  before = SYSTICK[2];
  if (holoctl_five_bar_torque_from_motors(&controller, q_m, v_m, q_ref, v_ref, a_ref, u)
      != HOLOCTL_FIVE_BAR_OK)
    failed = 1; /* u is zero or the last good one: on a robot count, and stop after some */
  after = SYSTICK[2];
  counts = before - after + (before < after ? CLOCK / RATE : 0); /* it may have begun again, once */
  if (counts > longest) longest = counts;
  for (int i = 0; i < NU; i++) efforts[i] = (double)u[i]; /* send them to the drives here */
  if (!holoctl_five_bar_plant_step(q, v, efforts, 1.0 / RATE)) failed = 1;
  ticks++;
}

int main(void) {
  if (holoctl_five_bar_init(&controller) != HOLOCTL_FIVE_BAR_OK) return 1;
  holoctl_five_bar_plant_start(start, v);
  for (int i = 0; i < NQ; i++) q[i] = start[i];
  SYSTICK[1] = CLOCK / RATE - 1;
  SYSTICK[2] = 0;
  SYSTICK[0] = 7; /* on, with interrupt, by the clock of the processor */
  while (ticks < TICKS) __asm volatile("wfi");
  SYSTICK[0] = 0;
  printf("%d ticks, %llu good, largest error %.1e rad\n", ticks,
      controller.count[HOLOCTL_FIVE_BAR_OK], error);
  printf("a tick took at most %lu counts of the timer\n", (unsigned long)longest);
  return failed || !(error < 2e-3);
}
