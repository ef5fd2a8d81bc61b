#include "daemon/kubelet/endpoint/messages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/kubelet/endpoint/pack.h"
#include "daemon/kubelet/proto/device_plugin.pb-c.h"

#define VERSION "v1beta1"
#define HEALTHY "Healthy"
#define UNHEALTHY "Unhealthy"
#define READ_AND_WRITE "rw"

uint8_t *message_register(const char *endpoint, const char *resource, bool has_preference,
			  size_t *ret_size)
{
	V1beta1__DevicePluginOptions o = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
	V1beta1__RegisterRequest r = V1BETA1__REGISTER_REQUEST__INIT;
	o.get_preferred_allocation_available = has_preference;
	r.version = text(VERSION);
	r.endpoint = text(endpoint);
	r.resource_name = text(resource);
	r.options = &o;
	uint8_t *data = malloc(v1beta1__register_request__get_packed_size(&r));
	if (data)
		*ret_size = v1beta1__register_request__pack(&r, data);
	return data;
}

struct grpc_message *message_options(bool has_preference)
{
	V1beta1__DevicePluginOptions o = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
	o.get_preferred_allocation_available = has_preference;
	return pack(&o.base);
}

struct grpc_message *message_empty(void)
{
	return grpc_message_new(0);
}

/* A card's NUMA node, for the kubelet's topology manager. */
struct seat {
	V1beta1__NUMANode node;
	V1beta1__NUMANode *nodes[1];
	V1beta1__TopologyInfo info;
};

static V1beta1__TopologyInfo *topology_of(struct seat *seat, int numa)
{
	if (numa < 0)
		return NULL;
	seat->node = (V1beta1__NUMANode)V1BETA1__NUMANODE__INIT;
	seat->node.id = numa;
	seat->nodes[0] = &seat->node;
	seat->info = (V1beta1__TopologyInfo)V1BETA1__TOPOLOGY_INFO__INIT;
	seat->info.n_nodes = 1;
	seat->info.nodes = seat->nodes;
	return &seat->info;
}

static struct grpc_message *list_devices(const struct slices *slices,
					 const unsigned per_card[SLICES_MAX_CARDS],
					 const bool is_healthy[SLICES_MAX_CARDS])
{
	struct seat seats[SLICES_MAX_CARDS];
	size_t count = 0, n = 0;
	V1beta1__ListAndWatchResponse r = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
	for (unsigned i = 0; i < slices->card_count; i++)
		count += per_card[i];
	cleanup_free V1beta1__Device **list = new_list(count, sizeof(**list));
	cleanup_free char *ids = calloc(count + 1, SLICE_ID_MAX);
	if (!list || !ids)
		return NULL;
	for (unsigned i = 0; i < slices->card_count; i++) {
		V1beta1__TopologyInfo *topology = topology_of(&seats[i], slices->numa[i]);
		for (unsigned k = 0; k < per_card[i]; k++, n++) {
			slice_format(slices, i, k, ids + n * SLICE_ID_MAX);
			*list[n] = (V1beta1__Device)V1BETA1__DEVICE__INIT;
			list[n]->id = ids + n * SLICE_ID_MAX;
			list[n]->health = text(is_healthy[i] ? HEALTHY : UNHEALTHY);
			list[n]->topology = topology;
		}
	}
	r.n_devices = count;
	r.devices = list;
	return pack(&r.base);
}

struct grpc_message *message_devices(const struct slices *slices,
				     const bool is_healthy[SLICES_MAX_CARDS])
{
	unsigned per_card[SLICES_MAX_CARDS];
	for (unsigned i = 0; i < slices->card_count; i++)
		per_card[i] = slices->per_card;
	return list_devices(slices, per_card, is_healthy);
}

struct grpc_message *message_units(const struct units *units,
				   const bool is_healthy[SLICES_MAX_CARDS])
{
	return list_devices(units->slices, units->count, is_healthy);
}

static size_t set_count(const struct slices *slices, const struct slice_set *set)
{
	size_t count = 0;
	for (unsigned i = 0; i < slices->card_count; i++)
		count += slots_count(&set->card[i]);
	return count;
}

/* Writes the names of the set's slices into `ids`, and appends them to `list`, which has *n entries. */
static void name_set(const struct slices *slices, const struct slice_set *set, char *ids,
		     char **list, size_t *n)
{
	for (unsigned i = 0; i < slices->card_count; i++)
		for (unsigned k = 0; k < slices->per_card; k++)
			if (slots_has(&set->card[i], k)) {
				list[*n] = ids + *n * SLICE_ID_MAX;
				slice_format(slices, i, k, list[*n]);
				++*n;
			}
}

struct grpc_message *message_preferred(const struct slices *slices, const struct slice_set *sets,
				       size_t count)
{
	size_t all = 0, n = 0;
	for (size_t i = 0; i < count; i++)
		all += set_count(slices, &sets[i]);
	V1beta1__PreferredAllocationResponse r = V1BETA1__PREFERRED_ALLOCATION_RESPONSE__INIT;
	cleanup_free V1beta1__ContainerPreferredAllocationResponse **list = new_list(count,
										     sizeof(**list));
	cleanup_free char *ids = calloc(all + 1, SLICE_ID_MAX);
	cleanup_free char **names = calloc(all + 1, sizeof(*names));
	if (!list || !ids || !names)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		size_t first = n;
		*list[i] = (V1beta1__ContainerPreferredAllocationResponse)
			V1BETA1__CONTAINER_PREFERRED_ALLOCATION_RESPONSE__INIT;
		name_set(slices, &sets[i], ids, names, &n);
		list[i]->ids = names + first;
		list[i]->n_ids = n - first;
	}
	r.n_container_responses = count;
	r.container_responses = list;
	return pack(&r.base);
}

