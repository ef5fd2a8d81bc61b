#include "daemon/kubelet/dra/devices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/paths.h"
#include "daemon/api/topology.h"
#include "daemon/containers/claims/claims.h"
#include "daemon/kubelet/devices/dra_key.h"
#include "daemon/state/card_promises.h"
#include "kube/dra/slice.h"

#define SYSFS_DEVICES "/sys/bus/pci/devices"

struct texts {
	char pcie_root[64];
};

int dra_pcie_root(const char *sysfs, const char *address, char ret[64])
{
	char path[PATHS_MAX], target[PATHS_MAX];
	/* The link is like "../../../devices/pci0000:17/0000:17:01.0/0000:18:00.0". */
	if (paths_join(sysfs, address, path, sizeof(path), NULL) < 0)
		return -ENOENT;
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return -ENOENT;
	target[n] = '\0';
	const char *root = strstr(target, "/pci");
	size_t length = root ? strcspn(root + 1, "/") : 0;
	if (!root || length >= 64 || !root[1 + length])
		return -ENOENT;
	snprintf(ret, 64, "%.*s", (int)length, root + 1);
	return 0;
}

/*
 * Returns the name of the card's NVLink domain. The domain has the card and all GPUs that are linked to it, directly or through
 * other GPUs. Its name is the UUID of the first GPU in it. NULL if the card has no NVLink to another GPU.
 */
static const char *nvlink_domain(const struct place_node *model, unsigned card)
{
	uint64_t reached = UINT64_C(1) << card, before = 0;
	while (reached != before) {
		before = reached;
		for (unsigned i = 0; i < model->card_count; i++)
			for (unsigned j = 0; before >> i & 1 && j < model->card_count; j++)
				if (i != j && model->link[i][j].nvlinks)
					reached |= UINT64_C(1) << j;
	}
	if (reached == UINT64_C(1) << card)
		return NULL;
	return model->card[__builtin_ctzll(reached)].uuid;
}

/* Adds what `allot set` gave tenants on the card beyond their ResourceClaims; the scheduler knows only ResourceClaims. */
static void add_raises(struct node *node, const struct card *card, uint64_t *bytes,
		       double *cores_pct)
{
	for (struct claim *c = claims_first(node->claims); c; c = claims_next(c)) {
		if (!c->original || !c->tenant || !dra_key_is_of(c->tenant))
			continue;
		for (unsigned i = 0; i < c->tenant->terms.device_count; i++) {
			const struct promise *now = &c->tenant->terms.device[i].promise;
			const struct promise *asked = claim_original_promise(c, i);
			uint64_t counted = tenant_counted_bytes(c->tenant, i);
			if (c->tenant->terms.device[i].card != card)
				continue;
			if (counted > asked->quota_bytes)
				*bytes += counted - asked->quota_bytes;
			if (now->cores_pct > asked->cores_pct)
				*cores_pct += now->cores_pct - asked->cores_pct;
		}
	}
}

/*
 * The cluster's scheduler itself subtracts what ResourceClaims ask for. So this subtracts only the promises of other tenants,
 * and what add_raises() finds.
 */
static void read_left(struct node *node, const struct card *card, struct dra_device *d)
{
	struct promise_card p = node_promised_to(node, card, dra_key_is_not_of);
	uint64_t left_bytes = promise_unpromised_bytes(&p), taken_bytes = p.unpromised_held_bytes;
	double taken_pct = p.promised_cores_pct;
	add_raises(node, card, &taken_bytes, &taken_pct);
	d->memory_left_bytes = left_bytes > taken_bytes ? left_bytes - taken_bytes : 0;
	d->cores_left_pct = taken_pct < 100 ? (unsigned)(100 - taken_pct) : 0;
}

static void describe(struct node *node, const struct place_node *model, struct card *card,
		     struct texts *texts, struct dra_device *ret)
{
	const struct gpu_info *info = &card->info;
	unsigned cuda = node->backend->cuda_version ? node->backend->cuda_version(node->gpu) : 0;
	struct gpu_locality locality = topology_locality(node, card->index);
	*ret = (struct dra_device){ .uuid = info->uuid_text,
				    .product = info->name,
				    .is_instance = info->is_instance,
				    .parent_uuid = info->card_uuid_text,
				    .memory_bytes = info->memory_bytes,
				    .capability_major = info->capability_major,
				    .capability_minor = info->capability_minor,
				    .cuda_major = cuda / 1000,
				    .cuda_minor = cuda % 1000 / 10,
				    .driver_version = node->backend->driver_version(node->gpu),
				    .numa_known = locality.numa_known,
				    .numa = locality.numa,
				    .nvlink_domain = nvlink_domain(model, card->index),
				    .multiprocessors = info->sms,
				    .is_cordoned = card->is_cordoned ||
						   card->is_cordoned_by_settings,
				    .is_unhealthy = card->health.is_bad };
	read_left(node, card, ret);
	if (*locality.pci && dra_pcie_root(SYSFS_DEVICES, locality.pci, texts->pcie_root) == 0)
		ret->pcie_root = texts->pcie_root;
}

json_t *dra_node_devices(struct node *node)
{
	cleanup_free struct place_node *model = calloc(1, sizeof(*model));
	cleanup_free struct dra_device *device = calloc(node->card_count + 1, sizeof(*device));
	cleanup_free struct texts *texts = calloc(node->card_count + 1, sizeof(*texts));
	if (!model || !device || !texts)
		return NULL;
	topology_model(node, "", model);
	for (unsigned i = 0; i < node->card_count; i++)
		describe(node, model, &node->card[i], &texts[i], &device[i]);
	return dra_devices(device, node->card_count);
}
