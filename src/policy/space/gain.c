#include "policy/space/gain.h"

#include <math.h>

#define OTHERS_MAX 64 /* more of a group say no more of it */

static double keep_of(double passed_s, double half_s)
{
	return exp2(-passed_s / half_s);
}

void gain_add_demand(struct gain_record *r, double busy_s, double pause_s, double filled_s)
{
	double keep = keep_of(busy_s + pause_s, GAIN_DEMAND_HALF_S);
	r->busy_s = r->busy_s * keep + busy_s;
	r->pause_s = r->pause_s * keep + pause_s;
	r->filled_s = r->filled_s * keep + filled_s;
}

void gain_add_measured(struct gain_record *r, double done_s, double turns_s, int64_t now_s)
{
	double keep = keep_of(turns_s, GAIN_MEASURED_HALF_S);
	if (turns_s <= 0)
		return;
	/* What is forgotten is no part of what comes. */
	if (now_s - r->measured_at_s > GAIN_MEASURED_FOR_S)
		r->done_s = r->turns_s = 0;
	r->done_s = r->done_s * keep + done_s;
	r->turns_s = r->turns_s * keep + turns_s;
	r->measured_at_s = now_s;
}

bool gain_knows_demand(const struct gain_record *r)
{
	return r->busy_s >= GAIN_DEMAND_KNOWN_S;
}

bool gain_measured(const struct gain_record *r, int64_t now_s, double *ret_gain)
{
	if (r->turns_s < GAIN_MEASURED_KNOWN_S || now_s - r->measured_at_s > GAIN_MEASURED_FOR_S)
		return false;
	*ret_gain = r->done_s / r->turns_s - 1;
	return true;
}

double gain_expected(const struct gain_record *const *records, size_t count)
{
	double busy = 0, filled = 0;
	for (size_t i = 0; i < count; i++) {
		double time_s = records[i]->busy_s + records[i]->pause_s;
		busy += records[i]->busy_s / time_s;
		filled += records[i]->filled_s / time_s;
	}
	return fmax(busy, 1) / fmax(filled, 1) - 1;
}

/* Beside those who are there; false: not known of all. */
static bool expect(const struct gain_record *self, const struct gain_record *const *others,
		   size_t count, double *ret_gain)
{
	const struct gain_record *all[OTHERS_MAX + 1] = { self, self };
	size_t known = 1;
	if (!gain_knows_demand(self))
		return false;
	if (!count) {
		*ret_gain = gain_expected(all, 2);
		return true;
	}
	for (size_t i = 0; i < count && known <= OTHERS_MAX; i++) {
		if (!others[i] || !gain_knows_demand(others[i]))
			return false;
		all[known++] = others[i];
	}
	*ret_gain = gain_expected(all, known);
	return true;
}

struct gain_verdict gain_judge(const struct gain_record *self,
			       const struct gain_record *const *others, size_t count, double least,
			       int64_t now_s)
{
	struct gain_verdict v = { 0 };
	if (gain_measured(self, now_s, &v.gain))
		v.source = GAIN_MEASURED;
	else if (expect(self, others, count, &v.gain))
		v.source = GAIN_EXPECTED;
	else
		return v;
	v.is_enough = v.gain >= (self->takes_turns ? GAIN_AGAIN * least : least);
	return v;
}

const char *gain_source_name(enum gain_source source)
{
	static const char *const names[] = { NULL, "expected", "measured" };
	return names[source];
}