/* Makes the answer for one container, whose lists the caller frees also on failure. */
static int translate(const struct injection *from, V1beta1__ContainerAllocateResponse *a)
{
	*a = (V1beta1__ContainerAllocateResponse)V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;
	a->envs = new_list(from->env_count, sizeof(**a->envs));
	a->mounts = new_list(from->mount_count, sizeof(**a->mounts));
	a->devices = new_list(from->device_count, sizeof(**a->devices));
	if (!a->envs || !a->mounts || !a->devices)
		return -ENOMEM;
	for (; a->n_envs < from->env_count; a->n_envs++) {
		V1beta1__ContainerAllocateResponse__EnvsEntry *e = a->envs[a->n_envs];
		*e = (V1beta1__ContainerAllocateResponse__EnvsEntry)
			V1BETA1__CONTAINER_ALLOCATE_RESPONSE__ENVS_ENTRY__INIT;
		e->key = from->env[a->n_envs].name;
		e->value = from->env[a->n_envs].value;
	}
	for (; a->n_mounts < from->mount_count; a->n_mounts++) {
		V1beta1__Mount *m = a->mounts[a->n_mounts];
		*m = (V1beta1__Mount)V1BETA1__MOUNT__INIT;
		m->container_path = from->mount[a->n_mounts].container_path;
		m->host_path = from->mount[a->n_mounts].host_path;
		m->read_only = from->mount[a->n_mounts].is_read_only;
	}
	for (; a->n_devices < from->device_count; a->n_devices++) {
		V1beta1__DeviceSpec *d = a->devices[a->n_devices];
		*d = (V1beta1__DeviceSpec)V1BETA1__DEVICE_SPEC__INIT;
		d->container_path = from->device[a->n_devices].container_path;
		d->host_path = from->device[a->n_devices].host_path;
		d->permissions = text(READ_AND_WRITE);
	}
	return 0;
}

struct grpc_message *message_allocated(const struct injection *injections, size_t count)
{
	V1beta1__AllocateResponse r = V1BETA1__ALLOCATE_RESPONSE__INIT;
	cleanup_free V1beta1__ContainerAllocateResponse **list = new_list(count, sizeof(**list));
	struct grpc_message *m = NULL;
	int e = list ? 0 : -ENOMEM;
	for (size_t i = 0; e >= 0 && i < count; i++)
		e = translate(&injections[i], list[i]);
	r.n_container_responses = count;
	r.container_responses = list;
	if (e >= 0)
		m = pack(&r.base);
	for (size_t i = 0; list && i < count; i++) {
		free(list[i]->envs);
		free(list[i]->mounts);
		free(list[i]->devices);
	}
	return m;
}

static int begin(void *unpacked, size_t count, struct message_request *ret)
{
	*ret = (struct message_request){ .unpacked = unpacked };
	if (!unpacked)
		return -EPROTO;
	ret->container = calloc(count + 1, sizeof(*ret->container));
	if (!ret->container)
		return -ENOMEM;
	ret->count = count;
	return 0;
}

static int check_count(const struct message_request *request, size_t most_ids)
{
	size_t all = 0;
	for (size_t i = 0; i < request->count; i++)
		all += request->container[i].count + request->container[i].must_count;
	return all > most_ids ? -E2BIG : 0;
}

int message_read_preferred(const uint8_t *data, size_t size, size_t most_ids,
			   struct message_request *ret)
{
	V1beta1__PreferredAllocationRequest *from = v1beta1__preferred_allocation_request__unpack(
		NULL, size, data);
	int r = begin(from, from ? from->n_container_requests : 0, ret);
	for (size_t i = 0; r >= 0 && i < ret->count; i++) {
		const V1beta1__ContainerPreferredAllocationRequest *c = from->container_requests[i];
		ret->container[i] = (struct message_container){ .ids = c->available_ids,
								.count = c->n_available_ids,
								.must = c->must_include_ids,
								.must_count = c->n_must_include_ids,
								.size = c->allocation_size };
	}
	return r < 0 ? r : check_count(ret, most_ids);
}

int message_read_allocate(const uint8_t *data, size_t size, size_t most_ids,
			  struct message_request *ret)
{
	V1beta1__AllocateRequest *from = v1beta1__allocate_request__unpack(NULL, size, data);
	int r = begin(from, from ? from->n_container_requests : 0, ret);
	for (size_t i = 0; r >= 0 && i < ret->count; i++)
		ret->container[i] =
			(struct message_container){ .ids = from->container_requests[i]->ids,
						    .count = from->container_requests[i]->n_ids };
	return r < 0 ? r : check_count(ret, most_ids);
}

int message_read_pre_start(const uint8_t *data, size_t size, size_t most_ids,
			   struct message_request *ret)
{
	V1beta1__PreStartContainerRequest *from = v1beta1__pre_start_container_request__unpack(
		NULL, size, data);
	int r = begin(from, from ? 1 : 0, ret);
	if (r < 0)
		return r;
	ret->container[0] = (struct message_container){ .ids = from->ids, .count = from->n_ids };
	return check_count(ret, most_ids);
}

void message_request_free(struct message_request *request)
{
	if (request->unpacked)
		protobuf_c_message_free_unpacked(request->unpacked, NULL);
	free(request->container);
	*request = (struct message_request){ 0 };
}
