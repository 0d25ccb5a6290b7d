/* The reads of `vmtest`: vmtest READS SIZE…: one process for each size reads the first byte of every page in turn, each
   read waiting for the one before, READS times; the fastest of five. */
#include "twin.h"

int main(int argc, char **argv)
{
	long reads = atol(argv[1]), page = sysconf(_SC_PAGESIZE);
	double first = 0, last = 0, elapsed = 0, user = 0, system = 0;
	for (int s = 2; s < argc; s++) {
		long pages = atol(argv[s]) / page;
		volatile unsigned char *m = mmap(0, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		madvise((void *)m, pages * page, MADV_NOHUGEPAGE);
		for (long i = 0; i < pages; i++)
			m[i * page] = i;
		struct used best = { .elapsed = 0 };
		for (int round = 0; round < 5; round++) {
			struct used used;
			unsigned long carry = 0;
			begin(&used, RUSAGE_SELF);
			for (long made = 0; made < reads; made += pages)
				for (long i = 0; i < pages; i++) {
					/* The page's address is ready before: what waits is the read alone, and no addition. */
#ifdef __x86_64__
					__asm__ volatile("movzbl (%1,%0), %k0\n\tshr $8, %0" : "+r"(carry) : "r"(m + i * page) : "memory");
#else
					carry = m[i * page + carry];
					__asm__ volatile("lsr %0, %0, #8" : "+r"(carry));
#endif
				}
			end(&used);
			if (!best.elapsed || used.elapsed < best.elapsed)
				best = used;
		}
		munmap((void *)m, pages * page);
		long made = (reads + pages - 1) / pages * pages;
		last = made * 1e9 / best.elapsed;
		if (s == 2)
			first = last;
		elapsed += best.elapsed;
		user += nanoseconds(best.after.ru_utime) - nanoseconds(best.before.ru_utime);
		system += nanoseconds(best.after.ru_stime) - nanoseconds(best.before.ru_stime);
	}
	say("speed.first", first);
	say("speed.last", last);
	say("time.elapsed", elapsed);
	say("time.user", user);
	say("time.system", system);
	return 0;
}
