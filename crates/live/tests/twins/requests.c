/* Requests of the page cache with known pages: requests FILE PAGES MODE READ READS: writes FILE; "cold" drops it from the
   cache and reads it once in order by READ pages, "warm" reads it first and then READS times READ pages at random places.
   Prints the pages requested and the pages that came from the disk, by the kernel's account of this process. */
#include "twin.h"

static long from_disk(void)
{
	char line[128];
	long bytes = 0;
	FILE *io = fopen("/proc/self/io", "r");
	if (!io)
		die("/proc/self/io");
	while (fgets(line, sizeof line, io))
		sscanf(line, "read_bytes: %ld", &bytes);
	fclose(io);
	return bytes / 4096;
}

int main(int argc, char **argv)
{
	long pages = atol(argv[2]), read = atol(argv[4]), reads = atol(argv[5]), requested = 0;
	char *buffer = malloc(read * 4096);
	memset(buffer, 7, read * 4096);
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (fd < 0)
		die(argv[1]);
	for (long page = 0; page < pages; page += read)
		if (pwrite(fd, buffer, read * 4096, page * 4096) < 0)
			die("pwrite");
	fsync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	if (!strcmp(argv[3], "warm"))
		for (long page = 0; page < pages; page += read)
			pread(fd, buffer, read * 4096, page * 4096), requested += read;
	long before = from_disk();
	if (!strcmp(argv[3], "cold"))
		for (long page = 0; page < pages; page += read)
			pread(fd, buffer, read * 4096, page * 4096), requested += read;
	uint64_t random = 88172645463325252ull;
	for (long i = 0; i < reads; i++) {
		random ^= random << 13, random ^= random >> 7, random ^= random << 17;
		pread(fd, buffer, read * 4096, (long)(random % (pages / read)) * read * 4096), requested += read;
	}
	long disk = from_disk() - before;
	if (!strcmp(argv[3], "warm"))
		disk += pages;
	say("requests", requested);
	say("disk", disk);
	return 0;
}
