/* Written by holoctl 0.1.0: export again instead of editing.
 *
 * The contract is in holoctl_five_bar_plant.h.
 */
#include "holoctl_five_bar_plant.h"

#include <float.h>
#include <math.h>

enum { NQ = 4, NV = 4 };

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

static void motion(const double *q, const double *v, const double *u, double *qdot, double *a, double *doubt) {
  const double angle[4] = {q[0], q[2], q[3], q[1]};
  double sin_of[4], cos_of[4];
  sines_cosines(angle, 4, sin_of, cos_of);
  (void)q;
  (void)v;
  (void)u;
  (void)qdot;
  (void)a;
  (void)doubt;
  const double x0 = v[0];
  qdot[0] = x0;
  const double x1 = v[1];
  qdot[1] = x1;
  const double x2 = v[2];
  qdot[2] = x2;
  const double x3 = v[3];
  qdot[3] = x3;
  const double x4 = 3.649999999999487e-05;
  const double x5 = 0.25;
  const double x7 = sin_of[0];
  const double x8 = x5 * x7;
  const double x9 = x0 * x8;
  const double x10 = x0 * x9;
  const double x11 = x0 + x1;
  const double x13 = sin_of[1];
  const double x14 = x5 * x13;
  const double x15 = 0.35;
  const double x17 = cos_of[2];
  const double x18 = x13 * x17;
  const double x19 = cos_of[1];
  const double x20 = sin_of[2];
  const double x21 = x19 * x20;
  const double x22 = x18 + x21;
  const double x23 = x15 * x22;
  const double x24 = x14 + x23;
  const double x25 = x24 - x8;
  const double x26 = x11 * x25;
  const double x27 = x11 * x26;
  const double x28 = x10 + x27;
  const double x29 = x2 * x14;
  const double x30 = x2 * x29;
  const double x31 = x2 + x3;
  const double x32 = x31 * x23;
  const double x33 = x31 * x32;
  const double x34 = x30 + x33;
  const double x35 = x28 - x34;
  const double x36 = x9 + x26;
  const double x37 = x29 + x32;
  const double x38 = x36 - x37;
  const double x39 = x11 * x38;
  const double x40 = 2.0 * x39;
  const double x41 = x35 - x40;
  const double x42 = x19 * x17;
  const double x43 = x13 * x20;
  const double x44 = x42 - x43;
  const double x45 = x15 * x44;
  const double per_x23 = 1.0 / x23;
  const double x46 = x45 * per_x23;
  const double x47 = cos_of[0];
  const double x48 = x5 * x47;
  const double x49 = x0 * x48;
  const double x50 = x0 * x49;
  const double x51 = 0.1;
  const double x52 = x5 * x19;
  const double x53 = x51 + x52;
  const double x54 = x53 + x45;
  const double x55 = (-0.1);
  const double x56 = x55 + x48;
  const double x57 = x54 - x56;
  const double x58 = x11 * x57;
  const double x59 = x11 * x58;
  const double x60 = x50 + x59;
  const double x61 = x2 * x52;
  const double x62 = x2 * x61;
  const double x63 = x31 * x45;
  const double x64 = x31 * x63;
  const double x65 = x62 + x64;
  const double x66 = x60 - x65;
  const double x67 = x61 + x63;
  const double x68 = x49 + x58;
  const double x69 = x67 - x68;
  const double x70 = x11 * x69;
  const double x71 = -x70;
  const double x72 = 2.0 * x71;
  const double x73 = x66 - x72;
  const double x74 = x46 * x73;
  const double x75 = x41 + x74;
  const double x76 = x46 * x25;
  const double x77 = x76 - x57;
  const double per_x77 = 1.0 / x77;
  const double x78 = x75 * per_x77;
  const double x79 = x4 * x78;
  const double x80 = 0.05719066999999999;
  const double x81 = x80 * x78;
  const double x82 = x79 + x81;
  const double x83 = 0.1925;
  const double x85 = cos_of[3];
  const double x86 = 9.81;
  const double x87 = x86 * x47;
  const double x88 = x85 * x87;
  const double x89 = sin_of[3];
  const double x90 = x86 * x7;
  const double x91 = x0 * x0;
  const double x92 = x5 * x91;
  const double x93 = x90 - x92;
  const double x94 = x89 * x93;
  const double x95 = x88 - x94;
  const double x96 = x83 * x95;
  const double x97 = x82 - x96;
  const double x98 = 0.9810000000000001;
  const double x99 = x98 * x47;
  const double x100 = x97 - x99;
  const double x101 = 0.8;
  const double x102 = x85 * x93;
  const double x103 = x89 * x87;
  const double x104 = x102 + x103;
  const double x105 = x101 * x104;
  const double x106 = x11 * x11;
  const double x107 = x83 * x106;
  const double x108 = x105 - x107;
  const double x109 = x89 * x108;
  const double x110 = x101 * x95;
  const double x111 = x83 * x78;
  const double x112 = x110 - x111;
  const double x113 = x85 * x112;
  const double x114 = x109 + x113;
  const double x115 = x5 * x114;
  const double x116 = x100 - x115;
  const double x117 = u[0];
  const double x118 = x116 + x117;
  const double x119 = x54 - x55;
  const double x120 = x46 * x24;
  const double x121 = x119 - x120;
  const double x122 = x121 * per_x77;
  const double x123 = x122 * x97;
  const double x124 = x118 + x123;
  const double x125 = x25 * x122;
  const double x126 = x24 + x125;
  const double x127 = x126 * per_x23;
  const double x128 = 1.2499999999998623e-05;
  const double x129 = x25 * x78;
  const double x130 = x129 - x73;
  const double x131 = x130 * per_x23;
  const double x132 = x128 * x131;
  const double x133 = 0.020416669999999994;
  const double x134 = x133 * x131;
  const double x135 = x132 + x134;
  const double x136 = 0.0875;
  const double x137 = x86 * x19;
  const double x138 = x17 * x137;
  const double x139 = x86 * x13;
  const double x140 = x2 * x2;
  const double x141 = x5 * x140;
  const double x142 = x139 - x141;
  const double x143 = x20 * x142;
  const double x144 = x138 - x143;
  const double x145 = x136 * x144;
  const double x146 = x135 - x145;
  const double x147 = x127 * x146;
  const double x148 = x124 + x147;
  const double x149 = 0.01666667;
  const double x150 = x80 * x85;
  const double x151 = x150 * x85;
  const double x152 = x4 * x89;
  const double x153 = x152 * x89;
  const double x154 = x151 + x153;
  const double x155 = x149 + x154;
  const double x156 = 0.048125;
  const double x157 = x156 * x85;
  const double x158 = x155 + x157;
  const double x159 = x158 + x157;
  const double x160 = 0.05;
  const double x161 = x159 + x160;
  const double x162 = 6.529999999999384e-05;
  const double x163 = x161 + x162;
  const double x164 = 2.8799999999998965e-05;
  const double x165 = x80 * x89;
  const double x166 = x165 * x89;
  const double x167 = x4 * x85;
  const double x168 = x167 * x85;
  const double x169 = x166 + x168;
  const double x170 = x164 + x169;
  const double x171 = x163 + x170;
  const double x172 = x171 - x162;
  const double x173 = (-0.05722716999999999);
  const double x174 = x173 - x157;
  const double x175 = x174 * x122;
  const double x176 = x172 - x175;
  const double x177 = 0.05722716999999999;
  const double x178 = x177 * x122;
  const double x179 = x178 - x174;
  const double x180 = x122 * x179;
  const double x181 = x176 + x180;
  const double x182 = 0.020429169999999993;
  const double x183 = x182 * x127;
  const double x184 = x127 * x183;
  const double x185 = x181 + x184;
  const double per_x185 = 1.0 / x185;
  const double x186 = x148 * per_x185;
  const double x187 = x54 - x51;
  const double x188 = x120 - x187;
  const double x189 = x188 * per_x77;
  const double x190 = x189 * x179;
  const double x191 = (-0.020429169999999993);
  const double x192 = 0.021875;
  const double x193 = x192 * x17;
  const double x194 = x191 - x193;
  const double x195 = x194 * x127;
  const double x196 = x190 - x195;
  const double x197 = x25 * x189;
  const double x198 = x24 - x197;
  const double x199 = x198 * per_x23;
  const double x200 = x199 * x183;
  const double x201 = x196 - x200;
  const double x202 = x201 * per_x185;
  const double x203 = x199 * x146;
  const double x204 = x189 * x97;
  const double x205 = x98 * x19;
  const double x206 = x146 - x205;
  const double x207 = 0.5;
  const double x208 = x17 * x142;
  const double x209 = x20 * x137;
  const double x210 = x208 + x209;
  const double x211 = x207 * x210;
  const double x212 = x31 * x31;
  const double x213 = x136 * x212;
  const double x214 = x211 - x213;
  const double x215 = x20 * x214;
  const double x216 = x207 * x144;
  const double x217 = x136 * x131;
  const double x218 = x216 - x217;
  const double x219 = x17 * x218;
  const double x220 = x215 + x219;
  const double x221 = x5 * x220;
  const double x222 = x206 - x221;
  const double x223 = u[1];
  const double x224 = x222 + x223;
  const double x225 = x204 + x224;
  const double x226 = x203 - x225;
  const double x227 = x202 * x148;
  const double x228 = x226 + x227;
  const double x229 = x177 * x189;
  const double x230 = x189 * x229;
  const double x231 = x133 * x17;
  const double x232 = x231 * x17;
  const double x233 = x128 * x20;
  const double x234 = x233 * x20;
  const double x235 = x232 + x234;
  const double x236 = x149 + x235;
  const double x237 = x236 + x193;
  const double x238 = x237 + x193;
  const double x239 = 0.03125;
  const double x240 = x238 + x239;
  const double x241 = 4.129999999999759e-05;
  const double x242 = x240 + x241;
  const double x243 = x133 * x20;
  const double x244 = x243 * x20;
  const double x245 = x128 * x17;
  const double x246 = x245 * x17;
  const double x247 = x244 + x246;
  const double x248 = x164 + x247;
  const double x249 = x242 + x248;
  const double x250 = x249 - x241;
  const double x251 = x194 * x199;
  const double x252 = x250 + x251;
  const double x253 = x230 + x252;
  const double x254 = x182 * x199;
  const double x255 = x194 + x254;
  const double x256 = x199 * x255;
  const double x257 = x253 + x256;
  const double x258 = x201 * x202;
  const double x259 = x257 - x258;
  const double per_x259 = 1.0 / x259;
  const double x260 = x228 * per_x259;
  const double x261 = x202 * x260;
  const double x262 = x186 + x261;
  const double x263 = x164 * x262;
  const double x264 = x149 * x262;
  const double x265 = x263 + x264;
  const double x266 = x99 + x265;
  const double x267 = x5 * x262;
  const double x268 = x87 + x267;
  const double x269 = x85 * x268;
  const double x270 = x269 - x94;
  const double x271 = x83 * x270;
  const double x272 = x122 * x262;
  const double x273 = x189 * x260;
  const double x274 = x272 - x273;
  const double x275 = x274 - x78;
  const double x276 = x262 + x275;
  const double x277 = x4 * x276;
  const double x278 = x80 * x276;
  const double x279 = x277 + x278;
  const double x280 = x271 + x279;
  const double x281 = x266 + x280;
  const double x282 = x89 * x268;
  const double x283 = x102 + x282;
  const double x284 = x101 * x283;
  const double x285 = x284 - x107;
  const double x286 = x89 * x285;
  const double x287 = x101 * x270;
  const double x288 = x83 * x276;
  const double x289 = x287 + x288;
  const double x290 = x85 * x289;
  const double x291 = x286 + x290;
  const double x292 = x5 * x291;
  const double x293 = x281 + x292;
  const double x294 = x293 - x117;
  const double x295 = x122 * x280;
  const double x296 = x294 + x295;
  const double x297 = x127 * x262;
  const double x298 = x199 * x260;
  const double x299 = x297 + x298;
  const double x300 = x299 - x131;
  const double x301 = x260 - x300;
  const double x302 = x128 * x301;
  const double x303 = x133 * x301;
  const double x304 = x302 + x303;
  const double x305 = x5 * x260;
  const double x306 = x137 - x305;
  const double x307 = x17 * x306;
  const double x308 = x307 - x143;
  const double x309 = x136 * x308;
  const double x310 = x304 - x309;
  const double x311 = x127 * x310;
  const double x312 = x296 - x311;
  const double x313 = x312 * per_x185;
  const double x314 = x202 * x312;
  const double x315 = x189 * x280;
  const double x316 = x164 * x260;
  const double x317 = x149 * x260;
  const double x318 = x316 + x317;
  const double x319 = x318 - x205;
  const double x320 = x319 + x310;
  const double x321 = x20 * x306;
  const double x322 = x208 + x321;
  const double x323 = x207 * x322;
  const double x324 = x323 - x213;
  const double x325 = x20 * x324;
  const double x326 = x207 * x308;
  const double x327 = x136 * x301;
  const double x328 = x326 - x327;
  const double x329 = x17 * x328;
  const double x330 = x325 + x329;
  const double x331 = x5 * x330;
  const double x332 = x320 - x331;
  const double x333 = x332 + x223;
  const double x334 = x315 - x333;
  const double x335 = x199 * x310;
  const double x336 = x334 + x335;
  const double x337 = x314 - x336;
  const double x338 = x337 * per_x259;
  const double x339 = x202 * x338;
  const double x340 = x313 + x339;
  const double x341 = x262 - x340;
  a[0] = x341;
  const double x342 = x189 * x338;
  const double x343 = x122 * x340;
  const double x344 = x342 - x343;
  const double x345 = x275 + x344;
  a[1] = x345;
  const double x346 = x338 - x260;
  a[2] = x346;
  const double x347 = x127 * x340;
  const double x348 = x199 * x338;
  const double x349 = x347 + x348;
  const double x350 = x300 - x349;
  a[3] = x350;
  const double x351 = 6.692661979812365e-05;
  const double x352 = x351 * per_x23;
  const double x353 = x352 * x352;
  const double x354 = 0.02;
  const double x355 = x354 * x46;
  const double x356 = x355 * x355;
  const double x357 = x353 + x356;
  const double x358 = x351 * per_x77;
  const double x359 = x358 * x358;
  const double x360 = x357 + x359;
  const double x361 = 9.999999999999998e-15;
  const double x362 = x360 + x361;
  const double x363 = 0.0;
  const double x364 = (double)(x363 < x185);
  const double x365 = (double)(x364 == 0.0);
  const double x366 = 2.0;
  const double x367 = (x365 != 0.0 ? x366 : 0.0);
  const double x368 = x362 + x367;
  const double x369 = 1e-07;
  const double x370 = x257 * per_x259;
  const double x371 = x369 * x370;
  const double x372 = x371 * x371;
  const double x373 = x368 + x372;
  const double x374 = (double)(x363 < x259);
  const double x375 = (double)(x374 == 0.0);
  const double x376 = (x375 != 0.0 ? x366 : 0.0);
  const double x377 = x373 + x376;
  doubt[0] = x377;
}


