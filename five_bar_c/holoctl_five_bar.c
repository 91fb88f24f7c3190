/* Written by holoctl 0.1.0: export again instead of editing.
 *
 * The contract is in holoctl_five_bar.h. Straight-line code first, then what judges it.
 */
#include "holoctl_five_bar.h"

#include <float.h>
#include <math.h>

#ifdef __FAST_MATH__
#error "with -ffast-math a compiler may remove the checks for numbers that are not finite"
#endif

enum { NQ = 4, NV = 4, NU = 2, ROWS = 4, CLOSED = 2, KEPT = 2 };

/* ---------------------------------------------------------------------------- the laws */

/* Sines and cosines of n angles, without branches, so that a compiler can do several at once: a
 * part of the time that libm takes. The error is below 2e-16, as that of rounding the angle.
 *
 * x is brought to |r| <= pi/4 by subtracting k pi/2 in two parts, of which the first has so few
 * digits that its product with k is exact. Then
 *
 *   sin r = r + r^3 P(r^2)     cos r = 1 - r^2 / 2 + r^4 Q(r^2)
 *
 * with P and Q of equal ripples (Remez), below 4e-18. With j = k - 4 round(k / 4), polynomials
 * through whole numbers give sin(j pi/2) and cos(j pi/2), exactly. Angles beyond 1e5 rad go to
 * libm. */
#if FLT_EVAL_METHOD == 0
/* 1.5 * 2^52 leaves no digits behind the point */
#define HOLOCTL_ROUND(x) (((x) + 6755399441055744.0) - 6755399441055744.0)
#else
#define HOLOCTL_ROUND(x) floor((x) + 0.5)
#endif

static inline void sines_cosines(const double *restrict x, int n, double *restrict s,
    double *restrict c) {
  for (int i = 0; i < n; i++) {
    const double k = HOLOCTL_ROUND(x[i] * 0.63661977236758138);
    const double r = (x[i] - k * 1.5707963267341256) - k * 6.0771005065061922e-11;
    const double j = k - 4.0 * HOLOCTL_ROUND(0.25 * k), jj = j * j;
    const double sj = j * ((4.0 - jj) * 0.33333333333333333);
    const double cj = 1.0 - jj * ((7.0 - jj) * 0.16666666666666666);
    const double y = r * r, yy = y * y;
    const double P = (-0.16666666666666632 + y * 0.00833333333332242) +
        yy * ((-0.0001984126982981395 + y * 2.755731369441211e-06) +
              yy * (-2.5050758554106302e-08 + y * 1.5896823500988172e-10));
    const double Q = (0.0416666666666666 - y * 0.0013888888888874055) +
        yy * ((2.4801587289443522e-05 - y * 2.7557314342369286e-07) +
              yy * (2.0875722078993783e-09 - y * 1.1359593835943521e-11));
    const double sr = r + (r * y) * P, cr = 1.0 - (0.5 * y - yy * Q);
    s[i] = sr * cj + cr * sj;
    c[i] = cr * cj - sr * sj;
  }
  for (int i = 0; i < n; i++)
    if (!(fabs(x[i]) < 1e5)) {
      s[i] = sin(x[i]);
      c[i] = cos(x[i]);
    }
}

static void errors(const double *q, const double *v, const double *q_ref, const double *v_ref, double *e, double *rate) {
  (void)q;
  (void)v;
  (void)q_ref;
  (void)v_ref;
  (void)e;
  (void)rate;
  const double x0 = q_ref[0];
  const double x1 = q[0];
  const double x2 = x0 - x1;
  e[0] = x2;
  const double x3 = q_ref[1];
  const double x4 = q[2];
  const double x5 = x3 - x4;
  e[1] = x5;
  const double x6 = v_ref[0];
  const double x7 = v[0];
  const double x8 = x6 - x7;
  rate[0] = x8;
  const double x9 = v_ref[1];
  const double x10 = v[2];
  const double x11 = x9 - x10;
  rate[1] = x11;
}


