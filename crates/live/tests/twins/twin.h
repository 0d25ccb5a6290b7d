/* What the twins share: clocks, rusage, quantiles, and the lines "name value" that they print. No code of pagelab's. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static inline long clock_of(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static inline long now(void)
{
	return clock_of(CLOCK_MONOTONIC);
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void say(const char *name, double value)
{
	printf("%s %.9g\n", name, value);
}

static double nanoseconds(struct timeval t)
{
	return t.tv_sec * 1e9 + t.tv_usec * 1e3;
}

/* What a load consumed: begin it, end it, print it. */
struct used {
	struct rusage before, after;
	int who;
	long begun, elapsed, cpu;
};

static void begin(struct used *u, int who)
{
	u->who = who;
	u->cpu = clock_of(CLOCK_THREAD_CPUTIME_ID);
	getrusage(who, &u->before);
	u->begun = now();
}

static void end(struct used *u)
{
	u->elapsed = now() - u->begun;
	u->cpu = clock_of(CLOCK_THREAD_CPUTIME_ID) - u->cpu;
	getrusage(u->who, &u->after);
}

static void say_used(const struct used *u)
{
	const struct rusage *a = &u->before, *b = &u->after;
	say("time.elapsed", u->elapsed);
	say("time.user", nanoseconds(b->ru_utime) - nanoseconds(a->ru_utime));
	say("time.system", nanoseconds(b->ru_stime) - nanoseconds(a->ru_stime));
	say("faults.minor", b->ru_minflt - a->ru_minflt);
	say("faults.major", b->ru_majflt - a->ru_majflt);
	say("switches.voluntary", b->ru_nvcsw - a->ru_nvcsw);
	say("switches.involuntary", b->ru_nivcsw - a->ru_nivcsw);
	say("io.read", (b->ru_inblock - a->ru_inblock) * 512.0);
}

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

/* Mean and quantiles of sorted times. */
static void say_times(const char *prefix, uint32_t *times, long n, const char *which)
{
	char name[64];
	double sum = 0;
	if (!n)
		return;
	qsort(times, n, sizeof *times, ascending);
	for (long i = 0; i < n; i++)
		sum += times[i];
	for (const char *w = which; *w; w++) {
		double value = *w == 'm' ? sum / n : *w == '5' ? times[(n - 1) / 2] : *w == '9' ? times[(long)(0.99 * (n - 1))] :
			       *w == 't' ? times[(long)(0.999 * (n - 1))] : times[n - 1];
		const char *last = *w == 'm' ? "mean" : *w == '5' ? "p50" : *w == '9' ? "p99" : *w == 't' ? "p999" : "max";
		snprintf(name, sizeof name, "%s.%s", prefix, last);
		say(name, value);
	}
}
