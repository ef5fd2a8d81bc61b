/* A claim and the request for one (claims.h). Main thread only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/text_index.h"
#include "daemon/state/slots.h"
#include "daemon/state/tenant.h"
#include "policy/memory/promise.h"

/* Size with the NUL; enough for a pod's UID, a container's name and a device's name. */
#define CLAIM_KEY_MAX TENANT_CLAIM_MAX
/*
 * Prefix of the keys of claims for Kubernetes' ResourceClaims. The kubelet may request such a claim again at any time, and
 * always with the ResourceClaim's terms.
 */
#define CLAIM_KEY_DRA "dra/"

struct node;
struct claims;

/* A request for a claim. The callee keeps no pointer into it. */
struct claim_request {
	const char *key; /* not empty; printable ASCII without spaces */
	/*
	 * Text for the tenant's name; NULL: the key. Invalid characters become '-', long text is cut, and the tenant's id
	 * is appended after a cut or if the name is taken.
	 */
	const char *tenant;
	uid_t uid; /* the owner, who may change the tenant; root for the kubelet's claims */
	/*
	 * If true, claims_reconcile() may end the claim when no process runs in it and each claims_need_check callback returns
	 * CLAIM_UNWANTED. If false, only claims_release() or claims_undo() ends it, so the caller must remember the claim.
	 */
	bool while_wanted;
	int priority;
	enum on_full on_full;
	/* host memory for swapped-out data, with ON_FULL_SWAP; 0: the sum of the quotas */
	uint64_t swap_arena_bytes;
	enum elastic_choice elastic;
	struct sharing_request sharing;
	/* Kubernetes namespace of the pod; "": no pod; NULL: unknown pod, so the tenant cannot share by space */
	const char *namespace_name;
	/*
	 * The container asks, by CUDA_DISABLE_CONTROL, to run without the library. Ignored unless `allow_disable_control` is
	 * on.
	 */
	bool wants_no_control;
	unsigned device_count; /* 1 to REGION_MAX_DEVICES */
	struct claim_device_request {
		struct card *card;            /* each card at most once */
		struct promise_request terms; /* `waits` is ignored: it follows from on_full */
		/* slots (equal parts of the card) that the kubelet chose; empty: none */
		struct slots slots;
	} device[REGION_MAX_DEVICES];
};

struct claim {
	TAILQ_ENTRY(claim) link;
	struct text_index_entry by_key;
	struct claims *claims;
	/* number of the row in the store; negative: not in the store */
	int64_t row;
	uint64_t made_s;   /* seconds since 1970 */
	uint64_t known_ns; /* clock_now_ns() when this daemon made or read the claim */
	/* since when claims_reconcile() has found the claim not needed (clock_now_ns()); 0: needed at the last check */
	uint64_t unwanted_ns;
	/* NULL: the claim is parked, because a card is missing or has no room; a later daemon may put it into force */
	struct tenant *tenant;
	struct parked *parked; /* owned; NULL unless parked */
	/* original terms, if claims_override_terms() or claims_set_terms() changed them, else NULL; owned */
	struct claim_original *original;
};

/* Counts since the daemon started. */
struct claims_counts {
	/* made by claims_allocate(), released by claims_release() or claims_undo() */
	uint64_t made, released;
	uint64_t expired;         /* ended by claims_reconcile() */
	uint64_t control_refused; /* requests for CUDA_DISABLE_CONTROL that were not allowed */
	/* rejected allocations, by reason: */
	uint64_t refused_request;
	uint64_t refused_full;  /* -ENOSPC because of a card: memory, cores or slots */
	uint64_t refused_store; /* the store could not be written */
	uint64_t refused_other;
	uint64_t stores_set_aside; /* unusable store files that were renamed, and rebuilt */
	uint64_t library_refused;  /* libraries that trust.h refused */
};

/*
 * Callback that returns whether a while_wanted claim is needed, for example because a pod still holds its devices. For each
 * such claim without processes, claims_reconcile() asks the callbacks, and keeps the claim if one returns CLAIM_WANTED or
 * CLAIM_UNKNOWN. A callback must not allocate or release claims.
 */
enum claim_need { CLAIM_UNWANTED, CLAIM_WANTED, CLAIM_UNKNOWN };
typedef enum claim_need (*claims_need_check)(void *data, const struct claim *claim);
#define CLAIMS_MAX_NEED_CHECKS 4

/*
 * Terms that replace those of a claim. A term without a value (has_... is false) returns to its original value, so an empty
 * override restores all terms.
 */
struct claim_override {
	bool has_on_full, has_priority;
	enum on_full on_full;
	int priority;
	struct promise_request
		/* in the order of the claim's devices; `waits` is ignored */
		device[REGION_MAX_DEVICES];
};
