/* The writes and the call of `ksm`: ksm PAGES: of a mapping of which every other page is one of 64 contents, offered to a ksmd that runs:
   pages merged (/proc/self/ksm_merging_pages), nanoseconds of processor time of a write to a merged page, to another one, and of
   MADV_UNMERGEABLE for each page that is merged still. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static long merged(void)
{
	long n = -1;
	FILE *f = fopen("/proc/self/ksm_merging_pages", "r");
	if (f && fscanf(f, "%ld", &n) != 1)
		n = -1;
	if (f)
		fclose(f);
	return n;
}

int main(int argc, char **argv)
{
	long pages = atol(argv[1]), words = 512, equal = pages / 2;
	(void)argc;
	unsigned long *m = mmap(0, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(m, pages * 4096, MADV_NOHUGEPAGE);
	for (long p = 0; p < pages; p++) {
		srandom(p % 2 ? p / 2 % 64 + 1 : 1000 + p);
		for (long w = 0; w < words; w++)
			m[p * words + w] = random();
	}
	madvise(m, pages * 4096, MADV_MERGEABLE);
	for (int i = 0; i < 3000 && merged() < equal; i++)
		usleep(10000);
	printf("%ld\n", merged());
	double t = now();
	for (long p = 1; p < pages; p += 4)
		*(volatile unsigned long *)(m + p * words) = p;
	printf("%.1f\n", (now() - t) / (pages / 4));
	t = now();
	for (long p = 0; p < pages; p += 4)
		*(volatile unsigned long *)(m + p * words) = p;
	printf("%.1f\n", (now() - t) / (pages / 4));
	t = now();
	madvise(m, pages * 4096, MADV_UNMERGEABLE);
	printf("%.1f\n", (now() - t) / (equal - pages / 4));
	return 0;
}
