/*
 * A claim, and what is asked for with one: see claims.h. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/text_index.h"
#include "daemon/state/slots.h"
#include "daemon/state/tenant.h"
#include "policy/memory/promise.h"

#define CLAIM_KEY_MAX \
	TENANT_CLAIM_MAX /* bytes, the final NUL included: a pod's UID, '/', a container's name */

struct node;
struct claims;

/* What is asked for. Nothing of it is kept by the callee. */
struct claim_request {
	const char *key; /* not empty; graphic ASCII */
	/*
	 * What the tenant is to be called, any text: what is no part of a name becomes '-', what is too
	 * long is cut, and where another tenant has the name its id is added. NULL: the key.
	 */
	const char *tenant;
	uid_t uid; /* whose it is: who may change the tenant. Root for the kubelet's */
	/*
	 * Ended by claims_reconcile() too, when nothing runs in it and nobody wants it any more. false: until
	 * claims_release(), by somebody who wrote it down.
	 */
	bool while_wanted;
	int priority;
	enum on_full on_full;
	uint64_t swap_arena_bytes; /* with ON_FULL_SWAP; 0: as much as the quotas */
	enum elastic_choice elastic;
	struct sharing_wish sharing;
	/* Kubernetes's, or "": its user's. NULL: the pod is not known, and so nobody it might share with by space. */
	const char *namespace_name;
	/*
	 * The container set CUDA_DISABLE_CONTROL. Honoured where the setting `allow_disable_control` is
	 * on; else logged, counted and ignored.
	 */
	bool wants_no_control;
	unsigned device_count; /* 1 to REGION_MAX_DEVICES */
	struct claim_device_request {
		struct card *card;            /* of this node; no card twice */
		struct promise_request terms; /* as a tenant asks; `waits` is set by on_full */
		struct slots slots;           /* none: it is not shown as slots */
	} device[REGION_MAX_DEVICES];
};

/* A claim, in force or parked. */
struct claim {
	TAILQ_ENTRY(claim) link;
	struct text_index_entry by_key; /* in the list's */
	struct claims *claims;
	int64_t row;        /* in the store; negative: not there yet, see claims_open() */
	uint64_t made_s;    /* since 1970 */
	uint64_t wanted_ns; /* when it was last seen to be needed: clock_now_ns() */
	/*
	 * NULL: parked, as a card of it is not there, or by now has no room. It keeps its slots and its key, and
	 * is put into force again by the next daemon that can.
	 */
	struct tenant *tenant;
	struct parked *parked; /* NULL unless parked; the claim's */
	/* What it was made with, while its terms are others by claims_wish(); NULL: they are not. The claim's. */
	struct claim_asked *asked;
};

/* Since the daemon started. */
struct claims_counts {
	uint64_t made, released;  /* by a caller */
	uint64_t expired;         /* by claims_reconcile() */
	uint64_t control_refused; /* CUDA_DISABLE_CONTROL asked for and not allowed */
	/* Allocations refused, by reason. */
	uint64_t refused_request; /* -EINVAL, -ENODEV, -EEXIST */
	uint64_t refused_full;    /* -ENOSPC of a card: memory, cores, slots */
	uint64_t refused_store;   /* the store could not be written: disk full, read-only */
	uint64_t refused_other;
	uint64_t stores_set_aside; /* torn, foreign or newer, rebuilt */
	uint64_t library_refused;  /* by daemon/containers/trust/trust.h */
};

/*
 * Who else knows whether a while_wanted claim is needed, as the kubelet's pod-resources does.
 * Called by claims_reconcile() for each that nothing runs in; must not allocate or release. Several may
 * be set; a claim is kept while one of them says CLAIM_WANTED or CLAIM_UNKNOWN (it can't tell now).
 */
enum claim_need { CLAIM_UNWANTED, CLAIM_WANTED, CLAIM_UNKNOWN };
typedef enum claim_need (*claims_keep)(void *data, const struct claim *claim);
#define CLAIMS_MAX_KEEPS 4

/*
 * Other terms than a claim was made with, in all that is wished for. What is not wished for (has_ is false) is as it was
 * made; a wish for nothing gives all of that back.
 */
struct claim_wish {
	bool has_on_full, has_priority;
	enum on_full on_full;
	int priority;
	struct promise_request
		device[REGION_MAX_DEVICES]; /* in the order of its devices; `waits` does not count */
};