static void correction(const double *q, const double *v, double *dq, double *dv, double *doubt) {
  const double angle[4] = {q[2], q[3], q[0], q[1]};
  double sin_of[4], cos_of[4];
  sines_cosines(angle, 4, sin_of, cos_of);
  (void)q;
  (void)v;
  (void)dq;
  (void)dv;
  (void)doubt;
  const double x0 = 0.0;
  dq[0] = x0;
  dq[2] = x0;
  dv[0] = x0;
  dv[2] = x0;
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
  const double x16 = sin_of[2];
  const double x17 = x1 * x16;
  const double x19 = cos_of[3];
  const double x20 = x16 * x19;
  const double x21 = cos_of[2];
  const double x22 = sin_of[3];
  const double x23 = x21 * x22;
  const double x24 = x20 + x23;
  const double x25 = x5 * x24;
  const double x26 = x17 + x25;
  const double x27 = x14 - x26;
  const double x28 = x9 * x7;
  const double x29 = x3 * x10;
  const double x30 = x28 - x29;
  const double x31 = x5 * x30;
  const double per_x13 = 1.0 / x13;
  const double x32 = x31 * per_x13;
  const double x33 = 0.1;
  const double x34 = x1 * x9;
  const double x35 = x33 + x34;
  const double x36 = x35 + x31;
  const double x37 = (-0.1);
  const double x38 = x1 * x21;
  const double x39 = x37 + x38;
  const double x40 = x21 * x19;
  const double x41 = x16 * x22;
  const double x42 = x40 - x41;
  const double x43 = x5 * x42;
  const double x44 = x39 + x43;
  const double x45 = x36 - x44;
  const double x46 = x32 * x45;
  const double x47 = x27 + x46;
  const double x48 = x14 - x17;
  const double x49 = x32 * x48;
  const double x50 = x36 - x39;
  const double x51 = x49 - x50;
  const double per_x51 = 1.0 / x51;
  const double x52 = x47 * per_x51;
  const double x53 = -x52;
  dq[1] = x53;
  const double x54 = x48 * x52;
  const double x55 = x54 - x45;
  const double x56 = x55 * per_x13;
  const double x57 = -x56;
  dq[3] = x57;
  const double x58 = v[2];
  const double x59 = x58 * x34;
  const double x60 = v[3];
  const double x61 = x58 + x60;
  const double x62 = x61 * x31;
  const double x63 = x59 + x62;
  const double x64 = v[0];
  const double x65 = x64 * x38;
  const double x66 = v[1];
  const double x67 = x64 + x66;
  const double x68 = x67 * x50;
  const double x69 = x65 + x68;
  const double x70 = x63 - x69;
  const double x71 = x64 * x17;
  const double x72 = x67 * x48;
  const double x73 = x71 + x72;
  const double x74 = x58 * x4;
  const double x75 = x61 * x13;
  const double x76 = x74 + x75;
  const double x77 = x73 - x76;
  const double x78 = x32 * x77;
  const double x79 = x70 + x78;
  const double x80 = x79 * per_x51;
  const double x81 = -x80;
  dv[1] = x81;
  const double x82 = x48 * x80;
  const double x83 = x82 - x77;
  const double x84 = x83 * per_x13;
  const double x85 = -x84;
  dv[3] = x85;
  const double x86 = 6.692661979812365e-05;
  const double x87 = x86 * per_x13;
  const double x88 = x87 * x87;
  const double x89 = 0.02;
  const double x90 = x89 * x32;
  const double x91 = x90 * x90;
  const double x92 = x88 + x91;
  const double x93 = x86 * per_x51;
  const double x94 = x93 * x93;
  const double x95 = x92 + x94;
  doubt[0] = x95;
}


