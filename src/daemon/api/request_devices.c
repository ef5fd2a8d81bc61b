#include "daemon/api/request_devices.h"

#include <errno.h>
#include <inttypes.h>

#include "base/parse.h"
#include "daemon/api/request_handlers.h"
#include "daemon/api/topology.h"
#include "daemon/gpu/health/health.h"
#include "daemon/state/card_promises.h"
#include "policy/placement/choose_cards.h"

int request_read_index(struct node *node, const json_t *json, struct card **ret, struct error *err)
{
	int64_t index;
	int r = json_read_int(json, "index", 0, INT32_MAX, &index, err);
	if (r <= 0)
		return r;
	if (index >= node->card_count)
		return error_set(err, ENODEV,
				 "index: %" PRId64 ": there is no such GPU: must be 0 to %u", index,
				 node->card_count - 1);
	*ret = &node->card[index];
	return r;
}

static int read_share(const json_t *json, const char *key, bool *ret_has, double *ret,
		      struct error *err)
{
	int r = json_read_number(json, key, ret, err);
	if (r > 0)
		*ret_has = true;
	return r;
}

static int read_device(struct node *node, const json_t *json, struct device_request *ret,
		       struct error *err)
{
	struct device_request d = { 0 };
	int64_t bytes = 0, reserve = 0;
	if (!json_is_object(json))
		return error_set(err, EINVAL, "devices: must be a list of objects");
	int r = request_read_index(node, json, &d.card, err);
	if (r < 0)
		return r;
	r = json_read_int(json, "memory_bytes", 0, INT64_MAX, &bytes, err);
	if (r < 0)
		return r;
	if (r > 0)
		d.terms.memory_bytes = (uint64_t)bytes;
	d.terms.memory_is_unpromised = json_is_null(json_object_get(json, "memory_bytes"));
	d.terms.has_memory = r > 0 || d.terms.memory_is_unpromised;
	r = json_read_int(json, "reserve_bytes", 0, INT64_MAX, &reserve, err);
	if (r < 0)
		return r;
	d.terms.has_reserve = r > 0;
	d.terms.reserve_bytes = (uint64_t)reserve;
	r = read_share(json, "cores_pct", &d.terms.has_cores, &d.terms.cores_pct, err);
	if (r >= 0)
		r = read_share(json, "cores_limit_pct", &d.terms.has_limit, &d.terms.limit_pct, err);
	if (r < 0)
		return r;
	*ret = d;
	return 0;
}

int request_read_devices(struct node *node, const json_t *request,
			 struct device_request list[REGION_MAX_DEVICES], struct error *err)
{
	json_t *devices = NULL;
	int r = json_read_array(request, "devices", &devices, err);
	if (r <= 0)
		return r;
	size_t count = json_array_size(devices);
	if (count == 0 || count > REGION_MAX_DEVICES)
		return error_set(err, EINVAL, "devices: must be a list of 1 to %d GPUs",
				 REGION_MAX_DEVICES);
	for (size_t i = 0; i < count; i++) {
		r = read_device(node, json_array_get(devices, i), &list[i], err);
		if (r < 0)
			return r;
		for (size_t j = 0; list[i].card && j < i; j++)
			if (list[j].card == list[i].card)
				return error_set(err, EINVAL, "devices: GPU %u is named twice",
						 list[i].card->index);
	}
	return (int)count;
}

static bool is_named(const struct device_request *list, int count, const struct card *card)
{
	for (int i = 0; i < count; i++)
		if (list[i].card == card)
			return true;
	return false;
}

static bool is_emptier(const struct promise_card *a, const struct promise_card *b)
{
	uint64_t a_bytes = promise_unpromised_bytes(a), b_bytes = promise_unpromised_bytes(b);
	if (a_bytes != b_bytes)
		return a_bytes > b_bytes;
	if (a->promised_cores_pct < b->promised_cores_pct)
		return true;
	return !(a->promised_cores_pct > b->promised_cores_pct) && a->tenant_count < b->tenant_count;
}

/*
 * Returns the emptiest card that is not in the list. A process can use only one MIG instance, so a request for several cards
 * gets no MIG instance.
 */
