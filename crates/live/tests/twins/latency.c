/* The loads of `latency`: latency L1 L2 L3 MEMORY TLB: chains of dependent loads in random order over every line of
   working sets of so many bytes in huge pages, over one line of each base page of the last; and first touches. The median
   of five rounds each, in processor time of the thread. */
#define _GNU_SOURCE
#include "twin.h"
#include <sched.h>

#define LINE 64L
#define HUGE_PAGE (2L << 20)
#define ROUNDS 5

static long page;
static uint64_t state = 88172645463325252ull;

static uint64_t noise(void)
{
	state ^= state << 13, state ^= state >> 7, state ^= state << 17;
	return state;
}

static double middle(double *times)
{
	for (int i = 1; i < ROUNDS; i++)
		for (int j = i; j > 0 && times[j] < times[j - 1]; j--) {
			double t = times[j];
			times[j] = times[j - 1], times[j - 1] = t;
		}
	return times[ROUNDS / 2];
}

static char *aligned(long bytes, int advice)
{
	char *m = mmap(0, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m == MAP_FAILED)
		die("mmap");
	madvise(m, bytes + HUGE_PAGE, advice);
	return (char *)(((uintptr_t)m + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
}

static double chain(long bytes, int pages, long loads)
{
	char *m = aligned(bytes, pages ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
	long count = pages ? bytes / page : bytes / LINE;
	uint32_t *order = malloc(count * sizeof *order);
	for (long i = 0; i < bytes; i += page)
		m[i] = 1;
	for (long i = 0; i < count; i++)
		order[i] = i;
	for (long i = count - 1; i > 0; i--) {
		long j = noise() % i;
		uint32_t t = order[i];
		order[i] = order[j], order[j] = t;
	}
	/* One cycle through all; of a page the line that its number gives. */
#define AT(n) (m + (pages ? (n) * page + ((n) * 0x9e3779b97f4a7c15ull >> 40) % (page / LINE) * LINE : (n) * LINE))
	for (long i = 0; i < count; i++)
		*(void **)AT((uint64_t)i) = AT((uint64_t)order[i]);
	void *volatile *here = (void *volatile *)AT(0ull);
	for (long i = 0; i < (count < 1 << 20 ? count : 1 << 20); i++)
		here = (void *volatile *)*here;
	double times[ROUNDS];
	for (int round = 0; round < ROUNDS; round++) {
		long before = clock_of(CLOCK_THREAD_CPUTIME_ID);
		for (long i = 0; i < loads / ROUNDS; i += 8) {
			here = (void *volatile *)*here, here = (void *volatile *)*here;
			here = (void *volatile *)*here, here = (void *volatile *)*here;
			here = (void *volatile *)*here, here = (void *volatile *)*here;
			here = (void *volatile *)*here, here = (void *volatile *)*here;
		}
		times[round] = (double)(clock_of(CLOCK_THREAD_CPUTIME_ID) - before) / (loads / ROUNDS);
	}
	free(order);
	munmap(m, bytes);
	return middle(times);
}

static double touches(long size, long count, int advice)
{
	double times[ROUNDS];
	for (int round = 0; round < ROUNDS; round++) {
		char *m = aligned((count + 1) * size, advice);
		long before = clock_of(CLOCK_THREAD_CPUTIME_ID);
		for (long i = 0; i < count; i++)
			((volatile char *)m)[i * size] = 1;
		times[round] = (double)(clock_of(CLOCK_THREAD_CPUTIME_ID) - before) / count;
		munmap(m, (count + 1) * size);
	}
	return middle(times);
}

int main(int argc, char **argv)
{
	static const char *names[] = { "latency.l1", "latency.l2", "latency.l3", "latency.dram", "latency.tlb-miss" };
	cpu_set_t one;
	if (argc != 6)
		return 2;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof one, &one);
	page = sysconf(_SC_PAGESIZE);
	for (int i = 0; i < 5; i++)
		say(names[i], chain(atol(argv[i + 1]), i == 4, 200000));
	long faults = 8192;
	say("latency.minor-fault", touches(page, faults / ROUNDS + 1, MADV_NOHUGEPAGE));
	say("latency.huge-fault", touches(HUGE_PAGE, (faults * page / HUGE_PAGE + ROUNDS - 1) / ROUNDS, MADV_HUGEPAGE));
	say("latency.huge-fault.fresh", touches(HUGE_PAGE, 100, MADV_HUGEPAGE));
	return 0;
}
