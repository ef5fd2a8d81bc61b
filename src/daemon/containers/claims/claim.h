/* A claim and the request for one: see claims.h. Main thread only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/text_index.h"
#include "daemon/state/slots.h"
#include "daemon/state/tenant.h"
#include "policy/memory/promise.h"

/* bytes, including the final NUL; enough for a pod's UID, a container's name and a device's name */
#define CLAIM_KEY_MAX TENANT_CLAIM_MAX

struct node;
struct claims;

/* A request for a claim. The callee keeps no pointer into it. */
struct claim_request {
	const char *key; /* not empty; printable ASCII without spaces */
	/*
	 * Any text, from which the tenant's name is made: invalid characters become '-', a text
	 * that is too long is cut, and the tenant's id is appended if it was cut or another tenant
	 * has the name. NULL: use the key.
	 */
	const char *tenant;
	uid_t uid; /* the owner, who may change the tenant; root for the kubelet's claims */
	/*
	 * If true, claims_reconcile() also ends the claim when nothing runs in it and nothing needs
	 * it. If false, only claims_release() ends it, and the caller must remember the claim.
	 */
	bool while_wanted;
	int priority;
	enum on_full on_full;
	uint64_t swap_arena_bytes; /* with ON_FULL_SWAP; 0: the sum of the quotas */
	enum elastic_choice elastic;
	struct sharing_wish sharing;
	/*
	 * The Kubernetes namespace, or "" for the user's own. NULL if the pod is unknown; then the
	 * tenant cannot share by space.
	 */
	const char *namespace_name;
	/*
	 * The container set CUDA_DISABLE_CONTROL. Without setting `allow_disable_control` that is
	 * logged, counted and ignored.
	 */
	bool wants_no_control;
	unsigned device_count; /* 1 to REGION_MAX_DEVICES */
	struct claim_device_request {
		struct card *card;            /* a card of this node; each at most once */
		struct promise_request terms; /* `waits` is ignored: it follows from on_full */
		struct slots slots;           /* the kubelet's slices; empty: not made by slices */
	} device[REGION_MAX_DEVICES];
};

/* A claim, in force or parked. */
struct claim {
	TAILQ_ENTRY(claim) link;
	struct text_index_entry by_key; /* entry in `keys` of struct claims */
	struct claims *claims;
	/* number of its row in the store; negative while the claim is not in the store */
	int64_t row;
	uint64_t made_s;   /* seconds since 1970 */
	uint64_t known_ns; /* clock_now_ns() when this daemon made or read it */
	uint64_t unwanted_ns; /* clock_now_ns() when it was first found not to be needed; 0: it is needed */
	/*
	 * NULL: the claim is parked, because a card is missing or has no room now. It keeps its
	 * slots and its key. A daemon that starts later puts it into force again if it can.
	 */
	struct tenant *tenant;
	struct parked *parked; /* set only while parked; owned */
	/* The original terms, if claims_wish() has changed the terms; else NULL. Owned. */
	struct claim_asked *asked;
};

/* Counts since the daemon started. */
struct claims_counts {
	uint64_t made,
		released; /* claims made by claims_allocate(); claims released by claims_release() or claims_undo() */
	uint64_t expired;         /* claims ended by claims_reconcile() */
	uint64_t control_refused; /* CUDA_DISABLE_CONTROL was requested and not allowed */
	/* Rejected allocations, by reason. */
	uint64_t refused_request; /* -EINVAL, -ENODEV, -EEXIST */
	uint64_t refused_full;    /* -ENOSPC because of a card: memory, cores, slots */
	uint64_t refused_store;   /* the store could not be written: disk full, read-only */
	uint64_t refused_other;
	uint64_t stores_set_aside; /* stores that were torn, foreign or newer, and rebuilt */
	uint64_t library_refused; /* times that daemon/containers/trust/trust.h refused a library */
};

/*
 * A callback that says whether a while_wanted claim is needed; for example, one that reads the
 * kubelet's pod-resources. claims_reconcile() calls it for each such claim without processes. It
 * must not allocate or release claims. There may be several callbacks: a claim is kept while any of
 * them returns CLAIM_WANTED or CLAIM_UNKNOWN (it cannot tell now).
 */
enum claim_need { CLAIM_UNWANTED, CLAIM_WANTED, CLAIM_UNKNOWN };
typedef enum claim_need (*claims_keep)(void *data, const struct claim *claim);
#define CLAIMS_MAX_KEEPS 4

/*
 * The terms in which a claim is to differ from its original terms. Terms that the wish does not
 * give (has_... is false) return to their original values, so an empty wish restores all of them.
 */
struct claim_wish {
	bool has_on_full, has_priority;
	enum on_full on_full;
	int priority;
	struct promise_request
		/* in the order of the claim's devices; `waits` is ignored */
		device[REGION_MAX_DEVICES];
};