static struct card *choose_emptiest(struct node *node, const struct device_request *list, int count)
{
	struct promise_card best_promised;
	struct card *best = NULL;
	for (unsigned i = 0; i < node->card_count; i++) {
		struct card *card = &node->card[i];
		struct promise_card promised = node_promised(node, card, NULL);
		if (is_named(list, count, card) || !health_accepts_tenants(card) ||
		    (count > 1 && card->info.is_instance) ||
		    (best && !is_emptier(&promised, &best_promised)))
			continue;
		best = card;
		best_promised = promised;
	}
	return best;
}

/*
 * Chooses cards for all entries that name none: the emptiest, and among equally empty ones those with the best links to each
 * other. Returns false if there are too few. promise_decide() later checks whether each request fits.
 */
static bool choose_near(struct node *node, struct device_request *list, int count)
{
	const char *named[REGION_MAX_DEVICES];
	struct place_request request = { .count = (unsigned)count,
					 .must_uuid.word = named,
					 .evaluator = { "capacity", "balance", "link", "fragment" },
					 .evaluator_count = 4 };
	struct place_node model;
	struct place_choice choice;
	unsigned next = 0;

	for (int i = 0; i < count; i++)
		if (list[i].card)
			named[request.must_uuid.count++] = list[i].card->info.uuid_text;
	topology_model(node, "", &model);
	if (place_choose(&model, &request, &choice) < 0)
		return false;
	for (int i = 0; i < count; i++) {
		if (list[i].card)
			continue;
		while (is_named(list, count, &node->card[choice.card[next]]))
			next++;
		list[i].card = &node->card[choice.card[next]];
	}
	return true;
}

static bool choose_cards(struct node *node, struct device_request *list, int count)
{
	if (count > 1 && choose_near(node, list, count))
		return true;
	/*
	 * There is only one entry, or choose_near() found too few cards, because it omits cards whose time is all promised.
	 * On such cards, promise_decide() later refuses or scales the guarantees.
	 */
	for (int i = 0; i < count; i++) {
		if (!list[i].card)
			list[i].card = choose_emptiest(node, list, count);
		if (!list[i].card)
			return false;
	}
	return true;
}

static unsigned count_takers(const struct node *node)
{
	unsigned count = 0;
	for (unsigned i = 0; i < node->card_count; i++)
		count += health_accepts_tenants(&node->card[i]);
	return count;
}

int request_choose_devices(struct node *node, const json_t *request,
			   struct device_request list[REGION_MAX_DEVICES], struct error *err)
{
	int count = request_read_devices(node, request, list, err);
	if (count < 0)
		return count;
	if (count == 0)
		count = 1;
	for (int i = 0; i < count; i++) {
		int r = list[i].card ? health_check_accepts(list[i].card, err) : 0;
		if (r < 0)
			return error_add(err, r, "devices");
	}
	if (choose_cards(node, list, count))
		return count;
	unsigned takers = count_takers(node);
	return error_set(err, ENODEV, "the request needs %d GPU%s, and the daemon has only %u%s",
			 count, count > 1 ? "s" : "", takers,
			 takers < node->card_count ? " for new tenants (allot ps lists its GPUs)"
						   : "");
}

int request_read_priority(const json_t *request, int *ret, struct error *err)
{
	int64_t priority;
	int r = json_read_int(request, "priority", -PRIORITY_MOST, PRIORITY_MOST, &priority, err);
	if (r > 0)
		*ret = (int)priority;
	return r;
}

int request_read_on_full(const json_t *request, enum on_full *ret, struct error *err)
{
	const char *text;
	int r = json_read_string(request, "on_full", &text, err);
	if (r > 0 && on_full_parse(text, ret) < 0)
		return error_set(err, EINVAL, "on_full: '%.20s': must be fail, wait or swap", text);
	return r;
}

int request_read_swap_arena(const json_t *request, uint64_t *ret_bytes, struct error *err)
{
	int64_t bytes;
	int r = json_read_int(request, "swap_arena_bytes", 1, INT64_MAX, &bytes, err);
	if (r > 0)
		*ret_bytes = (uint64_t)bytes;
	return r;
}
