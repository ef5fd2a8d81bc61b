/*
 * A libcuda.so.1 that is not as the library knows it; the rest of the driver is not there at all.
 *
 *     -DINIT=N      cuInit answers N
 *     -DVERSION=N   cuDriverGetVersion answers N
 */
#include <stddef.h>
#include <string.h>

#define API __attribute__((visibility("default")))

#ifndef INIT
#define INIT 0
#endif
#ifndef VERSION
#define VERSION 12080
#endif

API int cuInit(unsigned int flags);
API int cuInit(unsigned int flags)
{
	return INIT;
}

API int cuDriverGetVersion(int *version);
API int cuDriverGetVersion(int *version)
{
	*version = VERSION;
	return 0;
}

API int cuDeviceGetUuid(void *uuid, int device);
API int cuDeviceGetUuid(void *uuid, int device)
{
	memset(uuid, 0, 16);
	return 0;
}
