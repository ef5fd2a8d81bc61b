#include "policy/space/choice.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

#define FILLS_PCT \
	50.0 /* who is promised more than this of a card leaves no room for another like it */

static const char *const ways[] = {
	[SHARING_TIME] = "time", [SHARING_SPACE] = "space", [SHARING_AUTO] = "auto"
};

const char *sharing_way_name(enum sharing_way way)
{
	return ways[way];
}

int sharing_way_parse(const char *text, enum sharing_way *ret)
{
	for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(text, ways[i])) {
			*ret = (enum sharing_way)i;
			return 0;
		}
	return -EINVAL;
}

/* A context that may use no SM at all can run nothing. */
static int check_sms(const struct sharing_facts *f, struct error *err)
{
	double least_pct = ceil(10000.0 / f->sms) / 100;
	if (f->limit_pct * f->sms >= 100)
		return 0;
	return error_set(err, EINVAL,
			 "sharing: 'space': cores_limit_pct %g of %u SMs is no whole SM: must be %g "
			 "or more",
			 f->limit_pct, f->sms, least_pct);
}

/* Why it can't be space, whoever asks; 0: it can. */
static int check_space(const struct sharing_facts *f, struct error *err)
{
	if (!f->has_leases)
		return error_set(err, EINVAL,
				 "sharing: 'space': groups take turns by leases: needs policy "
				 "'lease'; or leave sharing out");
	if (f->device_count > 1)
		return error_set(err, EINVAL,
				 "sharing: 'space': a process has one MPS server, of one GPU: the "
				 "tenant has %u; ask for one GPU, or for sharing 'time'",
				 f->device_count);
	if (f->is_movable)
		return error_set(err, EINVAL,
				 "sharing: 'space': memory of MPS clients can't be moved off the "
				 "card: use on_full 'fail' or 'wait', or sharing 'time'");
	if (f->sms && check_sms(f, err) < 0)
		return -EINVAL;
	if (!f->sms && f->limit_pct < SPACE_LIMIT_MIN_PCT)
		return error_set(err, EINVAL,
				 "sharing: 'space': cores_limit_pct %g may round to no SM: must be "
				 "%g or more",
				 f->limit_pct, SPACE_LIMIT_MIN_PCT);
	if (f->missing)
		return error_set(err, EOPNOTSUPP, "sharing: 'space': %s; or use sharing 'time'",
				 f->missing);
	return 0;
}

/* NULL: it may share either way. */
static const char *why_time(const struct sharing_facts *f)
{
	if (check_space(f, NULL) < 0)
		return f->missing ? "there is no MPS here" : "its other terms need turns";
	if (!f->memory_given)
		return "it may hold the rest of the card";
	return NULL;
}

/* Of one that may share either way. */
static void choose_by_gain(const struct sharing_facts *f, struct sharing_choice *c)
{
	static const char *const whys[][2] = {
		[GAIN_EXPECTED] = { "it should do too little more beside its group than in turns",
				    "it should do more beside its group than in turns" },
		[GAIN_MEASURED] = { "its groups did too little more than in turns",
				    "its groups did more than in turns" },
	};
	bool is_space = f->gain.is_enough;
	c->is_open = true;
	c->source = f->gain.source;
	c->gain = f->gain.gain;
	if (f->gain.source == GAIN_UNKNOWN) {
		is_space = f->cores_pct <= FILLS_PCT;
		c->why = is_space ? "it leaves room for others of its group"
				  : "it is promised most of the card";
	} else {
		c->why = whys[f->gain.source][is_space];
	}
	c->way = is_space ? SHARING_SPACE : SHARING_TIME;
}

/* A '/' is in none of the names that are given. */
void sharing_name_group(const char *given, const struct sharing_facts *f,
			char group[SPACE_GROUP_MAX])
{
	if (*f->namespace_name)
		snprintf(group, SPACE_GROUP_MAX, "namespace/%.64s%s%.63s", f->namespace_name,
			 *given ? "/" : "", given);
	else if (*given)
		snprintf(group, SPACE_GROUP_MAX, "%s", given);
	else
		snprintf(group, SPACE_GROUP_MAX, "user/%u", (unsigned)f->uid);
}

int sharing_choose(const struct sharing_wish *wish, const struct sharing_facts *facts,
		   struct sharing_choice *ret, struct error *err)
{
	enum sharing_way way = wish->has_way ? wish->way : facts->setting;
	struct sharing_choice c = { .way = way };
	int r = *wish->group ? parse_name(wish->group, err) : 0;
	if (r < 0)
		return error_add(err, r, "group");
	if (*wish->group && way == SHARING_TIME)
		return error_set(err, EINVAL,
				 "group: '%s': only tenants with sharing 'space' or 'auto' have one",
				 wish->group);
	if (way == SHARING_SPACE) {
		r = check_space(facts, err);
		if (r < 0)
			return r;
	}
	if (way == SHARING_AUTO) {
		c.why = why_time(facts);
		c.way = SHARING_TIME;
		if (!c.why)
			choose_by_gain(facts, &c);
	}
	if (c.way == SHARING_SPACE)
		sharing_name_group(wish->group, facts, c.group);
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
			return error_set(err, EPERM,
					 "group: '%s' is uid %u's: a group is of one user; use "
					 "another name",
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
			i = (size_t)-1; /* from the first again: the list is in no order */
		}
	*ret_place = -1;
	*ret_number = number;
	return 0;
}
