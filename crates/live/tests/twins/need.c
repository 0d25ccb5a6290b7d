/* Needs so much memory and no more: need MIB ROUNDS ORDER [COLD [LEAK]]: writes each page of MIB in ROUNDS rounds, in the
   order of the pages (0), backwards (1), or in one that looks random (2: a stride that shares no factor with their
   number). Before that it writes COLD MiB once; after each round it writes LEAK new pages once. */
#include "bare.h"

static volatile char *map(long pages)
{
	volatile char *m = (char *)call(__NR_mmap, 0, pages * PAGE, PROT_RW, PRIVATE_ANONYMOUS, -1, 0);
	if ((long)m < 0 && (long)m > -4096)
		end(2);
	call(__NR_madvise, (long)m, pages * PAGE, NO_HUGE_PAGE, 0, 0, 0);
	return m;
}

static void write_once(long pages)
{
	if (!pages)
		return;
	volatile char *m = map(pages);
	for (long page = 0; page < pages; page++)
		m[page * PAGE] = 1;
}

__attribute__((used)) void run(long *stack)
{
	if (stack[0] < 4)
		end(2);
	char **argv = (char **)(stack + 1);
	long pages = number(argv[1]) * (1048576 / PAGE), rounds = number(argv[2]), order = number(argv[3]);
	long leak = stack[0] > 5 ? number(argv[5]) : 0;
	write_once(stack[0] > 4 ? number(argv[4]) * (1048576 / PAGE) : 0);
	volatile char *m = map(pages);
	/* A prime that divides no number of pages below 4 GiB. */
	long stride = order == 0 ? 1 : order == 1 ? pages - 1 : 1000003 % pages;
	for (long round = 0; round < rounds; round++) {
		for (long i = 0, at = 0; i < pages; i++, at = (at + stride) % pages)
			for (long byte = 0; byte < PAGE; byte += 64)
				m[at * PAGE + byte] = (char)round;
		write_once(leak);
	}
	end(0);
}
