/* The reads of `fileread`: fileread FILE READ READS SIZE…: for each size, READS reads of READ bytes at random places of
   the file's first bytes, which were read once in order; processor time of a read. */
#include "twin.h"

int main(int argc, char **argv)
{
	static const char *names[] = { "read.cpu.small", "read.cpu.large", "read.cpu.beyond" };
	long read = atol(argv[2]), reads = atol(argv[3]), greatest = atol(argv[argc - 1]);
	char *buffer = malloc(1 << 20);
	memset(buffer, 7, 1 << 20);
	int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		die(argv[1]);
	for (long at = 0; at < greatest; at += 1 << 20)
		if (write(fd, buffer, 1 << 20) < 0)
			die("write");
	fsync(fd);
	struct used all = { .elapsed = 0 };
	begin(&all, RUSAGE_SELF);
	for (int s = 4; s < argc; s++) {
		long size = atol(argv[s]);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		for (long at = 0; at < size; at += 1 << 20)
			if (pread(fd, buffer, 1 << 20, at) < 0)
				die("pread");
		uint64_t random = 88172645463325252ull;
		long before = clock_of(CLOCK_THREAD_CPUTIME_ID);
		for (long i = 0; i < reads; i++) {
			random ^= random << 13, random ^= random >> 7, random ^= random << 17;
			if (pread(fd, buffer, read, random % (size / read) * read) != read)
				die("pread");
		}
		say(names[s - 4], (double)(clock_of(CLOCK_THREAD_CPUTIME_ID) - before) / reads);
	}
	unlink(argv[1]);
	return 0;
}
