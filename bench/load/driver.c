#include "driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	size_t offset;
	const char *symbol;
} rows[] = {
#define X(member, symbol, params) { offsetof(struct driver, member), symbol },
	DRIVER_ROWS(X)
#undef X
};

#define ROW_COUNT (sizeof rows / sizeof rows[0])

void driver_open(struct driver *d)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (lib == NULL) {
		fprintf(stderr, "%s: dlopen: %s\n", program_invocation_short_name, dlerror());
		exit(1);
	}
	memset(d, 0, sizeof *d);
	for (size_t i = 0; i < ROW_COUNT; i++) {
		/* memcpy: ISO C has no conversion from an object to a function pointer. */
		void *address = dlsym(lib, rows[i].symbol);
		memcpy((char *)d + rows[i].offset, &address, sizeof address);
	}

	DRIVER_DO(d, init, 0);
	DRIVER_DO(d, device_get, &d->dev, 0);
	DRIVER_DO(d, primary_retain, &d->ctx, d->dev);
	DRIVER_DO(d, ctx_set, d->ctx);
}

void driver_close(struct driver *d)
{
	DRIVER_DO(d, ctx_set, NULL);
	DRIVER_DO(d, primary_release, d->dev);
}

const char *driver_error_name(const struct driver *d, CUresult r)
{
	static char number[32];
	const char *name = NULL;
	if (d->error_name != NULL && d->error_name(r, &name) == CUDA_SUCCESS && name != NULL)
		return name;
	snprintf(number, sizeof number, "CUresult %d", (int)r);
	return number;
}

static const char *symbol_of(size_t member_offset)
{
	for (size_t i = 0; i < ROW_COUNT; i++)
		if (rows[i].offset == member_offset)
			return rows[i].symbol;
	return "?";
}

void driver_check(const struct driver *d, CUresult r, size_t member_offset)
{
	if (r == CUDA_SUCCESS)
		return;
	fflush(stdout); /* the reports so far come first */
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, symbol_of(member_offset),
		driver_error_name(d, r));
	exit(1);
}

void driver_need(const struct driver *d, size_t member_offset)
{
	void *address;
	memcpy(&address, (const char *)d + member_offset, sizeof address);
	if (address != NULL)
		return;
	fflush(stdout);
	fprintf(stderr, "%s: %s: not in this libcuda.so.1\n", program_invocation_short_name,
		symbol_of(member_offset));
	exit(1);
}
