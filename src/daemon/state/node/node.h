/*
 * The daemon's state: its cards, its tenants, its one event loop. Everything here belongs to the main
 * thread; arbitration (a thread a card) and census (one thread) share nothing of it but what their
 * own headers say.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text_index.h"
#include "daemon/arbitrate/arbitration.h"
#include "daemon/config/config.h"
#include "daemon/gpu/nvml/census_policy.h"
#include "daemon/gpu/nvml/gpu.h"
#include "daemon/state/node/admission_state.h"
#include "daemon/util/lock.h"
#include "policy/memory/fade.h"
#include "policy/safety/health_policy.h"
#include "net/loop.h"

#define NODE_MAX_CARDS 64

/* Why a tenant that was asked for was not made. */
enum allocation_failure {
	ALLOCATION_NO_ROOM,
	ALLOCATION_NO_DEVICE,
	ALLOCATION_CORDONED,
	ALLOCATION_UNHEALTHY,
	ALLOCATION_NAME_IN_USE,
	ALLOCATION_INVALID,
	ALLOCATION_OTHER,
	ALLOCATION_FAILURES
};
/* The path of a tenant's socket below it must fit struct sockaddr_un. */
#define NODE_RUN_DIR_MAX 80
#define NODE_PATH_MAX 160 /* of anything below the run directory */

struct subsystem;
struct tenant;
struct audit;
struct namespace_uses;
struct census;
struct claim_holders;
struct claims;
struct gpu_records;
struct gpu_watch;
struct space_groups;
struct control;
struct dra;
struct drain;
struct sensor;
struct metrics;
struct page;
struct plugin;
struct topology;
struct violations;
struct node_kube;

struct card {
	unsigned index;
	struct gpu_info info;
	struct arbitration *arbitration;
	struct sensor *sensor;  /* NULL unless the policy measures by NVML */
	int lock_fd[LOCK_DIRS]; /* one arbiter per card: see lock.h; -1: none */
	uint64_t context_bytes; /* charged for one: as tuned, or what was learned since ... */
	struct census_least context_least; /* ... from this */
	bool memory_known;                 /* memory_used_bytes is NVML's, from the last census */
	uint64_t memory_used_bytes;
	struct drain *drains; /* given back by dead processes, not yet by the driver: see drain.h */
	bool unlisted_known; /* what NVML's figure has beyond its list of processes, in the last census */
	uint64_t unlisted_bytes;
	uint64_t foreign_bytes; /* held by processes of no tenant, by the last census: see foreign.h */
	uint64_t kept_bytes;    /* free, and kept for tenants that have waited long enough */
	uint64_t swapped_out_bytes; /* of tenants' memory, ever */
	uint64_t returning_bytes; /* of containers that come back from a checkpoint: kept for them */
	struct health health;     /* see policy/safety/health_policy.h; so are: */
	uint64_t faults[GPU_FAULT_KINDS]; /* reported, ever */
	bool is_cordoned, is_cordoned_by_settings;
};

#define NODE_HEALTH_LISTENERS 4
struct health_listener {
	void (*handler)(void *data, struct card *card);
	void *data;
};

TAILQ_HEAD(tenant_list, tenant);

#define NODE_PAST_USES 256
/* What a tenant that ended had used: see use.h. */
struct past_use {
	char name[REGION_NAME_MAX]; /* "": none */
	uid_t uid;
	struct fade use;
};

struct node {
	const struct subsystem *subsystems; /* ended by a row without a name */
	struct config config;
	const char *config_file; /* the real path of the settings that were read; NULL: none */
	char run_dir[NODE_RUN_DIR_MAX];
	bool is_private;    /* one user's: nobody else may come near its files */
	bool lingers;       /* ends when there have been no tenants for config.linger_ns */
	bool populated;     /* there are tenants */
	bool slept_at_tick; /* all cards' arbitrations did, at the last one */
	bool simulated;
	char sim_socket[NODE_PATH_MAX]; /* real path; "" when not simulated */
	uint64_t epoch;                 /* of this daemon; fits a JSON integer, never 0 */
	gid_t admin_gid;                /* group allot; (gid_t)-1: there is none */

