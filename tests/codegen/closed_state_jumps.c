/* Random jumps of what is measured, in exported C (SOURCE): where one tick leads, and where the same
 * way leads in small steps, without the guard of dead points.
 *
 *   jumps <count> <seed> <starts> <report>
 *
 * starts: configurations. report: (how it ended, q, x, q found), for those that need another judge.
 * Prints how many jumps there were, ended where the small steps did, ended elsewhere, ended where the
 * small steps did not, were refused, and were refused where the small steps went on. */

#include SOURCE

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STARTS = 64, REPORTED = 60 };

static const double at_rest[M] = {0};
static unsigned long long state = 88172645463325252ULL;

static double uniform(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (double)(state >> 11) / 9007199254740992.0;
}

static double normal(void) {
  const double size = sqrt(-2.0 * log(1.0 - uniform()));
  return size * cos(6.283185307179586 * uniform());
}

static double apart(const double *a, const double *b) {
  double most = 0.0;
  for (int i = 0; i < NQ; i++)
    if (!(fabs(a[i] - b[i]) <= most)) most = fabs(a[i] - b[i]);
  return most;
}

/* Where small steps lead from *m to x0 + d; whether they lead there. */
static int walked(REMEMBERED *m, const double *x0, const double *d, double size) {
  const int parts = 8 + (int)(60.0 * size);
  REMEMBERED next;
  double x[M], far;
  for (int k = 1; k <= parts; k++) {
    for (int j = 0; j < M; j++) x[j] = x0[j] + d[j] * k / parts;
    m->known = 1;
    if (attempt(m, x, at_rest, 0.0, &next, &far) != FOUND) return 0;
    *m = next;
  }
  return 1;
}

int main(int argc, char **argv) {
  static double starts[STARTS][NQ], first[STARTS][NQ];
  static REMEMBERED here, next, steps;
  int count = 0, reported[4] = {0};
  long jumps = 0, same = 0, other = 0, alone = 0, refused = 0, walks = 0;
  FILE *file, *report;
  if (argc != 5 || !(file = fopen(argv[3], "rb")) || !(report = fopen(argv[4], "wb"))) return 1;
  while (count < STARTS && fread(starts[count], sizeof(double), NQ, file) == NQ) count++;
  fclose(file);
  if (!count) return 1;
  memcpy(first, starts, sizeof first);
  state ^= (unsigned long long)atol(argv[2]) * 0x9E3779B97F4A7C15ULL;
  for (int i = 0; i < 20; i++) uniform();
  for (long k = 0; k < atol(argv[1]); k++) {
    const int i = (int)(uniform() * count);
    const double size = 1e-3 * pow(2e3, uniform());
    double x0[M], x[M], d[M], zero[M] = {0}, length = 0.0, far;
    int went, kind = -1;
    ending how;
    if (begin(&here, starts[i], 0.0) != FOUND) {
      memcpy(starts[i], first[i], sizeof first[i]);
      continue;
    }
    for (int j = 0; j < M; j++) {
      d[j] = normal();
      length += d[j] * d[j];
    }
    difference(here.q, zero, x0);
    for (int j = 0; j < M; j++) {
      d[j] *= size / sqrt(length) * unit[j];
      x0[j] = -x0[j];
      x[j] = x0[j] + d[j];
    }
    steps = here;
    how = attempt(&here, x, at_rest, 0.0, &next, &far);
    went = walked(&steps, x0, d, size);
    jumps++;
    if (how != FOUND) {
      refused++;
      walks += went;
      if (went) kind = 2;
    } else if (!went) {
      alone++;
      kind = 1;
    } else if (apart(next.q, steps.q) > 1e-6) {
      other++;
      kind = 0;
    } else {
      same++;
      if (uniform() < 0.03) memcpy(starts[i], next.q, sizeof starts[i]);
      if (uniform() * (double)atol(argv[1]) < REPORTED) kind = 3;
    }
    if (kind >= 0 && reported[kind]++ < REPORTED) {
      const double told = kind;
      fwrite(&told, sizeof told, 1, report);
      fwrite(here.q, sizeof(double), NQ, report);
      fwrite(x, sizeof(double), M, report);
      fwrite(next.q, sizeof(double), NQ, report);
    }
  }
  fclose(report);
  printf("%ld %ld %ld %ld %ld %ld\n", jumps, same, other, alone, refused, walks);
  return 0;
}
