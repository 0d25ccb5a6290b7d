/* Touches so many written pages again and again: toucher PAGES ALL [REST]: of ALL resident pages the first PAGES, with
   REST microseconds of sleep after each turn. Prints its number when ready; until killed. */
#include "twin.h"

int main(int argc, char **argv)
{
	long pages = atol(argv[1]), all = atol(argv[2]), rest = argc > 3 ? atol(argv[3]) : 0, page = sysconf(_SC_PAGESIZE);
	volatile char *m = mmap(0, all * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise((void *)m, all * page, MADV_NOHUGEPAGE);
	for (long i = 0; i < all; i++)
		m[i * page] = 1;
	volatile unsigned long *turns = mmap(0, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	printf("%d\n", getpid());
	fflush(stdout);
	for (;;) {
		for (long i = 0; i < pages; i++)
			(void)m[i * page];
		++*turns;
		if (rest)
			usleep(rest);
	}
}
