#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/gpu/health/health.h"
#include "daemon/kubelet/devices/allocate.h"
#include "daemon/kubelet/endpoint/messages.h"
#include "daemon/kubelet/endpoint/pack.h"
#include "daemon/kubelet/plugin/allocate_annotated.h"
#include "daemon/kubelet/plugin/plugin_inside.h"
#include "daemon/kubelet/plugin/allocate_vcuda.h"

/* GetPreferredAllocation may name a slice twice: as available and as required. */
static size_t most_ids(const struct slices *slices)
{
	return (size_t)slices->card_count * slices->per_card * 2;
}

/* A request names a memory unit only once, because the kubelet asks for no preference among them. */
static size_t most_ids_of(const struct endpoint *e)
{
	return e->role == ENDPOINT_MEMORY ? units_count(&e->plugin->units)
					  : most_ids(&e->plugin->slices);
}

size_t plugin_request_most_bytes(const struct endpoint *e)
{
	return 4096 + most_ids_of(e) * (SLICE_ID_MAX + 4);
}

static enum grpc_status status_of(int error)
{
	switch (-error) {
	case EINVAL:
	case ERANGE:
	case EPROTO:
	case E2BIG: return GRPC_INVALID_ARGUMENT;
	case ENOSPC: return GRPC_RESOURCE_EXHAUSTED;
	case EBUSY:
	case EEXIST: return GRPC_FAILED_PRECONDITION;
	case ENODEV: return GRPC_UNAVAILABLE;
	default: return GRPC_UNKNOWN;
	}
}

void plugin_refuse(struct grpc_call *call, const char *method, int error, const struct error *err)
{
	log_warning("device plugin: %s: %s", method, err->text);
	grpc_call_end(call, status_of(error), err->text);
}

/* If `r`, the result of reading a request, is an error, writes the reason to *err. Returns `r`. */
static int check_read(int r, struct error *err)
{
	switch (r) {
	case -EPROTO:
		return error_set(err, EPROTO,
				 "the kubelet's request is not a valid protobuf message");
	case -E2BIG:
		return error_set(
			err, E2BIG,
			"the kubelet's request names more devices than this node has, and is refused: restart the kubelet, then make the pod anew");
	case -ENOMEM: return error_set_errno(err, ENOMEM, "request");
	default: return r;
	}
}

static void get_options(void *data, struct grpc_call *call, const uint8_t *message, size_t size)
{
	const struct endpoint *e = data;
	reply_and_end(call, message_options(e->role == ENDPOINT_SHARES));
}

struct plugin_watcher {
	TAILQ_ENTRY(plugin_watcher) link;
	struct endpoint *endpoint;
	struct grpc_call *call;
};

static void watcher_cancelled(void *data, struct grpc_call *call)
{
	struct plugin_watcher *w = data;
	struct endpoint *e = w->endpoint;
	TAILQ_REMOVE(&e->watchers, w, link);
	free(w);
	if (--e->watcher_count == 0)
		endpoint_is_unwatched(e);
}

static void list_and_watch(void *data, struct grpc_call *call, const uint8_t *message, size_t size)
{
	struct endpoint *e = data;
	struct plugin_watcher *w = malloc(sizeof(*w));
	if (!w) {
		grpc_call_end(call, GRPC_RESOURCE_EXHAUSTED, "allotd is out of memory");
		return;
	}
	*w = (struct plugin_watcher){ .endpoint = e, .call = call };
	TAILQ_INSERT_TAIL(&e->watchers, w, link);
	e->watcher_count++;
	grpc_call_keep(call, watcher_cancelled, w);
	grpc_call_send(call, e->list);
}

static int publish(struct endpoint *e, const bool is_healthy[SLICES_MAX_CARDS])
{
	const struct plugin *plugin = e->plugin;
	const struct plugin_watcher *w;
	struct grpc_message *list = e->role == ENDPOINT_MEMORY
					    ? message_units(&plugin->units, is_healthy)
					    : message_devices(&plugin->slices, is_healthy);
	if (!list)
		return -ENOMEM;
	grpc_message_unref(e->list);
	e->list = list;
	TAILQ_FOREACH(w, &e->watchers, link)
		grpc_call_send(w->call, list);
	return 0;
}

int plugin_publish(struct plugin *plugin)
{
	bool is_healthy[SLICES_MAX_CARDS];
	int r = 0;
	for (unsigned i = 0; i < plugin->slices.card_count; i++)
		is_healthy[i] = health_accepts_tenants(&plugin->node->card[i]);
	for (unsigned i = 0; r >= 0 && i < plugin->endpoint_count; i++)
		r = publish(&plugin->endpoint[i], is_healthy);
	return r;
}

static int prefer(const struct plugin *plugin, const struct message_container *c,
		  struct slice_set *ret, struct error *err)
{
	const struct slices *slices = &plugin->slices;
	struct slice_set available, must;
	int r = slice_set_parse(slices, c->ids, c->count, &available, err);
	if (r >= 0)
		r = slice_set_parse(slices, c->must, c->must_count, &must, err);
	if (r >= 0 && c->size < 0)
		r = error_set(err, EINVAL,
			      "the kubelet asks for %" PRId32 " devices: must be 0 or more",
			      c->size);
	if (r < 0)
		return r;
	uint64_t cards = plugin->vcuda ? vcuda_cards(plugin->vcuda, (unsigned)c->size) : 0;
	return slices_prefer_on(slices, &available, &must, (unsigned)c->size, cards, ret, err);
}

