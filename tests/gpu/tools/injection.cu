/*
 * A library for CUDA_INJECTION64_PATH, as instrumentation tools are: the driver loads it into the program
 * and calls InitializeInjection(). It counts the launches that CUPTI calls it back for, and at the end
 * prints them on standard error.
 */
#include <cstdio>
#include <cstdlib>
#include <cupti.h>

static unsigned launches;

static void CUPTIAPI called(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *info)
{
	const CUpti_CallbackData *call = (const CUpti_CallbackData *)info;

	if (call->callbackSite == CUPTI_API_ENTER &&
	    (id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel || id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx))
		launches++;
}

static void report()
{
	fprintf(stderr, "injection saw %u launches\n", launches);
}

extern "C" int InitializeInjection(void)
{
	CUpti_SubscriberHandle subscriber;

	if (cuptiSubscribe(&subscriber, called, NULL) != CUPTI_SUCCESS ||
	    cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API) != CUPTI_SUCCESS)
		return 0;
	atexit(report);
	return 1;
}
