/* The storm of `forkstorm` from a program that has nothing else mapped: forkstorm PAGES TOUCH FORKS prints the mean
   nanoseconds of a fork, those from fork's return to the child's end, and the minor faults and processor time (ns) of a
   fork. */
#include "bare.h"

static void used(int who, long *faults, long *cpu)
{
	struct rusage u;
	/* Brings the running task's own times up to date: clock 3 is that of the thread. */
	struct timespec t;
	call(__NR_clock_gettime, 3, (long)&t, 0, 0, 0, 0);
	call(__NR_getrusage, who, (long)&u, 0, 0, 0, 0);
	*faults += u.ru_minflt;
	*cpu += (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000L + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000L;
}

__attribute__((used)) void run(long *stack)
{
	if (stack[0] != 4)
		end(2);
	char **argv = (char **)(stack + 1);
	long pages = number(argv[1]), touch = number(argv[2]), forks = number(argv[3]);
	volatile char *region = (char *)call(__NR_mmap, 0, pages * PAGE, PROT_RW, PRIVATE_ANONYMOUS, -1, 0);
	if ((long)region < 0 && (long)region > -4096)
		end(2);
	call(__NR_madvise, (long)region, pages * PAGE, NO_HUGE_PAGE, 0, 0, 0);
	for (long i = 0; i < pages; i++)
		region[i * PAGE] = 1;
	long faults_before = 0, cpu_before = 0, faults = 0, cpu = 0, fork_time = 0, exit_time = 0;
	used(RUSAGE_SELF, &faults_before, &cpu_before);
	used(RUSAGE_CHILDREN, &faults_before, &cpu_before);
	for (long n = 0; n < forks; n++) {
		long start = now(), child = call(__NR_clone, SIGCHLD, 0, 0, 0, 0, 0);
		if (child == 0) {
			volatile char *at = region;
			for (long i = 0; i < touch; i++, at += PAGE)
				*at = 1;
			end(0);
		}
		long forked = now();
		int status = 1;
		if (child < 0 || call(__NR_wait4, child, (long)&status, 0, 0, 0, 0) != child || status)
			end(1);
		fork_time += forked - start;
		exit_time += now() - forked;
	}
	used(RUSAGE_SELF, &faults, &cpu);
	used(RUSAGE_CHILDREN, &faults, &cpu);
	say(fork_time * 1000 / forks, ' ');
	say(exit_time * 1000 / forks, ' ');
	say((faults - faults_before) * 1000 / forks, ' ');
	say((cpu - cpu_before) * 1000 / forks, '\n');
	end(0);
}
