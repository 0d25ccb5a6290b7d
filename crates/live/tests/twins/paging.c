/* The load of `mapanon` and `mapfile`: paging PAGES TOUCH STREAM [FILE]
   STREAM has one page number a line. TOUCH: page, word, write. Without FILE anonymous memory, each page written first;
   with it a file, made, brought to the disk and dropped from the page cache. Three passes over the stream, each on memory
   of its own: bare (times of all, faults), timed (every reference between two readings of the clock), and classified
   (getrusage(2) after every reference, in no reference's time). */
#include "twin.h"
#ifdef __x86_64__
#include <x86intrin.h>
static inline uint64_t ticks(void)
{
	_mm_lfence();
	return __rdtsc();
}
#else
static inline uint64_t ticks(void)
{
	return now();
}
#endif

static long pages, references, page;
static uint32_t *stream;
static const char *file;
static char touch;
static double per_tick;

static volatile char *map(void)
{
	volatile char *m;
	if (file) {
		int fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);
		char *content = malloc(page);
		if (fd < 0)
			die(file);
		for (long i = 0; i < pages; i++) {
			memset(content, 'a' + i % 23, page);
			memcpy(content, &i, sizeof i);
			if (write(fd, content, page) != page)
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
		uint64_t *words = (uint64_t *)(m + i * page);
		for (long w = 0; w < page / 16; w++) {
			noise ^= noise << 13, noise ^= noise >> 7, noise ^= noise << 17;
			words[w] = noise;
		}
		for (long w = page / 16; w < page / 8; w++)
			words[w] = i;
	}
	return m;
}

static inline __attribute__((always_inline)) void reference(volatile char *m, uint32_t number, char how)
{
	volatile char *at = m + (long)number * page;
	if (how == 'p') {
		const uint64_t *words = (const uint64_t *)at;
		uint64_t sum = 0;
		for (long w = 0; w < page / 8; w++)
			sum += words[w];
		__asm__ volatile("" : : "r"(sum) : "memory");
	} else if (how == 'w')
		(void)*(volatile uint64_t *)at;
	else
		*(volatile uint64_t *)at = (uint64_t)at;
}

static inline __attribute__((always_inline)) void load(volatile char *m, int pass, uint32_t *times, char *kinds, char how)
{
	struct rusage last, r;
	getrusage(RUSAGE_THREAD, &last);
	uint64_t before = ticks();
	for (long i = 0; i < references; i++) {
		reference(m, stream[i], how);
		if (pass == 0)
			continue;
		uint64_t after = ticks();
		times[i] = (after - before) * per_tick > UINT32_MAX ? UINT32_MAX : (after - before) * per_tick;
		before = after;
		if (pass == 2) {
			getrusage(RUSAGE_THREAD, &r);
			kinds[i] = r.ru_majflt > last.ru_majflt ? 2 : r.ru_minflt > last.ru_minflt ? 1 : 0;
			last = r;
			before = ticks();
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
	uint32_t *times = malloc(references * sizeof *times), *kind = malloc(references * sizeof *kind);
	char *kinds = calloc(references, 1);
	memset(times, 1, references * sizeof *times), memset(kind, 1, references * sizeof *kind), memset(kinds, 0, references);
	long start = clock_of(CLOCK_MONOTONIC_RAW), t = ticks();
	usleep(100000);
	per_tick = (double)(clock_of(CLOCK_MONOTONIC_RAW) - start) / (ticks() - t);
	for (int pass = 0; pass < 3; pass++) {
		volatile char *m = map();
		struct used used;
		begin(&used, RUSAGE_THREAD);
		if (touch == 'p')
			load(m, pass, times, kinds, 'p');
		else if (touch == 'w')
			load(m, pass, times, kinds, 'w');
		else
			load(m, pass, times, kinds, 'W');
		end(&used);
		if (pass == 0) {
			say_used(&used);
			unsigned char *present = malloc(pages);
			long in = 0;
			if (mincore((void *)m, pages * page, present) == 0)
				for (long i = 0; i < pages; i++)
					in += present[i] & 1;
			say("pages.present", in);
			free(present);
		}
		munmap((void *)m, pages * page);
		if (pass == 1) {
			memcpy(kind, times, references * sizeof *times);
			say_times("access", kind, references, "m59tx");
		}
		if (pass == 2)
			for (int k = 0; k < 3; k++) {
				long n = 0;
				for (long i = 0; i < references; i++)
					if (kinds[i] == k)
						kind[n++] = times[i];
				say_times(k == 0 ? "access.hit" : k == 1 ? "access.minor" : "access.major", kind, n, "m59");
			}
	}
	if (file)
		unlink(file);
	return 0;
}
