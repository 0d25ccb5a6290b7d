/* Touches so many written pages again and again and nothing else: toucher PAGES ALL [REST [SECONDS]]: of ALL resident
   pages the first PAGES, with REST microseconds of sleep after each turn. Prints its number and PAGES when ready; until
   killed, or for SECONDS: then also the microseconds of a turn. Dynamically linked, as most programs: it also uses a few
   pages of its own, and maps pages of libc that other processes use. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096

static long now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000L + time.tv_nsec;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	long pages = atol(argv[1]), all = atol(argv[2]), rest = argc > 3 ? atol(argv[3]) : 0;
	volatile char *m = mmap(NULL, all * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m == MAP_FAILED)
		return 2;
	madvise((void *)m, all * PAGE, MADV_NOHUGEPAGE);
	for (long i = 0; i < all; i++)
		m[i * PAGE] = 1;
	printf("%d %ld\n", (int)getpid(), pages);
	fflush(stdout);
	struct timespec pause = { rest / 1000000, rest % 1000000 * 1000 };
	long seconds = argc > 4 ? atol(argv[4]) : 0, begun = now(), spent = 0;
	for (long turns = 1; !seconds || spent < seconds * 1000000000L; turns++) {
		for (long i = 0; i < pages; i++)
			(void)m[i * PAGE];
		if (rest)
			nanosleep(&pause, NULL);
		if (!seconds)
			continue;
		spent = now() - begun;
		if (spent >= seconds * 1000000000L)
			printf("%.3f\n", spent / 1e3 / turns);
	}
	return 0;
}