static void get_preferred(void *data, struct grpc_call *call, const uint8_t *message, size_t size)
{
	const struct endpoint *e = data;
	const struct slices *slices = &e->plugin->slices;
	cleanup(message_request_free) struct message_request request;
	struct error err = { 0 };
	int r = check_read(message_read_preferred(message, size, most_ids(slices), &request), &err);
	cleanup_free struct slice_set *sets = calloc(request.count + 1, sizeof(*sets));
	if (r >= 0 && !sets)
		r = check_read(-ENOMEM, &err);
	for (size_t i = 0; r >= 0 && i < request.count; i++)
		r = prefer(e->plugin, &request.container[i], &sets[i], &err);
	if (r < 0)
		plugin_refuse(call, "GetPreferredAllocation", r, &err);
	else
		reply_and_end(call, message_preferred(slices, sets, request.count));
}

struct allocation {
	size_t count;
	struct claim **claim; /* for each container; NULL: not made for this call */
	struct injection *injection;
};

static void free_allocation(struct allocation *a)
{
	for (size_t i = 0; i < a->count; i++)
		injection_free(&a->injection[i]);
	free(a->claim);
	free(a->injection);
}

static void undo(struct plugin *plugin, const struct allocation *a)
{
	for (size_t i = 0; i < a->count; i++) {
		char key[TENANT_CLAIM_MAX];
		if (!a->claim[i])
			continue;
		memcpy(key, claim_terms(a->claim[i])->claim.key, sizeof(key));
		claims_undo(plugin->node->claims, key,
			    "another container of the same call can't get its GPUs");
	}
}

static int check_health(const struct plugin *plugin, const struct slice_set *set, struct error *err)
{
	for (unsigned i = 0; i < plugin->slices.card_count; i++)
		if (slots_count(&set->card[i]) &&
		    health_check_accepts(&plugin->node->card[i], err) < 0)
			return error_add(err, -ENODEV, "%s", plugin->slices.uuid[i]);
	return 0;
}

static int allocate_all(struct plugin *plugin, const struct message_request *request,
			struct allocation *a, struct error *err)
{
	const struct slices *slices = &plugin->slices;
	a->claim = calloc(request->count + 1, sizeof(*a->claim));
	a->injection = calloc(request->count + 1, sizeof(*a->injection));
	if (!a->claim || !a->injection)
		return check_read(-ENOMEM, err);
	for (size_t i = 0; i < request->count; i++) {
		const struct message_container *c = &request->container[i];
		struct slice_set set;
		int r = slice_set_parse(slices, c->ids, c->count, &set, err);
		if (r >= 0)
			r = check_health(plugin, &set, err);
		if (r >= 0)
			r = allocate_slices(plugin->node, slices, &set, &a->claim[i],
					    &a->injection[i], err);
		if (r < 0)
			return r;
		a->count++;
	}
	return 0;
}

static void allocate(void *data, struct grpc_call *call, const uint8_t *message, size_t size)
{
	const struct endpoint *e = data;
	struct plugin *plugin = e->plugin;
	uint64_t begun_ns = clock_now_ns();
	cleanup(message_request_free) struct message_request request;
	cleanup(free_allocation) struct allocation a = { 0 };
	struct error err = { 0 };
	int r = check_read(message_read_allocate(message, size, most_ids_of(e), &request), &err);
	/* No kubelet sends a call for several containers. */
	if (r >= 0 && plugin->annotated && request.count != 1)
		r = error_set(
			&err, EINVAL,
			"the kubelet's call is for %zu containers, and allotd answers calls for one only: the kubelet's version is not supported",
			request.count);
	if (r >= 0 && plugin->vcuda) {
		r = vcuda_allocate(plugin->vcuda, call, e->role, &request, &err);
		if (r >= 0)
			return;
	} else if (r >= 0 && plugin->annotated) {
		r = annotated_allocate(plugin->annotated, call, &request, &err);
		if (r >= 0)
			return;
	} else if (r >= 0) {
		r = allocate_all(plugin, &request, &a, &err);
	}
	struct grpc_message *reply = r < 0 ? NULL : message_allocated(a.injection, a.count);
	if (r >= 0 && !reply)
		r = error_set_errno(&err, ENOMEM, "answer");
	if (r < 0) {
		undo(plugin, &a);
		plugin->refused++;
		plugin_refuse(call, "Allocate", r, &err);
		return;
	}
	reply_and_end(call, reply);
	plugin_request_pods_soon(plugin);
	plugin->allocations++;
	plugin->allocate_ns += clock_now_ns() - begun_ns;
}

/* Does nothing, since we do not request this call; but fails if the devices are not ours. */
static void pre_start(void *data, struct grpc_call *call, const uint8_t *message, size_t size)
{
	const struct endpoint *e = data;
	cleanup(message_request_free) struct message_request request;
	struct slice_set set;
	struct error err = { 0 };
	int r = check_read(message_read_pre_start(message, size, most_ids_of(e), &request), &err);
	if (r >= 0 && e->role == ENDPOINT_MEMORY)
		r = units_check(&e->plugin->units, request.container[0].ids,
				request.container[0].count, &err);
	else if (r >= 0)
		r = slice_set_parse(&e->plugin->slices, request.container[0].ids,
				    request.container[0].count, &set, &err);
	if (r < 0)
		plugin_refuse(call, "PreStartContainer", r, &err);
	else
		reply_and_end(call, message_empty());
}

#define SERVICE "/v1beta1.DevicePlugin/"
const struct grpc_method plugin_methods[] = {
	{ SERVICE "GetDevicePluginOptions", get_options },
	{ SERVICE "ListAndWatch", list_and_watch },
	{ SERVICE "GetPreferredAllocation", get_preferred },
	{ SERVICE "Allocate", allocate },
	{ SERVICE "PreStartContainer", pre_start },
};
const size_t plugin_method_count = sizeof(plugin_methods) / sizeof(plugin_methods[0]);