	struct loop *loop;
	const struct gpu_backend *backend;
	const char *gpu_source; /* what that opens; the caller's */
	struct gpu *gpu;
	unsigned card_count;
	struct card card[NODE_MAX_CARDS];
	struct topology *topology;
	struct gangs *gangs; /* NULL: each card by itself */

	struct tenant_list tenants;
	struct text_index tenant_names, tenant_ids;
	unsigned tenant_count;
	unsigned waiter_count; /* of them: that wait for memory (on_full "wait") */
	uint64_t arrivals;     /* that have begun to wait */
	struct admission_counts waits;
	uint64_t requests, refused; /* on the control socket */
	char *list_text;            /* the last reply to `list` there; NULL: none yet */
	uint64_t list_ns;           /* when it was begun */
	uint64_t allocation_failures[ALLOCATION_FAILURES]; /* of requests for a tenant */
	uint64_t live_changes,
		live_changes_refused; /* of containers' terms, by their pods' annotations */
	struct namespace_uses *namespaces;
	bool foreign_known; /* a census has told what processes of no tenant hold */
	struct past_use past_use[NODE_PAST_USES];
	struct gpu_records *records; /* of the daemon before, until the watch has them; NULL: none */
	bool use_loaded, use_unsaved, use_save_failed; /* see use_state.h */
	struct audit *audit;                           /* NULL: off */
	struct census *census;
	struct gpu_watch *watch; /* NULL: GPU work without the library is not looked at */
	struct claims *claims; /* see daemon/containers/claims/claims.h; NULL before it is opened */
	struct violations *violations;
	struct space_groups *space; /* groups that share a card at the same time: see daemon/space/space.h */
	struct health_watch *health; /* NULL: cards' health is not watched */
	uint64_t health_generation;  /* counts changes of any card's health or cordon */
	unsigned health_listener_count;
	struct health_listener health_listener[NODE_HEALTH_LISTENERS];
	struct control *control;
	struct plugin *plugin;                      /* NULL: the kubelet has none of ours */
	struct dra *dra;                            /* NULL: there is no DRA driver */
	json_t *(*dra_json)(const struct dra *dra); /* for "hello"; NULL: there is none */
	struct claim_holders *claim_holders;        /* the plugin's; NULL: nobody knows */
	struct metrics *metrics;                    /* NULL: nobody may ask */
	struct page *page;                          /* NULL: there is none */
	struct node_kube *kube;                     /* NULL: no Kubernetes is told of us */
	struct loop_source *tick;                   /* each second while there are tenants */
	struct loop_source *fresh_source;           /* is a census due before its time? */
	int fresh_fd;
	struct loop_source *census_timer; /* as often as the setting says, while there are tenants ... */
	uint64_t census_every_ns;         /* ... or more seldom, see census_every_ns() */
	struct loop_source *save_timer; /* state files to write soon */
	struct loop_source *use_timer;  /* that of use (use_state.h) */
	struct loop_source *adopt_timer;
	struct loop_source *linger_timer;
	struct loop_source *drain_timer;
	struct loop_source *admission_timer; /* a decision is due: see admission.h */
	struct swap_turns *swap_turns;  /* NULL: there was none yet whose memory can be moved */
	struct loop_source *swap_timer; /* while there are tenants whose memory can be moved */
};

/* NULL when there is none of that name or, failing that, id. */
struct tenant *node_find_tenant(struct node *node, const char *name_or_id);

struct card *node_find_card(struct node *node, const uint8_t uuid[16]);
/* The same, as gpu_uuid_parse() reads it. NULL also where it is none. */
struct card *node_find_card_text(struct node *node, const char *uuid);

/* Something changed that may give a waiting tenant memory: admission.h decides soon. Does little where none waits. */
void node_admit_soon(struct node *node);

/* use_state.h writes its file within three seconds, together with what else changes until then. */
void node_save_use_soon(struct node *node);
