/* A program that takes so much longer as a file says: delay TURNS FILE BASE: spins TURNS, and as many hundredths of them
   more as the number in FILE is above BASE. */
#include "twin.h"

int main(int argc, char **argv)
{
	FILE *f = argc == 4 ? fopen(argv[2], "r") : 0;
	long more = 0;
	if (!f || fscanf(f, "%ld", &more) != 1)
		return 2;
	long turns = atol(argv[1]) / 100 * (100 + more - atol(argv[3]));
	for (volatile long i = 0; i < turns; i++)
		;
	return 0;
}
