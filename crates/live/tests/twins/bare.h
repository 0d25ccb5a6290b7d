/* What the twins share that have nothing mapped but what they say, not even a C library: system calls, and figures in
   decimal. To be built with -static -nostdlib -nostartfiles -fno-stack-protector; `run` is the program. */
#include <linux/resource.h>
#include <linux/time.h>
#include <linux/types.h>
#include <asm/unistd.h>

#define PROT_RW 3
#define PRIVATE_ANONYMOUS 0x22
#define NO_HUGE_PAGE 15
#define SIGCHLD 17
#define PAGE 4096L

#include "call.h"

#ifdef __x86_64__
__asm__(".globl _start\n_start: mov %rsp, %rdi\nand $-16, %rsp\ncall run\nhlt");
#else
__asm__(".globl _start\n_start: mov x0, sp\nbl run\nbrk 0");
#endif

static inline __attribute__((always_inline)) void end(int status)
{
	call(__NR_exit_group, status, 0, 0, 0, 0, 0);
	__builtin_unreachable();
}

static inline __attribute__((always_inline)) long now(void)
{
	struct timespec t;
	call(__NR_clock_gettime, 1, (long)&t, 0, 0, 0, 0);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static long number(const char *text)
{
	long value = 0;
	while (*text)
		value = value * 10 + *text++ - '0';
	return value;
}

/* With three decimals. */
static void say(long thousandths, char last)
{
	char text[32];
	int at = sizeof text;
	text[--at] = last;
	for (int digit = 0; digit < 4 || thousandths; digit++) {
		if (digit == 3)
			text[--at] = '.';
		text[--at] = '0' + thousandths % 10;
		thousandths /= 10;
	}
	call(__NR_write, 1, (long)(text + at), sizeof text - at, 0, 0, 0);
}
