/* The calls of `unmap`, `mremap` and `populate`: addressing PAGES ROUNDS: nanoseconds of processor time for each page of
   munmap, mprotect, MADV_DONTNEED, mremap to a page off, first writes, and mmap with MAP_POPULATE; the median round. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define SPAN (2L << 20)

static long page, bytes;
static char *reserved;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static char *map(int more)
{
	reserved = mmap(0, 2 * bytes + 4 * SPAN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *m = (char *)(((unsigned long)reserved + SPAN - 1) & ~(SPAN - 1));
	return mmap(m, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED | more, -1, 0);
}

static void touch(char *m)
{
	for (long i = 0; i < bytes; i += page)
		*(volatile long *)(m + i) = i | 1;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	long pages = atol(argv[1]), rounds = atol(argv[2]);
	double *times = malloc(rounds * sizeof *times);
	(void)argc;
	page = sysconf(_SC_PAGESIZE), bytes = pages * page;
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	for (int what = 0; what < 6; what++) {
		for (long round = 0; round < rounds; round++) {
			char *m = map(0);
			if (what < 4)
				touch(m);
			double begun = now();
			switch (what) {
			case 0: munmap(m, bytes); break;
			case 1: mprotect(m, bytes, PROT_READ); break;
			case 2: madvise(m, bytes, MADV_DONTNEED); break;
			case 3: mremap(m, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
				       m + ((bytes + SPAN - 1) & ~(SPAN - 1)) + page); break;
			case 4: touch(m); break;
			case 5: mmap(m, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
				     | MAP_FIXED | MAP_POPULATE, -1, 0); break;
			}
			times[round] = (now() - begun) / pages;
			munmap(reserved, 2 * bytes + 4 * SPAN);
		}
		qsort(times, rounds, sizeof *times, by_value);
		printf("%.2f\n", times[rounds / 2]);
	}
	return 0;
}
