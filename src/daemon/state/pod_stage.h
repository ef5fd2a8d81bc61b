/*
 * When a container of a pod runs, as the key of its claim says it. Kubernetes runs init containers one after the other, and
 * ends each before the next; a sidecar (an init container that is always restarted) goes on beside all that come later.
 * So what a pod needs of a card is the most of any of its stages: of one init container and the sidecars before it, or of all
 * sidecars and the other containers. Pure; thread safe.
 *
 *     pod/<UID>/<container>       with the others
 *     pod/<UID>/<container>@2     the init container of place 2 in its pod
 *     pod/<UID>/<container>@2+    the sidecar of that place
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POD_KEY "pod/" /* before the key of every claim of a pod's container by name */

struct pod_stage {
	const char *uid; /* within the key, not ended by NUL; NULL: no pod's */
	size_t uid_length;
	bool is_init, is_sidecar; /* neither: with the others */
	unsigned place;
};

/* Promises of one card. */
struct stage_amount {
	uint64_t promised_bytes, granted_bytes;
	double cores_pct;
};

struct stage_item {
	struct pod_stage stage;
	struct stage_amount amount;
};

/* The key stays the caller's, and valid. */
struct pod_stage pod_stage_of(const char *key);

/*
 * How much less than the sum of all items is needed, as not all of them run at once. For a container that is to be beside
 * them and is not among them, `beside` (else NULL), only the stages that it runs in count of its own pod.
 */
struct stage_amount pod_stage_unneeded(const struct stage_item *items, size_t count,
				       const struct pod_stage *beside);
