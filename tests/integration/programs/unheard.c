/*
 * Preloaded: futexes as bells would have it worst. UNHEARD=daemon: the kernel can't wait for several words,
 * as before Linux 5.16. UNHEARD=tenant: no wake-up of words that processes share arrives.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#define FUTEX_WAITV_NUMBER 449

static int is_for(const char *whom)
{
	const char *word = getenv("UNHEARD");

	return word && !strcmp(word, whom);
}

long syscall(long number, ...)
{
	static long (*real)(long, ...);
	va_list list;
	long a[6];

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == FUTEX_WAITV_NUMBER && is_for("daemon")) {
		errno = ENOSYS;
		return -1;
	}
	if (number == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAKE &&
	    !(a[1] & FUTEX_PRIVATE_FLAG) && is_for("tenant"))
		return 0;
	if (!real)
		real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
