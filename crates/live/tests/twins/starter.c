/* Starts a program and says what it consumed, as the kernel tells whoever waits for it: starter PROGRAM [ARGUMENT]… prints
   the lines "name value". The program's output goes nowhere. This process is small and has touched little, for the kernel
   counts the resident set of whoever executes a program as one of the program's. */
#include "twin.h"

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	int nothing = open("/dev/null", O_RDWR);
	long begun = now();
	pid_t child = vfork();
	if (child == 0) {
		dup2(nothing, 0);
		dup2(nothing, 1);
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	int status;
	struct rusage r;
	if (child < 0 || wait4(child, &status, 0, &r) != child)
		die(argv[1]);
	long elapsed = now() - begun;
	say("time.elapsed", elapsed);
	say("time.user", nanoseconds(r.ru_utime));
	say("time.system", nanoseconds(r.ru_stime));
	say("time.user+system", nanoseconds(r.ru_utime) + nanoseconds(r.ru_stime));
	say("faults.minor", r.ru_minflt);
	say("faults.major", r.ru_majflt);
	say("io.read", r.ru_inblock * 512.0);
	say("switches.voluntary", r.ru_nvcsw);
	say("switches.involuntary", r.ru_nivcsw);
	say("memory.peak", r.ru_maxrss * 1024.0);
	say("command.status", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	return 0;
}