static void law(const double *q, const double *v, const double *target, double *u, double *doubt, double *closed, double *moved, double *kept, double *missed) {
  double sin_of[4], cos_of[4];
  sines_cosines(q, 4, sin_of, cos_of);
  (void)q;
  (void)v;
  (void)target;
  (void)u;
  (void)doubt;
  (void)closed;
  (void)moved;
  (void)kept;
  (void)missed;
  const double x0 = 0.9810000000000001;
  const double x2 = cos_of[0];
  const double x3 = x0 * x2;
  const double x4 = 2.8799999999998965e-05;
  const double x5 = target[0];
  const double x6 = x4 * x5;
  const double x7 = 0.01666667;
  const double x8 = x7 * x5;
  const double x9 = x6 + x8;
  const double x10 = x3 + x9;
  const double x11 = 0.1925;
  const double x13 = cos_of[1];
  const double x14 = 9.81;
  const double x15 = x14 * x2;
  const double x16 = 0.25;
  const double x17 = x16 * x5;
  const double x18 = x15 + x17;
  const double x19 = x13 * x18;
  const double x20 = sin_of[1];
  const double x21 = sin_of[0];
  const double x22 = x14 * x21;
  const double x23 = v[0];
  const double x24 = x23 * x23;
  const double x25 = x16 * x24;
  const double x26 = x22 - x25;
  const double x27 = x20 * x26;
  const double x28 = x19 - x27;
  const double x29 = x11 * x28;
  const double x30 = 3.649999999999487e-05;
  const double x31 = 0.1;
  const double x33 = cos_of[2];
  const double x34 = x16 * x33;
  const double x35 = x31 + x34;
  const double x36 = 0.35;
  const double x38 = cos_of[3];
  const double x39 = x33 * x38;
  const double x40 = sin_of[2];
  const double x41 = sin_of[3];
  const double x42 = x40 * x41;
  const double x43 = x39 - x42;
  const double x44 = x36 * x43;
  const double x45 = x35 + x44;
  const double x46 = (-0.1);
  const double x47 = x45 - x46;
  const double x48 = x47 * x5;
  const double x49 = x16 * x21;
  const double x50 = x23 * x49;
  const double x51 = x23 * x50;
  const double x52 = v[1];
  const double x53 = x23 + x52;
  const double x54 = x16 * x40;
  const double x55 = x40 * x38;
  const double x56 = x33 * x41;
  const double x57 = x55 + x56;
  const double x58 = x36 * x57;
  const double x59 = x54 + x58;
  const double x60 = x59 - x49;
  const double x61 = x53 * x60;
  const double x62 = x53 * x61;
  const double x63 = x51 + x62;
  const double x64 = v[2];
  const double x65 = x64 * x54;
  const double x66 = x64 * x65;
  const double x67 = v[3];
  const double x68 = x64 + x67;
  const double x69 = x68 * x58;
  const double x70 = x68 * x69;
  const double x71 = x66 + x70;
  const double x72 = x63 - x71;
  const double x73 = x50 + x61;
  const double x74 = x65 + x69;
  const double x75 = x73 - x74;
  const double x76 = x53 * x75;
  const double x77 = 2.0 * x76;
  const double x78 = x72 - x77;
  const double x79 = x48 - x78;
  const double x80 = x45 - x31;
  const double x81 = target[1];
  const double x82 = x80 * x81;
  const double x83 = x79 - x82;
  const double per_x58 = 1.0 / x58;
  const double x84 = x44 * per_x58;
  const double x85 = x59 * x81;
  const double x86 = x16 * x2;
  const double x87 = x23 * x86;
  const double x88 = x23 * x87;
  const double x89 = x46 + x86;
  const double x90 = x45 - x89;
  const double x91 = x53 * x90;
  const double x92 = x53 * x91;
  const double x93 = x88 + x92;
  const double x94 = x64 * x34;
  const double x95 = x64 * x94;
  const double x96 = x68 * x44;
  const double x97 = x68 * x96;
  const double x98 = x95 + x97;
  const double x99 = x93 - x98;
  const double x100 = x94 + x96;
  const double x101 = x87 + x91;
  const double x102 = x100 - x101;
  const double x103 = x53 * x102;
  const double x104 = -x103;
  const double x105 = 2.0 * x104;
  const double x106 = x99 - x105;
  const double x107 = x59 * x5;
  const double x108 = x106 + x107;
  const double x109 = x85 - x108;
  const double x110 = x84 * x109;
  const double x111 = x83 + x110;
  const double x112 = x84 * x60;
  const double x113 = x112 - x90;
  const double per_x113 = 1.0 / x113;
  const double x114 = x111 * per_x113;
  const double x115 = x5 + x114;
  const double x116 = x30 * x115;
  const double x117 = 0.05719066999999999;
  const double x118 = x117 * x115;
  const double x119 = x116 + x118;
  const double x120 = x29 + x119;
  const double x121 = x10 + x120;
  const double x122 = 0.8;
  const double x123 = x13 * x26;
  const double x124 = x20 * x18;
  const double x125 = x123 + x124;
  const double x126 = x122 * x125;
  const double x127 = x53 * x53;
  const double x128 = x11 * x127;
  const double x129 = x126 - x128;
  const double x130 = x20 * x129;
  const double x131 = x122 * x28;
  const double x132 = x11 * x115;
  const double x133 = x131 + x132;
  const double x134 = x13 * x133;
  const double x135 = x130 + x134;
  const double x136 = x16 * x135;
  const double x137 = x121 + x136;
  const double x138 = 1.2499999999998623e-05;
  const double x139 = x60 * x114;
  const double x140 = x109 - x139;
  const double x141 = x140 * per_x58;
  const double x142 = x141 - x81;
  const double x143 = x138 * x142;
  const double x144 = 0.020416669999999994;
  const double x145 = x144 * x142;
  const double x146 = x143 + x145;
  const double x147 = 0.0875;
  const double x148 = x14 * x33;
  const double x149 = x16 * x81;
  const double x150 = x148 + x149;
  const double x151 = x38 * x150;
  const double x152 = x14 * x40;
  const double x153 = x64 * x64;
  const double x154 = x16 * x153;
  const double x155 = x152 - x154;
  const double x156 = x41 * x155;
  const double x157 = x151 - x156;
  const double x158 = x147 * x157;
  const double x159 = x146 - x158;
  const double x160 = x159 * per_x58;
  const double x161 = x60 * x160;
  const double x162 = x120 - x161;
  const double x163 = x162 * per_x113;
  const double x164 = x84 * x163;
  const double x165 = x160 + x164;
  const double x166 = x59 * x165;
  const double x167 = x47 * x163;
  const double x168 = x166 - x167;
  const double x169 = x137 - x168;
  u[0] = x169;
  const double x170 = x0 * x33;
  const double x171 = x4 * x81;
  const double x172 = x7 * x81;
  const double x173 = x171 + x172;
  const double x174 = x170 + x173;
  const double x175 = x159 - x174;
  const double x176 = 0.5;
  const double x177 = x38 * x155;
  const double x178 = x41 * x150;
  const double x179 = x177 + x178;
  const double x180 = x176 * x179;
  const double x181 = x68 * x68;
  const double x182 = x147 * x181;
  const double x183 = x180 - x182;
  const double x184 = x41 * x183;
  const double x185 = x176 * x157;
  const double x186 = x147 * x142;
  const double x187 = x185 - x186;
  const double x188 = x38 * x187;
  const double x189 = x184 + x188;
  const double x190 = x16 * x189;
  const double x191 = x175 - x190;
  const double x192 = x80 * x163;
  const double x193 = x192 - x166;
  const double x194 = x191 + x193;
  const double x195 = -x194;
  u[1] = x195;
  const double x196 = 6.692661979812365e-05;
  const double x197 = x196 * per_x58;
  const double x198 = x197 * x197;
  const double x199 = 0.02;
  const double x200 = x199 * x84;
  const double x201 = x200 * x200;
  const double x202 = x198 + x201;
  const double x203 = x196 * per_x113;
  const double x204 = x203 * x203;
  const double x205 = x202 + x204;
  doubt[0] = x205;
  const double x206 = 1.4941737727325592;
  const double x207 = x2 * x13;
  const double x208 = x21 * x20;
  const double x209 = x207 - x208;
  const double x210 = x36 * x209;
  const double x211 = x89 + x210;
  const double x212 = x45 - x211;
  const double x213 = x206 * x212;
  closed[0] = x213;
  const double x214 = x21 * x13;
  const double x215 = x2 * x20;
  const double x216 = x214 + x215;
  const double x217 = x36 * x216;
  const double x218 = x49 + x217;
  const double x219 = x59 - x218;
  const double x220 = x206 * x219;
  closed[1] = x220;
  const double x221 = x206 * x75;
  moved[0] = x221;
  const double x222 = x206 * x102;
  moved[1] = x222;
  const double x223 = x108 + x139;
  const double x224 = x223 - x85;
  const double x225 = x224 + x140;
  const double x226 = x206 * x225;
  kept[0] = x226;
  const double x227 = x78 - x48;
  const double x228 = x90 * x114;
  const double x229 = x227 - x228;
  const double x230 = x229 + x82;
  const double x231 = x44 * x141;
  const double x232 = x230 - x231;
  const double x233 = x206 * x232;
  kept[1] = x233;
  const double x234 = 0.0;
  missed[0] = x234;
  missed[1] = x234;
}


