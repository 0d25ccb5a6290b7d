/* STREAM's loops (John McCalpin): bandwidth BYTES ROUNDS: bytes a second of copy, scale, add and triad, three arrays of BYTES together, by
   the thread's processor time; the median round. To be compiled with -fno-tree-loop-distribute-patterns, so that copy is a loop. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* An array whose address does not divide by a power of two that the others' divide by. */
static double *array(long n, int which)
{
	char *m = malloc(n * sizeof(double) + (3 << 20));
	if (!m)
		exit(1);
	m += (2 << 20) - (unsigned long)m % (2 << 20);
	madvise(m, n * sizeof(double), MADV_HUGEPAGE);
	return (double *)(m + which * 12345 * 64 % (1 << 19));
}

int main(int argc, char **argv)
{
	long bytes = atol(argv[1]), rounds = atol(argv[2]), n = bytes / 3 / 64 * 8;
	double s = 0.41421356237309503, *times = malloc(4 * rounds * sizeof *times);
	static const int each[] = { 16, 16, 24, 24 };
	(void)argc;
	/* Arrays of the C library's allocator, in the other order, each with a page and some lines that nothing uses. */
	double *restrict c = array(n, 1), *restrict b = array(n, 2), *restrict a = array(n, 3);
	for (long i = 0; i < n; i++)
		a[i] = 1, b[i] = 2, c[i] = 0;
	long passes = ((32L << 20) + 16 * n - 1) / (16 * n);
	for (long r = 0; r < rounds; r++)
		for (int k = 0; k < 4; k++) {
			double t = now();
			for (long p = 0; p < passes; p++) {
				switch (k) {
				case 0: for (long i = 0; i < n; i++) c[i] = a[i]; break;
				case 1: for (long i = 0; i < n; i++) b[i] = s * c[i]; break;
				case 2: for (long i = 0; i < n; i++) c[i] = a[i] + b[i]; break;
				case 3: for (long i = 0; i < n; i++) a[i] = b[i] + s * c[i]; break;
				}
				__asm__ volatile("" ::: "memory");
			}
			times[k * rounds + r] = each[k] * (double)n * passes / (now() - t);
		}
	for (int k = 0; k < 4; k++) {
		qsort(times + k * rounds, rounds, sizeof *times, by_value);
		printf("%.0f\n", times[k * rounds + rounds / 2]);
	}
	return 0;
}
