/* Looks symbols up in the ways that a hooked dlsym could break; prints what it found. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *in_a_thread(void *name)
{
	return dlsym(RTLD_DEFAULT, name);
}

static double cosine_of(void *library)
{
	double (*cosine)(double) = library ? (double (*)(double))dlsym(library, "cos") : NULL;

	return cosine ? cosine(0) : -1.0;
}

int main(void)
{
	void *libm = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
	double (*cosine)(double) = (double (*)(double))dlsym(libm, "cos");
	pid_t (*pid)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "getpid");
	void *found = NULL;
	pthread_t thread;

	printf("cos(0) = %g\n", cosine ? cosine(0) : -1.0);
	printf("RTLD_NEXT getpid %s\n", pid && pid() == getpid() ? "works" : "fails");
	printf("RTLD_DEFAULT dlsym %s\n", dlsym(RTLD_DEFAULT, "dlsym") ? "there" : "missing");
	printf("no such symbol: %s\n", dlsym(RTLD_DEFAULT, "no_such_symbol") ? "there" : "missing");
	printf("dlerror %s\n", dlerror() ? "says so" : "is silent");
	printf("dlvsym %s\n", dlvsym(libm, "cos", "GLIBC_2.2.5") ? "there" : "missing");
	printf("no driver: %s\n", dlsym(libm, "cuInit") ? "there" : "missing");
	pthread_create(&thread, NULL, in_a_thread, "malloc");
	pthread_join(thread, &found);
	printf("in a thread: %s\n", found ? "there" : "missing");
	printf("dlsym of libc's own: %s\n",
	       dlsym(dlopen("libdl.so.2", RTLD_NOW), "dlsym") ? "there" : "missing");
	printf("alone in a namespace: cos(0) = %g\n",
	       cosine_of(dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW)));
	printf("bound to itself: cos(0) = %g\n",
	       cosine_of(dlopen("libm.so.6", RTLD_NOW | RTLD_DEEPBIND)));
	printf("no such library: %s\n",
	       dlopen("no-such-library.so", RTLD_NOW) ? "there" : dlerror());
	return dlclose(libm);
}