static int rates(const double *q, const double *v, const double *u, double *qdot,
    double *a) {
  double doubt;
  motion(q, v, u, qdot, a, &doubt);
  return doubt < 1.0;
}

/* x + h y */
static void ahead(const double *x, double h, const double *y, int n, double *result) {
  for (int i = 0; i < n; i++) result[i] = x[i] + h * y[i];
}

static void normalise_all(double *q) {
  (void)q;
}

void holoctl_five_bar_plant_start(double *q, double *v) {
  static const double start[NQ] = {2.19817426997297, -1.4107902986087746, 0.9420498827875916, 1.411344584355277};
  for (int i = 0; i < NQ; i++) q[i] = start[i];
  for (int i = 0; i < NV; i++) v[i] = 0.0;
}

int holoctl_five_bar_plant_step(double *q, double *v, const double *u, double dt) {
  double q1[NQ], v1[NV], qd[4][NQ], a[4][NV], doubt;
  if (!rates(q, v, u, qd[0], a[0])) return 0;
  for (int k = 1; k < 4; k++) {
    const double h = k < 3 ? 0.5 * dt : dt;
    ahead(q, h, qd[k - 1], NQ, q1);
    ahead(v, h, a[k - 1], NV, v1);
    normalise_all(q1);
    if (!rates(q1, v1, u, qd[k], a[k])) return 0;
  }
  for (int i = 0; i < NQ; i++)
    q1[i] = q[i] + dt / 6.0 * (qd[0][i] + 2.0 * (qd[1][i] + qd[2][i]) + qd[3][i]);
  for (int i = 0; i < NV; i++)
    v1[i] = v[i] + dt / 6.0 * (a[0][i] + 2.0 * (a[1][i] + a[2][i]) + a[3][i]);
  normalise_all(q1);
  correction(q1, v1, qd[0], a[0], &doubt); /* one step of Newton's method */
  if (!(doubt < 1.0)) return 0;
  ahead(q1, 1.0, qd[0], NQ, q1);
  ahead(v1, 1.0, a[0], NV, v1);
  normalise_all(q1);
  for (int i = 0; i < NQ; i++)
    if (!isfinite(q1[i])) return 0;
  for (int i = 0; i < NV; i++)
    if (!isfinite(v1[i])) return 0;
  for (int i = 0; i < NQ; i++) q[i] = q1[i];
  for (int i = 0; i < NV; i++) v[i] = v1[i];
  return 1;
}
