/* The work of `faultscale`: faultscale WORK AS WORKERS SECONDS PAGES [MAPS]; WORK: anon, map, fork; AS: threads,
   processes. One operation in sixteen is timed, as pagelab's are. To be linked statically: what a C library maps would be in every fork. With MAPS so many mappings of a page
   besides, which children do not get: what those of a larger program cost. */
#include "twin.h"
#include "call.h"
#include <sys/syscall.h>

static const char *work;
static long pages, page, maps;
static volatile int *go, *stop;
static volatile long *made;
/* Times of one thread: as many as pagelab keeps. */
static __thread unsigned times[1 << 14], timed;

static void keep(long begun)
{
	times[timed++ % (1 << 14)] = now() - begun;
}

static long turn(long number)
{
	int phase = number % 16;
	if (work[0] == 'm') {
		for (int i = 0; i < 16; i++) {
			long begun = i == phase ? now() : 0;
			void *m = mmap(0, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
			munmap(m, page);
			if (begun)
				keep(begun);
		}
		return 16;
	}
	if (work[0] == 'f') {
		long begun = phase ? 0 : now();
		pid_t child = call(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0);
		if (child == 0)
			for (;;)
				call(SYS_exit_group, 0, 0, 0, 0, 0, 0);
		waitpid(child, 0, 0);
		if (begun)
			keep(begun);
		return 1;
	}
	volatile char *m = mmap(0, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	madvise((void *)m, pages * page, MADV_NOHUGEPAGE);
	long i;
	for (i = 0; i < pages && (i % 64 || !*stop); i++) {
		long begun = i % 16 == phase ? now() : 0;
		m[i * page] = 1;
		if (begun)
			keep(begun);
	}
	munmap((void *)m, pages * page);
	return i;
}

static void *worker(void *number)
{
	volatile char *populated = 0;
	for (long i = maps; i > 0; i--) {
		/* Neighbours that differ are not merged. */
		char *more = mmap(0, page, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		madvise(more, page, MADV_DONTFORK);
	}
	if (work[0] == 'f') {
		populated = mmap(0, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		madvise((void *)populated, pages * page, MADV_NOHUGEPAGE);
		for (long i = 0; i < pages; i++)
			populated[i * page] = 1;
	}
	while (!*go)
		usleep(100);
	long sum = 0;
	for (long number = 0; !*stop; number++)
		sum += turn(number);
	made[(long)number] = sum;
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 6 && argc != 7)
		return 2;
	work = argv[1];
	int threads = argv[2][0] == 't';
	long workers = atol(argv[3]);
	double seconds = atof(argv[4]);
	pages = atol(argv[5]), page = sysconf(_SC_PAGESIZE);
	char *shared = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	go = (int *)shared, stop = (int *)(shared + 64), made = (long *)(shared + 4096);
	maps = argc > 6 ? atol(argv[6]) : 0;
	pthread_t thread[64];
	/* All of it in a child, whose rusage is the workers'. */
	if (fork() == 0) {
		for (long i = 0; i < workers; i++)
			if (threads)
				pthread_create(&thread[i], 0, worker, (void *)i);
			else if (fork() == 0) {
				worker((void *)i);
				_exit(0);
			}
		usleep(20000);
		long begun = now();
		*go = 1;
		usleep(seconds * 1e6);
		*stop = 1;
		for (long i = 0; i < workers; i++)
			if (threads)
				pthread_join(thread[i], 0);
			else
				wait(0);
		made[workers] = now() - begun;
		_exit(0);
	}
	wait(0);
	struct rusage r;
	getrusage(RUSAGE_CHILDREN, &r);
	long sum = 0;
	for (long i = 0; i < workers; i++)
		sum += made[i];
	say("throughput", sum * 1e9 / made[workers]);
	say("time.elapsed", made[workers]);
	say("time.user", nanoseconds(r.ru_utime));
	say("time.system", nanoseconds(r.ru_stime));
	say("faults.minor", r.ru_minflt);
	return 0;
}
