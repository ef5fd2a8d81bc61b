/*
 * Tells when a pod's container runs, by its claim's key. Kubernetes runs init containers one after the other. A sidecar is
 * an init container that keeps running beside all later containers. A stage is one init container with the sidecars before
 * it, or all sidecars with the ordinary containers. So a pod needs only the maximum over its stages. Pure; thread safe.
 *
 *   pod/<UID>/<container>       an ordinary container
 *   pod/<UID>/<container>@2     the init container at place 2 in its pod
 *   pod/<UID>/<container>@2+    the sidecar at place 2
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POD_KEY "pod/" /* prefix of the key of a claim for a pod's container */

struct pod_stage {
	const char *uid; /* in the key, not ended by NUL; NULL if the claim is not a pod's */
	size_t uid_length;
	bool is_init, is_sidecar; /* both false: an ordinary container */
	unsigned place;
};

/* The promise to a container or a pod on one card: promised_bytes with on_full "fail", granted_bytes with "wait". */
struct stage_amount {
	uint64_t promised_bytes, granted_bytes;
	double cores_pct;
};

struct stage_item {
	struct pod_stage stage;
	struct stage_amount amount;
};

/* Parses a claim's key. The result points into `key`, which must stay valid. */
struct pod_stage pod_stage_of(const char *key);

/*
 * Returns the items' sum minus the most that their pods need at any one time. `beside` is a container that is to be added, or
 * NULL. In the pod of `beside`, only the stages in which `beside` runs count.
 */
struct stage_amount pod_stage_unneeded(const struct stage_item *items, size_t count,
				       const struct pod_stage *beside);
