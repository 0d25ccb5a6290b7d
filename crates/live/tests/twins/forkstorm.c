/* The storm of `forkstorm` from a program that has nothing else mapped: forkstorm PAGES TOUCH FORKS prints, of a fork, the
   mean of the caller's processor time in fork(2), that of the clock from its return to the child's end, minor faults and
   processor time; then the medians of fork(2), and of what follows it, by the clock. All times in ns. */
#include "bare.h"

#define SHARED_ANONYMOUS 0x21
#define NOT_IN_CHILDREN 10
/* Of a process's addresses. */
#ifdef __x86_64__
#define END 0x7ffffffff000L
#else
#define END (1L << 48)
#endif

/* Of so many times, which it orders. */
static long median(unsigned *times, long n)
{
	for (long gap = n / 2; gap; gap /= 2)
		for (long i = gap; i < n; i++)
			for (long j = i - gap; j >= 0 && times[j] > times[j + gap]; j -= gap) {
				unsigned swap = times[j];
				times[j] = times[j + gap];
				times[j + gap] = swap;
			}
	return times[n / 2];
}

/* The caller's processor time. */
static inline __attribute__((always_inline)) long processor(void)
{
	struct timespec t;
	call(__NR_clock_gettime, 3, (long)&t, 0, 0, 0, 0);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

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

/* What the storm is told, on its stack: a page of data would be one more to copy. */
struct told {
	long pages, touch, forks, old_stack;
};

/* The storm, on a stack beside the other memory: far from it, it would have page tables of its own, which each fork
   makes anew (0.03 of a fork of 256 pages). */
__attribute__((used)) void storm(struct told *told)
{
	long pages = told->pages, touch = told->touch, forks = told->forks;
	call(__NR_munmap, told->old_stack, END - told->old_stack, 0, 0, 0, 0);
	volatile char *region = (char *)call(__NR_mmap, 0, pages * PAGE, PROT_RW, PRIVATE_ANONYMOUS, -1, 0);
	if ((long)region < 0 && (long)region > -4096)
		end(2);
	call(__NR_madvise, (long)region, pages * PAGE, NO_HUGE_PAGE, 0, 0, 0);
	for (long i = 0; i < pages; i++)
		region[i * PAGE] = 1;
	/* The times, in memory that no child has. */
	long room = (forks * 8 + PAGE - 1) / PAGE * PAGE;
	unsigned *fork_times = (unsigned *)call(__NR_mmap, 0, room, PROT_RW, SHARED_ANONYMOUS, -1, 0), *exit_times = fork_times + forks;
	call(__NR_madvise, (long)fork_times, room, NOT_IN_CHILDREN, 0, 0, 0);
	for (long i = 0; i < 2 * forks; i++)
		((volatile unsigned *)fork_times)[i] = 0;
	long faults_before = 0, cpu_before = 0, faults = 0, cpu = 0, fork_time = 0, exit_time = 0;
	used(RUSAGE_SELF, &faults_before, &cpu_before);
	used(RUSAGE_CHILDREN, &faults_before, &cpu_before);
	for (long n = 0; n < forks; n++) {
		long worked = processor(), start = now(), child = call(__NR_clone, SIGCHLD, 0, 0, 0, 0, 0);
		if (child == 0) {
			volatile char *at = region;
			for (long i = 0; i < touch; i++, at += PAGE)
				*at = 1;
			end(0);
		}
		long forked = now();
		worked = processor() - worked;
		int status = 1;
		if (child < 0 || call(__NR_wait4, child, (long)&status, 0, 0, 0, 0) != child || status)
			end(1);
		long ended = now();
		fork_time += worked;
		exit_time += ended - forked;
		fork_times[n] = forked - start;
		exit_times[n] = ended - forked;
	}
	used(RUSAGE_SELF, &faults, &cpu);
	used(RUSAGE_CHILDREN, &faults, &cpu);
	say(fork_time * 1000 / forks, ' ');
	say(exit_time * 1000 / forks, ' ');
	say((faults - faults_before) * 1000 / forks, ' ');
	say((cpu - cpu_before) * 1000 / forks, ' ');
	say(median(fork_times, forks) * 1000, ' ');
	say(median(exit_times, forks) * 1000, '\n');
	end(0);
}

__attribute__((used)) void run(long *stack)
{
	if (stack[0] != 4)
		end(2);
	char **argv = (char **)(stack + 1);
	long stack_end = call(__NR_mmap, 0, 8 * PAGE, PROT_RW, PRIVATE_ANONYMOUS, -1, 0) + 8 * PAGE;
	struct told *told = (struct told *)(stack_end - 64);
	/* The kernel makes a stack of some 130 KiB; what lies behind it is the kernel's own part of the process. */
	*told = (struct told) { number(argv[1]), number(argv[2]), number(argv[3]), (long)stack / PAGE * PAGE - 33 * PAGE };
#ifdef __x86_64__
	__asm__ volatile("mov %0, %%rsp\n\tmov %0, %%rdi\n\tcall storm" : : "r"(told) : "memory");
#else
	__asm__ volatile("mov sp, %0\n\tmov x0, %0\n\tbl storm" : : "r"(told) : "memory");
#endif
	end(2);
}
