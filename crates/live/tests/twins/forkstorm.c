/* The storm of `forkstorm`, without anything of pagelab's: forkstorm PAGES TOUCH FORKS prints the mean nanoseconds of a
   fork, those from fork's return to the child's end, and the minor faults and processor time (ns) of a fork. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static struct rusage own, children;

static void account(void)
{
	getrusage(RUSAGE_SELF, &own);
	getrusage(RUSAGE_CHILDREN, &children);
}

static long faults(void)
{
	return own.ru_minflt + children.ru_minflt;
}

static double nanoseconds(struct timeval t)
{
	return t.tv_sec * 1e9 + t.tv_usec * 1e3;
}

static double processor(void)
{
	return nanoseconds(own.ru_utime) + nanoseconds(own.ru_stime) + nanoseconds(children.ru_utime) +
	       nanoseconds(children.ru_stime);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	long pages = atol(argv[1]), touch = atol(argv[2]), forks = atol(argv[3]), page = sysconf(_SC_PAGESIZE);
	volatile char *region = mmap(0, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (region == MAP_FAILED)
		return 2;
	madvise((void *)region, pages * page, MADV_NOHUGEPAGE);
	for (long i = 0; i < pages; i++)
		region[i * page] = 1;
	account();
	long fork_time = 0, exit_time = 0, faults_before = faults();
	double processor_before = processor();
	for (long n = 0; n < forks; n++) {
		long start = now();
		pid_t child = fork();
		if (child == 0) {
			for (long i = 0; i < touch; i++)
				region[i * page] = 1;
			_exit(0);
		}
		long forked = now();
		int status;
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			return 1;
		fork_time += forked - start;
		exit_time += now() - forked;
	}
	account();
	printf("%f %f %f %f\n", (double)fork_time / forks, (double)exit_time / forks,
	       (double)(faults() - faults_before) / forks, (processor() - processor_before) / forks);
	return 0;
}
