/* Asks an odd driver (odd_driver.c) what it has: a line for each function, and two calls. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
	static const char *const names[] = { "cuInit", "cuDriverGetVersion", "cuMemAlloc_v2",
					     "cuGetProcAddress_v2", "cuNoSuchFunction" };
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	int version = 0;

	if (!driver) {
		printf("refused: %s\n", dlerror());
		return 1;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		printf("%s %s %s\n", names[i], dlsym(driver, names[i]) ? "there" : "missing",
		       dlsym(RTLD_DEFAULT, names[i]) ? "there" : "missing");
	int (*init)(unsigned int) = (int (*)(unsigned int))dlsym(driver, "cuInit");
	int (*get_version)(int *) = (int (*)(int *))dlsym(driver, "cuDriverGetVersion");

	if (init)
		printf("cuInit %d\n", init(0));
	int result = get_version ? get_version(&version) : -1;
	printf("cuDriverGetVersion %d %d\n", result, version);
	return 0;
}
