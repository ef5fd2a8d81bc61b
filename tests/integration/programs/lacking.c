/*
 * lacking madvise|descriptors|one-descriptor|namespace: starts the driver in a process that lacks something, and
 * prints the result. Ends with 77 where that can't be made here.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* Only the advice that concerns forks: an allocator gives others. */
static int refuse_madvise(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 18, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Descriptors 0 to 2 are in use, and nothing else is by now. */
static int leave_descriptors(rlim_t count)
{
	struct rlimit limit = { 3 + count, 3 + count };

	return setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned int) = NULL;
	int failed = 1;

	if (driver)
		*(void **)&init = dlsym(driver, "cuInit");
	if (!strcmp(what, "madvise"))
		failed = refuse_madvise();
	else if (!strcmp(what, "descriptors"))
		failed = leave_descriptors(0);
	else if (!strcmp(what, "one-descriptor"))
		failed = leave_descriptors(1);
	else if (!strcmp(what, "namespace"))
		failed = unshare(CLONE_NEWUSER);
	if (failed || !init)
		return 77;
	printf("cuInit %d\n", init(0));
	return 0;
}
