#include "daemon/state/elastic_terms.h"

#include <math.h>

#include "base/log.h"

#define LOG_STEP_PCT 5.0 /* percentage points; smaller changes of a limit are not logged */
#define SAME_PCT 0.01

bool elastic_is_on(const struct tenant *tenant)
{
	if (tenant->terms.elastic == ELASTIC_BY_SETTING)
		return tenant->node->config.is_elastic;
	return tenant->terms.elastic == ELASTIC_CHOSEN_ON;
}

void elastic_apply(struct tenant *tenant)
{
	for (unsigned i = 0; i < tenant->terms.device_count; i++) {
		const struct promise *p = &tenant->terms.device[i].promise;
		lessee_set_elastic(tenant->device[i].lessee,
				   elastic_is_on(tenant) && !p->limit_given && p->cores_pct > 0);
	}
}

static const char *explain(enum lend_reason reason)
{
	switch (reason) {
	case LEND_LENT: return "others leave time unused";
	case LEND_RECLAIMED: return "others need their time again";
	case LEND_UNNEEDED: return "it needs no more";
	case LEND_OFF: return "it borrows nothing any more";
	}
	return "?";
}

static void log_device(struct tenant *t, unsigned i)
{
	struct tenant_device *device = &t->device[i];
	double own = tenant_limit_pct(t, i);
	struct lessee_figures f = lessee_figures(device->lessee);
	double before = device->limit_logged_pct > 0 ? device->limit_logged_pct : own;
	/* A return to the tenant's own limit is logged even if the change is small. */
	bool is_end = f.limit_now_pct - own < SAME_PCT && before - own >= SAME_PCT;

	if (fabs(f.limit_now_pct - before) < LOG_STEP_PCT && !is_end)
		return;
	log_info_of(tenant_log_key(&t->terms),
		    "tenant '%s': GPU %u: its limit of GPU time is now %.1f %%, was %.1f %%; "
		    "without lent time it is %g %%: %s (%s)",
		    t->terms.name, t->terms.device[i].card->index, f.limit_now_pct, before, own,
		    lend_reason_name(f.lend_reason), explain(f.lend_reason));
	device->limit_logged_pct = f.limit_now_pct;
}

void elastic_log(struct tenant *tenant)
{
	for (unsigned i = 0; i < tenant->terms.device_count; i++)
		log_device(tenant, i);
}

json_t *elastic_choice_to_json(enum elastic_choice choice)
{
	return choice == ELASTIC_BY_SETTING ? json_null()
					    : json_boolean(choice == ELASTIC_CHOSEN_ON);
}

int elastic_choice_from_json(const json_t *object, enum elastic_choice *ret, struct error *err)
{
	bool is_on;
	int r = json_read_bool(object, "elastic", &is_on, err);
	if (r > 0)
		*ret = is_on ? ELASTIC_CHOSEN_ON : ELASTIC_CHOSEN_OFF;
	return r;
}
