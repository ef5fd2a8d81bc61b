#include "policy/memory/fade.h"

#include <math.h>

/* The number of half-lives since at_ns, with fractions; 0 if there is no fading, or if the clock went back. */
static double half_lives(const struct fade *f, uint64_t now_ns, uint64_t half_life_ns)
{
	if (!half_life_ns || !f->at_ns || now_ns <= f->at_ns)
		return 0;
	return (double)(now_ns - f->at_ns) / (double)half_life_ns;
}

double fade_use_ns(const struct fade *f, uint64_t now_ns, uint64_t half_life_ns)
{
	return f->use_ns * exp2(-half_lives(f, now_ns, half_life_ns));
}

void fade_add(struct fade *f, uint64_t now_ns, uint64_t used_ns, uint64_t half_life_ns)
{
	double passed = half_lives(f, now_ns, half_life_ns);
	/* Mean of 2^-x for x from 0 to `passed`: the fraction that is left of a use spread over that time. */
	double left = passed > 0 ? -expm1(-passed * M_LN2) / (passed * M_LN2) : 1;

	f->use_ns = fade_use_ns(f, now_ns, half_life_ns) + (double)used_ns * left;
	if (now_ns > f->at_ns)
		f->at_ns = now_ns;
}

struct fade fade_after(double use_ns, uint64_t passed_ns, uint64_t now_ns, uint64_t half_life_ns)
{
	struct fade then = { .use_ns = use_ns, .at_ns = 1 };
	uint64_t end_ns = passed_ns < UINT64_MAX ? passed_ns + 1 : passed_ns;
	return (struct fade){ .use_ns = fade_use_ns(&then, end_ns, half_life_ns), .at_ns = now_ns };
}
