/*
 * The node is the daemon's whole state: cards, tenants, and the event loop. Only the main thread uses it. The threads of the
 * arbitration and of the census use only the parts that their headers name.
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
#include "daemon/state/node/memory_wait.h"
#include "daemon/util/lock.h"
#include "policy/memory/fade.h"
#include "policy/safety/health_policy.h"
#include "net/loop.h"

#define NODE_MAX_CARDS 64

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
/* With a longer run directory, the path of a tenant's socket would not fit struct sockaddr_un. */
#define NODE_RUN_DIR_MAX 80
#define NODE_PATH_MAX 160 /* any path below the run directory */

struct subsystem;
struct tenant;
struct audit;
struct namespace_uses;
struct census;
struct claim_holders;
struct claims;
struct command_cgroups;
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
	struct sensor *sensor; /* NULL unless the policy measures use by NVML */
	/* locks that make this daemon the card's only arbiter: lock.h; -1: not held */
	int lock_fd[LOCK_DIRS];
	/* memory charged per CUDA context: from the settings, then learned from NVML */
	uint64_t context_bytes;
	/* NVML's smallest figure for a process with a context; context_bytes is learned from it */
	struct census_least context_least;
	/* memory_used_bytes (NVML's figure at the last census) is valid */
	bool memory_known;
	uint64_t memory_used_bytes;
	/* memory of dead processes that the driver still holds: drain.h */
	struct drain *drains;
	/* unlisted_bytes (used memory that no process on NVML's list holds) is valid */
	bool unlisted_known;
	uint64_t unlisted_bytes;
	/* memory of processes that belong to no tenant, by the last census: census_compare.h */
	uint64_t foreign_bytes;
	uint64_t kept_bytes; /* free memory that grant_decide() has reserved for waiting tenants */
	uint64_t swapped_out_bytes; /* total bytes that were moved off this card so far */
	uint64_t returning_bytes; /* memory reserved for containers that return from a checkpoint */
	struct health health;
	uint64_t faults[GPU_FAULT_KINDS];
	bool is_cordoned, is_cordoned_by_settings;
};

#define NODE_HEALTH_LISTENERS 4
struct health_listener {
	void (*handler)(void *data, struct card *card);
	void *data;
};

TAILQ_HEAD(tenant_list, tenant);

#define NODE_PAST_USES 256
/* The GPU time that an ended tenant had used; it decays over time (use.h). */
struct past_use {
	char name[REGION_NAME_MAX]; /* "": this entry is empty */
	uid_t uid;
	struct fade use;
};

struct node {
	const struct subsystem *subsystems; /* the array ends with a row without a name */
	struct config config;
	const char *config_file; /* real path of the file of settings; NULL: there is none */
	char run_dir[NODE_RUN_DIR_MAX];
	bool is_private; /* one user's daemon: others have no access to its files */
	bool lingers;    /* the daemon ends after config.linger_ns without tenants */
	bool populated;
	/* all cards' arbitration threads slept when `tick` last ran */
	bool slept_at_tick;
	bool simulated;
	/* real path of the simulator's socket; "": not simulated */
	char sim_socket[NODE_PATH_MAX];
	/* identifies this run of the daemon; fits a JSON integer; never 0 */
	uint64_t epoch;
	gid_t admin_gid; /* group "allot"; (gid_t)-1: no such group */

	struct loop *loop;
	const struct gpu_backend *backend;
	const char *gpu_source; /* argument of the backend's open(); owned by the caller */
	struct gpu *gpu;
	unsigned card_count;
	struct card card[NODE_MAX_CARDS];
	struct topology *topology;
	/* aligns the turns of a tenant that has several cards; NULL: turns are not aligned */
	struct gangs *gangs;

	struct tenant_list tenants;
	struct text_index tenant_names, tenant_ids;
	unsigned tenant_count;
	unsigned waiter_count; /* tenants with on_full "wait" */
	/* number of waits for memory that ever began */
	uint64_t arrivals;
	struct memory_wait_counts waits;
	/* requests on the control socket, and how many of them were refused */
	uint64_t requests, refused;
	/* last reply to `list`; it may also answer requests that came before list_ns; NULL: none */
	char *list_text;
	uint64_t list_ns; /* when we began to make list_text */
	/* failed requests to make a tenant, by reason */
	uint64_t allocation_failures[ALLOCATION_FAILURES];
	/* changes of containers' terms by their pods' annotations: made, refused */
	uint64_t live_changes, live_changes_refused;
	struct namespace_uses *namespaces;
	/* a census has measured the memory of processes that belong to no tenant */
	bool foreign_known;
	struct past_use past_use[NODE_PAST_USES];
	/* the previous daemon's records of GPU work, until the GPU watch takes them; NULL: none */
	struct gpu_records *records;
	bool use_loaded, use_unsaved, use_save_failed; /* see use_state.h */
	struct audit *audit;                           /* NULL: off */
	struct census *census;
	struct gpu_watch *watch; /* NULL: GPU work without the library is not watched */
	struct claims *claims;
	struct violations *violations;
	struct command_cgroups *commands;
	struct time_readings *time_readings;
	struct space_groups *space;
	struct health_watch *health; /* NULL: health is not watched */
	unsigned health_listener_count;
	struct health_listener health_listener[NODE_HEALTH_LISTENERS];
	struct control *control;
	struct plugin *plugin;
	struct dra *dra;
	/* makes the DRA driver's part of the reply to "hello" */
	json_t *(*dra_json)(const struct dra *dra);
	/* which containers hold claims; set by the device plugin; NULL: unknown */
	struct claim_holders *claim_holders;
	struct metrics *metrics;
	struct page *page;
	struct node_kube *kube;
	struct loop_source *tick; /* runs each second while there are tenants */
	/* for memory_event_fd, which arbitration threads write to */
	struct loop_source *memory_event_source;
	int memory_event_fd;
	struct loop_source *census_timer; /* periodic census while there are tenants */
	/* interval of census_timer: the setting or longer, by census_every_ns() */
	uint64_t census_every_ns;
	struct loop_source *save_timer; /* writes state files that have changed */
	struct loop_source *use_timer;  /* writes use.json (use_state.h) */
	struct loop_source *adopt_timer;
	struct loop_source *linger_timer;
	struct loop_source *drain_timer;
	struct loop_source *memory_wait_timer; /* runs memory_wait_due(); see node_grant_soon() */
	struct swap_turns *swap_turns;         /* NULL: no tenant has had movable memory yet */
	struct loop_source *swap_timer;        /* runs while tenants have movable memory */
};

/* by name, or else by id; NULL if there is none */
struct tenant *node_find_tenant(struct node *node, const char *name_or_id);

/* NULL if there is none */
struct card *node_find_card(struct node *node, const uint8_t uuid[16]);
/* NULL if the text is no UUID (gpu_uuid_parse()) or no card has it */
struct card *node_find_card_text(struct node *node, const char *uuid);

/*
 * Makes memory_waiters.h decide soon which waiting tenants get memory. Call when something changed that may give memory to a
 * waiting tenant. Cheap if no tenant waits.
 */
void node_grant_soon(struct node *node);

/* Writes use.json (use_state.h) within three seconds, with all changes until then. */
void node_save_use_soon(struct node *node);