static void matrix(const double *q, double *A) {
  const double angle[4] = {q[2], q[3], q[0], 0.0};
  double sin_of[4], cos_of[4];
  sines_cosines(angle, 4, sin_of, cos_of);
  (void)q;
  (void)A;
  const double x0 = 1.4941737727325592;
  const double x1 = 0.25;
  const double x3 = sin_of[0];
  const double x4 = x1 * x3;
  const double x5 = 0.35;
  const double x7 = cos_of[1];
  const double x8 = x3 * x7;
  const double x9 = cos_of[0];
  const double x10 = sin_of[1];
  const double x11 = x9 * x10;
  const double x12 = x8 + x11;
  const double x13 = x5 * x12;
  const double x14 = x4 + x13;
  const double x15 = x0 * x14;
  A[0] = x15;
  const double x16 = 0.1;
  const double x17 = x1 * x9;
  const double x18 = x16 + x17;
  const double x19 = x9 * x7;
  const double x20 = x3 * x10;
  const double x21 = x19 - x20;
  const double x22 = x5 * x21;
  const double x23 = x18 + x22;
  const double x24 = (-0.1);
  const double x25 = x23 - x24;
  const double x26 = x0 * x25;
  const double x27 = -x26;
  A[4] = x27;
  const double x28 = 1.0;
  A[8] = x28;
  A[14] = x28;
  const double x29 = 0.0;
  A[12] = x29;
  A[9] = x29;
  A[13] = x29;
  A[10] = x29;
  A[11] = x29;
  A[15] = x29;
  const double x31 = sin_of[2];
  const double x32 = x1 * x31;
  const double x33 = x14 - x32;
  const double x34 = x0 * x33;
  A[1] = x34;
  const double x35 = cos_of[2];
  const double x36 = x1 * x35;
  const double x37 = x24 + x36;
  const double x38 = x23 - x37;
  const double x39 = x0 * x38;
  const double x40 = -x39;
  A[5] = x40;
  const double x41 = -x15;
  A[2] = x41;
  const double x42 = x23 - x16;
  const double x43 = x0 * x42;
  A[6] = x43;
  const double x44 = 0.5229608204563957;
  const double x45 = x44 * x12;
  const double x46 = -x45;
  A[3] = x46;
  const double x47 = x44 * x21;
  A[7] = x47;
}


