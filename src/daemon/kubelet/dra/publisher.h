/*
 * Publishes one ResourceSlice per GPU of this node at the API server. Rewrites the slice (with the pool's next generation) when
 * the GPU's health, its cordon, or the memory or cores left for claims change. Deletes it when the GPU is gone, and reverts
 * changes by others. The Node object owns the slices, so they are deleted with it. A GPU that is cordoned or unhealthy has a
 * taint; if the server drops taints (feature gate DRADeviceTaints off), the GPU's slice has no device. Main thread only.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "kube/client/kube_client.h"

struct node_object;
struct publisher;

/* Starts to watch. `node` and `object` must outlive the publisher. Returns NULL if out of memory. */
struct publisher *publisher_start(struct kube_client *client, const char *node,
				  const struct node_object *object);
/* Stops watching and writing. The slices stay at the server. NULL is allowed; returns NULL. */
struct publisher *publisher_stop(struct publisher *publisher);

/* Sets the devices to publish (kube/dra/slice.h) and takes the reference. NULL changes nothing. */
void publisher_set_devices(struct publisher *publisher, json_t *devices);
/*
 * Stops writing until publisher_set_devices() is called. Call while this driver has no socket for the kubelet: another driver
 * of the same name may own the slices.
 */
void publisher_pause(struct publisher *publisher);
/* Returns the number of devices in the server's slices, and of failed writes. */
void publisher_count(const struct publisher *publisher, uint64_t *ret_devices,
		     uint64_t *ret_failures);
/* Call each second: writes the slices if the Node's uid has become known. */
void publisher_refresh(struct publisher *publisher);
