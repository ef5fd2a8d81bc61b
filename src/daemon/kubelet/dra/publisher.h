/*
 * Keeps this node's ResourceSlices at the API server up to date, one slice for each GPU. A missing slice is created. A slice is
 * rewritten, with the pool's next generation, when the GPU's share, health or cordon changes. The slice is deleted when the GPU
 * is gone. Changes that others make to our slices are reverted. The Node object owns the slices, so the cluster deletes them with
 * it. A GPU that takes no new tenants gets a taint; if the server drops taints (gate DRADeviceTaints), the slice of that GPU
 * lists no device. Main thread only.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "kube/client/kube_client.h"

struct node_object;
struct publisher;

/* Starts to watch the slices. `node` and `object` must outlive the publisher. Returns NULL if out of memory. */
struct publisher *publisher_start(struct kube_client *client, const char *node,
				  const struct node_object *object);
/* Stops watching and writing. The slices stay at the server. NULL is fine; returns NULL. */
struct publisher *publisher_stop(struct publisher *publisher);

/*
 * Sets the devices to publish (kube/dra/slice.h) and takes over the reference. NULL means that the caller ran out of memory:
 * nothing changes.
 */
void publisher_want(struct publisher *publisher, json_t *devices);
/* Stops writing until publisher_want() is called again, because another driver owns the slices now. */
void publisher_pause(struct publisher *publisher);
/* Returns the number of devices in the server's slices, and the number of failed writes. */
void publisher_count(const struct publisher *publisher, uint64_t *ret_devices,
		     uint64_t *ret_failures);
/* Writes the slices if they waited for the Node's uid, and it is known now. To be called each second. */
void publisher_look(struct publisher *publisher);