/* ------------------------------------------------------------------------------ checks */

/* Infinity less infinity is not a number, and no sum with it is zero. */
static int all_finite(const double *x, int n) {
  double sum = 0.0;
  for (int i = 0; i < n; i++) sum += x[i] - x[i];
  return sum == 0.0;
}

/* The largest magnitude; HUGE_VAL where an entry is not finite. */
static double largest(const double *x, int n) {
  double found = 0.0, sum = 0.0;
  for (int i = 0; i < n; i++) {
    const double size = fabs(x[i]);
    sum += size - size;
    found = size > found ? size : found;
  }
  return sum == 0.0 ? found : HUGE_VAL;
}

/* The smallest pivot over the largest of the scaled kept rows with those of the motors, by
 * elimination with complete pivoting: what no order of pivots can improve. Only in trouble. */
static double smallest_pivot(const double *q) {
  double A[ROWS * NV], first = 0.0, pivot = 0.0;
  matrix(q, A);
  if (!all_finite(A, ROWS * NV)) return 0.0;
  for (int k = 0; k < ROWS && k < NV; k++) {
    int row = k, column = k;
    for (int i = k; i < ROWS; i++)
      for (int j = k; j < NV; j++)
        if (fabs(A[i * NV + j]) > fabs(A[row * NV + column])) row = i, column = j;
    pivot = fabs(A[row * NV + column]);
    if (!(pivot > 0.0)) return 0.0;
    if (k == 0) first = pivot;
    for (int j = 0; j < NV; j++) {
      const double kept = A[k * NV + j];
      A[k * NV + j] = A[row * NV + j];
      A[row * NV + j] = kept;
    }
    for (int i = 0; i < ROWS; i++) {
      const double kept = A[i * NV + k];
      A[i * NV + k] = A[i * NV + column];
      A[i * NV + column] = kept;
    }
    for (int i = k + 1; i < ROWS; i++) {
      const double multiplier = A[i * NV + k] / A[k * NV + k];
      for (int j = k; j < NV; j++) A[i * NV + j] -= multiplier * A[k * NV + j];
    }
  }
  return pivot / first;
}

/* What is known of a result: its torque, doubt and certificate. */
static holoctl_five_bar_status judge(holoctl_five_bar *c, const double *q, double doubt, const double *found) {
  c->doubt = doubt <= HUGE_VAL ? doubt : HUGE_VAL; /* not a number: infinite */
  if (!(c->closure <= c->closure_limit)) return HOLOCTL_FIVE_BAR_OPEN;
  if (!(c->doubt < c->doubt_limit)) {
    c->pivot = smallest_pivot(q);
    return c->pivot < c->pivot_limit ? HOLOCTL_FIVE_BAR_SINGULAR : HOLOCTL_FIVE_BAR_PIVOT_GROWTH;
  }
  return all_finite(found, NU) ? HOLOCTL_FIVE_BAR_OK : HOLOCTL_FIVE_BAR_OVERFLOW;
}

