/* Arithmetic. Each operation needs the result of the previous one, so that the latency of one
 * operation is measured. The operands are hidden from the compiler. Their values keep all
 * results bounded, because the time of a division depends on its operands. */
#include "micro.h"

#if defined __x86_64__ || defined __i386__
#define IN_REGISTER "x"
#elif defined __aarch64__
#define IN_REGISTER "w"
#elif defined __powerpc64__
#define IN_REGISTER "d"
#else
#define IN_REGISTER "f"
#endif

#define KEEP_INT(x) __asm__ volatile("" : "+r"(x))
#define KEEP_REAL(x) __asm__ volatile("" : "+" IN_REGISTER(x))
#define FOUR(do) do do do do
#define SIXTEEN(do) FOUR(do) FOUR(do) FOUR(do) FOUR(do)

enum { STEPS = 32 }; /* per iteration of the loop: 16 times two operations */

/* A chain alternates between two operations of the same kind, which are inverse to each other. */
#define CHAIN(name, type, keep, first, a0, b0, one, two) \
	static void name(uint64_t reps) \
	{ \
		type x = first, a = a0, b = b0; \
		keep(x); \
		keep(a); \
		keep(b); \
		for (uint64_t n = 0; n < reps; n += STEPS) { \
			SIXTEEN(one; keep(x); two; keep(x);) \
		} \
	}

CHAIN(int_add, int64_t, KEEP_INT, 12345, 77, -77, x = x + a, x = x + b)
CHAIN(int_mul, int64_t, KEEP_INT, 12345, 7, -9, x = x * a, x = x * b)
CHAIN(int_div, int64_t, KEEP_INT, 36, 36 * 37, 36 * 37, x = a / x, x = b / x)
CHAIN(float_add, float, KEEP_REAL, 1.3f, 0.7f, -0.7f, x = x + a, x = x + b)
CHAIN(float_mul, float, KEEP_REAL, 1.3f, 1.7f, 1 / 1.7f, x = x * a, x = x * b)
CHAIN(float_div, float, KEEP_REAL, 1.3f, 1.7f, 1.7f, x = a / x, x = b / x)
CHAIN(double_add, double, KEEP_REAL, 1.3, 0.7, -0.7, x = x + a, x = x + b)
CHAIN(double_mul, double, KEEP_REAL, 1.3, 1.7, 1 / 1.7, x = x * a, x = x * b)
CHAIN(double_div, double, KEEP_REAL, 1.3, 1.7, 1.7, x = a / x, x = b / x)

const measurement sum_all[] = {
	{.name = "int-add", .about = "addition of 64-bit integers", .batch = int_add},
	{.name = "int-mul", .about = "multiplication of 64-bit integers", .batch = int_mul},
	{.name = "int-div", .about = "division of 64-bit integers", .batch = int_div},
	{.name = "float-add", .about = "addition in single precision", .batch = float_add},
	{.name = "float-mul", .about = "multiplication in single precision", .batch = float_mul},
	{.name = "float-div", .about = "division in single precision", .batch = float_div},
	{.name = "double-add", .about = "addition in double precision", .batch = double_add},
	{.name = "double-mul", .about = "multiplication in double precision", .batch = double_mul},
	{.name = "double-div", .about = "division in double precision", .batch = double_div},
	{0},
};
