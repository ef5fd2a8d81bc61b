#include "policy/space/sharing_mode.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

const char *sharing_way_name(enum sharing_way way)
{
	return way == SHARING_SPACE ? "space" : "time";
}

/* A context without an SM cannot run anything. */
static int check_sms(const struct sharing_facts *f, struct error *err)
{
	double least_pct = ceil(10000.0 / f->sms) / 100;
	if (f->limit_pct * f->sms >= 100)
		return 0;
	return error_set(
		err, EINVAL,
		"sharing: 'space': cores_limit_pct (--cores-limit) %g %% of %u SMs is less than one "
		"SM: must be %g %% or more",
		f->limit_pct, f->sms, least_pct);
}

static int check_space(const struct sharing_facts *f, struct error *err)
{
	if (!f->has_leases)
		return error_set(
			err, EINVAL,
			"sharing: 'space': needs the daemon's setting policy = lease: change the "
			"setting, or use sharing 'time'");
	if (f->device_count > 1)
		return error_set(
			err, EINVAL,
			"sharing: 'space': the tenant has %u GPUs, and a client of MPS can use "
			"only one: ask for one GPU, or for sharing 'time'",
			f->device_count);
	if (f->is_movable)
		return error_set(err, EINVAL,
				 "sharing: 'space': memory of MPS clients can't be moved off the "
				 "GPU: use on_full 'fail' or 'wait', or sharing 'time'");
	if (f->sms && check_sms(f, err) < 0)
		return -EINVAL;
	if (!f->sms && f->limit_pct < SPACE_LIMIT_MIN_PCT)
		return error_set(
			err, EINVAL,
			"sharing: 'space': cores_limit_pct (--cores-limit) %g could be less than "
			"one SM of this GPU, whose number of SMs is unknown: must be %g or more",
			f->limit_pct, SPACE_LIMIT_MIN_PCT);
	if (f->missing)
		return error_set(err, EOPNOTSUPP, "sharing: 'space': %s; or use sharing 'time'",
				 f->missing);
	return 0;
}

/* A name made of a namespace or a uid contains '/'. A name that a user gives never does, so the two cannot be equal. */
static void name_group(const char *given, const struct sharing_facts *f, char group[SPACE_GROUP_MAX])
{
	if (*f->namespace_name)
		snprintf(group, SPACE_GROUP_MAX, "namespace/%.64s%s%.63s", f->namespace_name,
			 *given ? "/" : "", given);
	else if (*given)
		snprintf(group, SPACE_GROUP_MAX, "%s", given);
	else
		snprintf(group, SPACE_GROUP_MAX, "user/%u", (unsigned)f->uid);
}

int sharing_choose(const struct sharing_request *request, const struct sharing_facts *facts,
		   struct sharing_choice *ret, struct error *err)
{
	enum sharing_way way = request->has_way ? request->way : facts->setting;
	struct sharing_choice c = { .way = way };
	int r = *request->group ? parse_name(request->group, err) : 0;
	if (r < 0)
		return error_add(err, r, "group");
	if (*request->group && way == SHARING_TIME)
		return error_set(
			err, EINVAL,
			"group: '%s': possible only with sharing 'space': ask for that sharing, or "
			"leave the group out",
			request->group);
	if (way == SHARING_SPACE) {
		r = check_space(facts, err);
		if (r < 0)
			return r;
		name_group(request->group, facts, c.group);
	}
	*ret = c;
	return 0;
}

static bool is_given(const char *group)
{
	return !strchr(group, '/');
}

int space_find(const struct space_known *list, size_t count, const struct space_key *key,
	       int *ret_place, unsigned *ret_number, struct error *err)
{
	unsigned number = 1;
	for (size_t i = 0; i < count; i++) {
		const struct space_key *k = &list[i].key;
		bool is_same_name = !strcmp(k->group, key->group);
		if (is_same_name && k->uid != key->uid && is_given(key->group))
			return error_set(
				err, EPERM,
				"group: '%s' was made by another user (uid %u), and only that user's "
				"tenants can join it: use another name",
				key->group, (unsigned)k->uid);
		if (is_same_name && k->uid == key->uid && k->card == key->card) {
			*ret_place = (int)i;
			*ret_number = list[i].number;
			return 0;
		}
	}
	for (size_t i = 0; i < count; i++)
		if (list[i].key.card == key->card && list[i].number == number) {
			number++;
			/* The list is unordered, so check the new number against all entries again, from the start. */
			i = (size_t)-1;
		}
	*ret_place = -1;
	*ret_number = number;
	return 0;
}