/* Count, keep a good torque, and give what is to be given. */
static holoctl_five_bar_status finish(holoctl_five_bar *c, holoctl_five_bar_status status, const double *found, double *u) {
  c->ticks++;
  c->count[status]++;
  if (status == HOLOCTL_FIVE_BAR_OK) {
    c->troubles = 0;
    for (int i = 0; i < NU; i++) u[i] = c->last[i] = found[i];
    return status;
  }
  c->troubles++;
  for (int i = 0; i < NU; i++) u[i] = c->in_trouble == HOLOCTL_FIVE_BAR_HOLD ? c->last[i] : 0.0;
  return status;
}

/* Input that nothing can be computed from. */
static holoctl_five_bar_status refuse(holoctl_five_bar *c, holoctl_five_bar_status status, double *u) {
  c->closure = c->velocity = c->acceleration = c->missed = c->doubt = c->pivot = HUGE_VAL;
  return finish(c, status, c->last, u);
}

/* --------------------------------------------------------------------------- the ticks */

static holoctl_five_bar_status solve(holoctl_five_bar *c, const double *q, const double *v, const double *target,
    double *u) {
  double found[NU], doubt, closed[CLOSED], moved[CLOSED], kept[KEPT], missed[NU];
  law(q, v, target, found, &doubt, closed, moved, kept, missed);
  c->closure = largest(closed, CLOSED);
  c->velocity = largest(moved, CLOSED);
  c->acceleration = largest(kept, KEPT);
  c->missed = largest(missed, NU);
  return finish(c, judge(c, q, doubt, found), found, u);
}

void holoctl_five_bar_init(holoctl_five_bar *c) {
  c->kp[0] = 400.0;
  c->kp[1] = 400.0;
  c->kd[0] = 40.0;
  c->kd[1] = 40.0;
  c->closure_limit = 0.02;
  c->doubt_limit = 1.0;
  c->pivot_limit = 0.02;
  c->in_trouble = HOLOCTL_FIVE_BAR_HOLD;
  c->closure = c->velocity = c->acceleration = c->missed = c->doubt = c->pivot = HUGE_VAL;
  for (int i = 0; i < NU; i++) c->last[i] = 0.0;
  c->ticks = c->troubles = 0;
  for (int i = 0; i < HOLOCTL_FIVE_BAR_STATUSES; i++) c->count[i] = 0;
}

holoctl_five_bar_status holoctl_five_bar_torque(holoctl_five_bar *c, const double *q, const double *v,
    const double *q_ref, const double *v_ref, const double *a_ref, double *u) {
  double e[NU], rate[NU], target[NU];
  if (!all_finite(q, NQ) || !all_finite(v, NV) || !all_finite(q_ref, NU) ||
      !all_finite(v_ref, NU) || !all_finite(a_ref, NU))
    return refuse(c, HOLOCTL_FIVE_BAR_NOT_FINITE, u);
  errors(q, v, q_ref, v_ref, e, rate);
  for (int i = 0; i < NU; i++) target[i] = a_ref[i] + (c->kp[i] * e[i] + c->kd[i] * rate[i]);
  return solve(c, q, v, target, u);
}

holoctl_five_bar_status holoctl_five_bar_inverse_dynamics(holoctl_five_bar *c, const double *q, const double *v,
    const double *target, double *u) {
  if (!all_finite(q, NQ) || !all_finite(v, NV) || !all_finite(target, NU))
    return refuse(c, HOLOCTL_FIVE_BAR_NOT_FINITE, u);
  return solve(c, q, v, target, u);
}

const char *holoctl_five_bar_status_text(holoctl_five_bar_status status) {
  switch (status) {
    case HOLOCTL_FIVE_BAR_OK: return "ok";
    case HOLOCTL_FIVE_BAR_NOT_FINITE: return "an input is not finite";
    case HOLOCTL_FIVE_BAR_NOT_NORMALISED: return "a quaternion or cosine-sine pair is not of norm one";
    case HOLOCTL_FIVE_BAR_OPEN: return "the closures are open";
    case HOLOCTL_FIVE_BAR_SINGULAR: return "the configuration is singular, or nearly";
    case HOLOCTL_FIVE_BAR_PIVOT_GROWTH: return "the order of pivots loses too many digits here";
    case HOLOCTL_FIVE_BAR_OVERFLOW: return "the torque is not finite";
  }
  return "unknown status";
}
