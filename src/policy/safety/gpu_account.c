#include "policy/safety/gpu_account.h"

static uint64_t sample_ns(const struct gpu_account_interval *i)
{
	uint64_t most_ns = i->passed_ns > GPU_ACCOUNT_SAMPLE_NS ? i->passed_ns
								: GPU_ACCOUNT_SAMPLE_NS;
	return i->gap_ns && i->gap_ns <= most_ns + most_ns / 2 ? i->gap_ns : GPU_ACCOUNT_SAMPLE_NS;
}

uint64_t gpu_account_ns(const struct gpu_account_interval *i)
{
	uint64_t ns = i->passed_ns;
	if (i->has_samples) {
		/* A task without a sample counts as idle. */
		if (!i->has_sample || !(i->share > 0))
			return 0;
		ns = sample_ns(i);
	} else if (!i->was_present || !i->is_present) {
		return 0;
	}
	ns = ns > i->frozen_ns ? ns - i->frozen_ns : 0;
	return i->has_samples && i->share < 1 ? (uint64_t)(i->share * (double)ns) : ns;
}

double gpu_account_unlisted(double busy, double listed, double tenants, unsigned unlisted)
{
	double rest = busy - listed - tenants;
	return unlisted && rest > GPU_ACCOUNT_NOISE ? rest / unlisted : 0;
}
