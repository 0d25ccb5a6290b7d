/* Touches so many written pages again and again and nothing else: toucher PAGES ALL [REST [SECONDS]]: of ALL resident
   pages the first PAGES, with REST microseconds of sleep after each turn. Prints its number, and how many pages it touches
   with its own (one of code, one of stack) when ready; until killed, or for SECONDS: then also the microseconds of a
   turn. */
#include "bare.h"

__attribute__((used)) void run(long *stack)
{
	if (stack[0] < 3)
		end(2);
	char **argv = (char **)(stack + 1);
	long pages = number(argv[1]), all = number(argv[2]), rest = stack[0] > 3 ? number(argv[3]) : 0;
	volatile char *m = (char *)call(__NR_mmap, 0, all * PAGE, PROT_RW, PRIVATE_ANONYMOUS, -1, 0);
	if ((long)m < 0 && (long)m > -4096)
		end(2);
	call(__NR_madvise, (long)m, all * PAGE, NO_HUGE_PAGE, 0, 0, 0);
	for (long i = 0; i < all; i++)
		m[i * PAGE] = 1;
	say(call(__NR_getpid, 0, 0, 0, 0, 0, 0) * 1000, ' ');
	say((pages + 2) * 1000, '\n');
	volatile struct timespec pause = { rest / 1000000, rest % 1000000 * 1000 };
	long seconds = stack[0] > 4 ? number(argv[4]) : 0, begun = now(), spent = 0;
	for (long turns = 1; !seconds || spent < seconds * 1000000000L; turns++) {
		for (long i = 0; i < pages; i++)
			(void)m[i * PAGE];
		if (rest)
			call(__NR_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
		if (!seconds)
			continue;
		spent = now() - begun;
		if (spent >= seconds * 1000000000L)
			say(spent / turns, '\n');
	}
	end(0);
}
