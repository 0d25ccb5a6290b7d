/* The load of `mapanon` and `mapfile`: paging PAGES TOUCH STREAM [FILE]
   STREAM has one page number a line. TOUCH: page, word, write. Without FILE anonymous memory, each page written first;
   with it a file, made, brought to the disk and dropped from the page cache. Three passes over the stream, each on memory
   of its own: bare (prefix "bare."), waiting until each reference is done ("waited."), and timed (every reference between
   two readings of the clock). Of a file the timed one alone: on a disk that is told of blocks that become free (mount's
   discard), the reads of a file would wait for the discard of the one made before it. Of anonymous memory
   nothing is asked of the kernel while references are made: the hits are all references but the longest, as many as there
   were faults. Of a file the longest reference need not be a major fault, for a minor one waits where the disk is still
   reading: there the kernel is asked behind each reference of a microsecond or more, in no reference's time. */
#include "twin.h"
#ifdef __x86_64__
#include <x86intrin.h>
static inline void wait_for_it(void)
{
	_mm_lfence();
}

static inline uint64_t ticks(void)
{
	wait_for_it();
	return __rdtsc();
}
#else
static inline void wait_for_it(void)
{
	__asm__ volatile("dsb ld" : : : "memory");
}

static inline uint64_t ticks(void)
{
	return now();
}
#endif

typedef uint64_t words __attribute__((vector_size(16)));
static long pages, references, page;
static uint32_t *stream;
static const char *file;
static char touch;
static double per_tick;
static unsigned char *kinds;

static volatile char *map(void)
{
	volatile char *m;
	if (file) {
		int fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);
		long chunk = 1 << 20, bytes = pages * page;
		char *content = malloc(chunk);
		if (fd < 0)
			die(file);
		for (long at = 0; at < bytes; at += chunk) {
			long length = bytes - at < chunk ? bytes - at : chunk;
			memset(content, 'a' + at / chunk % 23, chunk);
			if (write(fd, content, length) != length)
				die(file);
		}
		free(content);
		fsync(fd);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		m = mmap(0, pages * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
		if (m == MAP_FAILED)
			die("mmap");
		return m;
	}
	m = mmap(0, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m == MAP_FAILED)
		die("mmap");
	madvise((void *)m, pages * page, MADV_NOHUGEPAGE);
	/* Half of each page is noise, as it is at pagelab's, so that a compressor has as much to do. */
	uint64_t noise = 88172645463325252ull;
	for (long i = 0; i < pages; i++) {
		uint64_t *content = (uint64_t *)(m + i * page);
		for (long w = 0; w < page / 16; w++) {
			noise ^= noise << 13, noise ^= noise >> 7, noise ^= noise << 17;
			content[w] = noise;
		}
		for (long w = page / 16; w < page / 8; w++)
			content[w] = i;
	}
	return m;
}

static inline __attribute__((always_inline)) void reference(volatile char *m, uint32_t number, char how)
{
	volatile char *at = m + (long)number * page;
	if (how == 'p') {
		/* Four sums of the widest registers that every processor of this kind has: as fast as the loads allow. */
		const words *from = (const words *)at;
		words a = { 0 }, b = a, c = a, d = a;
		for (long w = 0; w < page / (long)sizeof *from; w += 4)
			a += from[w], b += from[w + 1], c += from[w + 2], d += from[w + 3];
		a += b + c + d;
		__asm__ volatile("" : : "x"(a) : "memory");
	} else if (how == 'w')
		(void)*(volatile uint64_t *)at;
	else
		*(volatile uint64_t *)at = (uint64_t)at;
}

/* What the last reference met: 0 a hit, 1 a minor fault, 2 a major one. */
static unsigned char kind(struct rusage *last)
{
	struct rusage now;
	getrusage(RUSAGE_THREAD, &now);
	unsigned char met = now.ru_majflt > last->ru_majflt ? 2 : now.ru_minflt > last->ru_minflt;
	*last = now;
	return met;
}

static inline __attribute__((always_inline)) void load(volatile char *m, int pass, uint32_t *times, char how)
{
	struct rusage last;
	getrusage(RUSAGE_THREAD, &last);
	uint64_t before = ticks();
	for (long i = 0; i < references; i++) {
		reference(m, stream[i], how);
		if (pass == 1)
			wait_for_it();
		if (pass == 2) {
			uint64_t after = ticks();
			times[i] = (after - before) * per_tick > UINT32_MAX ? UINT32_MAX : (after - before) * per_tick;
			before = after;
			if (kinds && times[i] >= 1000) {
				kinds[i] = kind(&last);
				before = ticks();
			}
		}
	}
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	pages = atol(argv[1]), touch = argv[2][0] == 'w' && argv[2][1] == 'r' ? 'W' : argv[2][0];
	file = argc > 4 ? argv[4] : 0, page = sysconf(_SC_PAGESIZE);
	FILE *f = fopen(argv[3], "r");
	if (!f)
		die(argv[3]);
	long room = 1 << 16;
	stream = malloc(room * sizeof *stream);
	while (fscanf(f, "%u", &stream[references]) == 1)
		if (++references == room)
			stream = realloc(stream, (room *= 2) * sizeof *stream);
	uint32_t *times = malloc(references * sizeof *times);
	memset(times, 1, references * sizeof *times);
	kinds = file ? calloc(references, 1) : 0;
	for (long i = 0; kinds && i < references; i++)
		((volatile unsigned char *)kinds)[i] = 0;
	long start = clock_of(CLOCK_MONOTONIC_RAW), t = ticks();
	usleep(100000);
	per_tick = (double)(clock_of(CLOCK_MONOTONIC_RAW) - start) / (ticks() - t);
	for (int pass = file ? 2 : 0; pass < 3; pass++) {
		volatile char *m = map();
		struct used used;
		begin(&used, RUSAGE_THREAD);
		if (touch == 'p')
			load(m, pass, times, 'p');
		else if (touch == 'w')
			load(m, pass, times, 'w');
		else
			load(m, pass, times, 'W');
		end(&used);
		if (pass < 2) {
			say(pass ? "waited.cpu" : "bare.cpu", used.cpu);
			munmap((void *)m, pages * page);
			continue;
		}
		say_used(&used);
		unsigned char *present = malloc(pages);
		long in = 0;
		if (mincore((void *)m, pages * page, present) == 0)
			for (long i = 0; i < pages; i++)
				in += present[i] & 1;
		say("pages.present", in);
		/* By kind, one behind the other. */
		long major = used.after.ru_majflt - used.before.ru_majflt, minor = used.after.ru_minflt - used.before.ru_minflt;
		long hits = references - major - minor;
		if (kinds) {
			uint32_t *of_kind = malloc(references * sizeof *times);
			long each[3] = { 0 }, at = 0;
			for (int k = 0; k < 3; k++)
				for (long i = 0; i < references; i++)
					if (kinds[i] == k)
						of_kind[at++] = times[i], each[k]++;
			hits = each[0], major = each[2];
			memcpy(times, of_kind, references * sizeof *times);
			free(of_kind);
			say_times("access.hit", times, hits, "m59");
			say_times("access.minor", times + hits, references - hits - major, "m59");
			say_times("access.major", times + references - major, major, "m59");
		}
		say_times("access", times, references, "m59tx");
		if (kinds)
			continue;
		/* In order now. */
		if (hits < 0)
			hits = 0;
		say_times("access.hit", times, hits, "m59");
		say_times("access.minor", times + hits, references - hits - major, "m59");
		say_times("access.major", times + references - major, major, "m59");
	}
	if (file)
		unlink(file);
	return 0;
}
