/* The reads of `vmtest`: vmtest SECONDS SIZE…: one process for each size reads the first byte of every page in turn, each
   read waiting for the one before, for so long; again, five times at most, until a quarter of a second went by in all; the
   fastest. */
#include "twin.h"

int main(int argc, char **argv)
{
	long limit = atof(argv[1]) * 1e9, page = sysconf(_SC_PAGESIZE);
	double first = 0, last = 0, elapsed = 0, user = 0, system = 0;
	for (int s = 2; s < argc; s++) {
		long pages = atol(argv[s]) / page;
		volatile unsigned char *m = mmap(0, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		madvise((void *)m, pages * page, MADV_NOHUGEPAGE);
		for (long i = 0; i < pages; i++)
			m[i * page] = i;
		struct used best = { .elapsed = 0 };
		long made_best = 0, begun = now();
		for (int round = 0; round < 5 && (!round || now() - begun <= 250000000); round++) {
			struct used used;
			unsigned long carry = 0;
			long made = 0, lap = 0;
			begin(&used, RUSAGE_SELF);
			for (; made < lap || now() - used.begun < limit; made += pages) {
				if (made >= lap)
					lap = made + (1 << 18);
				for (long i = 0; i < pages; i++) {
					/* The page's address is ready before: what waits is the read alone, and no addition. */
#ifdef __x86_64__
					__asm__ volatile("movzbl (%1,%0), %k0\n\tshr $8, %0" : "+r"(carry) : "r"(m + i * page) : "memory");
#else
					carry = m[i * page + carry];
					__asm__ volatile("lsr %0, %0, #8" : "+r"(carry));
#endif
				}
			}
			end(&used);
			if (!best.elapsed || (double)made / used.elapsed > (double)made_best / best.elapsed)
				best = used, made_best = made;
		}
		munmap((void *)m, pages * page);
		last = made_best * 1e9 / best.elapsed;
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
