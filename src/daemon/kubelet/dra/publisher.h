/*
 * Keeps this node's ResourceSlices at the API server as they are to be, one for each GPU: made where there is none, written anew
 * when the GPU's share, health or cordon changes, with the pool's next generation each time, and deleted when the GPU is gone. What
 * somebody else changes or removes is put back. Slices belong to the Node, and go with it. GPUs that take no new tenants are
 * tainted; where the server keeps no taints (gate DRADeviceTaints) their slices have no devices. Main thread only.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "kube/client/client.h"

struct node_object;
struct publisher;

/* `node` and `object` stay the caller's. NULL: no memory. */
struct publisher *publisher_start(struct kube_client *client, const char *node,
				  const struct node_object *object);
/* The slices stay. NULL is fine; returns NULL. */
struct publisher *publisher_stop(struct publisher *publisher);

/* The devices that are to be told of (kube/dra/slice.h), whose reference is taken over; NULL: no memory, all stays. */
void publisher_want(struct publisher *publisher, json_t *devices);
/* Nothing is written any more, until something is wanted again: the slices are another driver's. */
void publisher_pause(struct publisher *publisher);
/* The devices that the server's slices have, and how often a write failed. */
void publisher_count(const struct publisher *publisher, uint64_t *ret_devices,
		     uint64_t *ret_failures);
/* Tries again what could not be done: the Node was not known yet. To be called each second. */
void publisher_look(struct publisher *publisher);
