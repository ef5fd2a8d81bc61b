/*
 * A tenant is the unit to which allotd gives parts of GPUs. Its processes have common terms (quota, share, ...) on each card,
 * a shared memory region, and a socket. A held tenant (`hold`) ends when it has neither a client that holds it (a holder) nor
 * a live process. A retired tenant ends when its last process ends. Any other tenant ends by tenant_remove(). Main thread
 * only.
 */
#pragma once

#include "daemon/arbitrate/region_host.h"
#include "daemon/gpu/nvml/census_policy.h"
#include "daemon/state/node/memory_wait.h"
#include "daemon/state/node/node.h"
#include "daemon/state/slots.h"
#include "daemon/util/container.h"
#include "policy/lease/rules/turn_share.h"
#include "policy/memory/fade.h"
#include "policy/memory/promise.h"
#include "policy/safety/violation_policy.h"
#include "policy/space/sharing_mode.h"

#define TENANT_ID_MAX 9 /* 8 hexadecimal digits and a NUL */
#define TENANT_CLAIM_MAX 320

enum on_full { ON_FULL_FAIL, ON_FULL_WAIT, ON_FULL_SWAP };
enum elastic_choice { ELASTIC_BY_SETTING, ELASTIC_CHOSEN_ON, ELASTIC_CHOSEN_OFF };

/* The claim that a tenant was made for: daemon/containers/claims/claims.h. */
struct tenant_claim {
	char key[TENANT_CLAIM_MAX]; /* "" if the tenant belongs to no claim */
	/* claims_reconcile() may end the claim and the tenant when the claim is not needed any more */
	bool while_wanted;
	bool is_uncontrolled; /* the claim asks for a container without the library */
};

/* A tenant's terms, as requested. Saved in the state file, for the next daemon. */
struct tenant_terms {
	char id[TENANT_ID_MAX];
	char name[REGION_NAME_MAX];
	uid_t uid;
	/* the tenant ends once it has neither a holder nor a process; if false, it ends only by removal */
	bool hold;
	bool is_retired; /* removed, but lives until its processes end: tenant_retire() */
	bool paused;
	int priority;
	enum on_full on_full;
	uint64_t wait_timeout_ns;  /* longest wait of an allocation for memory; 0: no limit */
	uint64_t swap_arena_bytes; /* host memory for swapping, with ON_FULL_SWAP; else 0 */
	bool swapped_out;          /* swapped out by request; stays off the card until resumed */
	enum elastic_choice elastic;
	struct sharing_choice sharing; /* time slices, or concurrent running in a group */
	/* action on a violation; a stricter one in the settings wins */
	enum on_violation on_violation;
	bool has_host_quota; /* page-locked host memory is limited */
	uint64_t host_quota_bytes;
	unsigned device_count;
	struct tenant_device_terms {
		struct card *card;
		struct promise promise;
		/* parts of the card that the claim has (slots.h); empty without a claim */
		struct slots slots;
	} device[REGION_MAX_DEVICES];
	struct tenant_claim claim;
};

/* How often memory was moved off the cards, and back. */
struct swap_moves {
	uint64_t out, back;
};

struct tenant_device {
	struct lessee *lessee;
	/* guarantee in force: less than the promise if the card's guarantees exceed 100 % (node_update_guarantees()) */
	double guaranteed_pct;
	/* sums over ended processes: refused allocations, and ns waited until a launch was allowed */
	uint64_t denied, waited_ns;
	double limit_logged_pct; /* as last logged; 0: never */
	uint64_t attributed_ns;  /* charged time already divided among the tenant's GPU tasks */
	/* charged time already added to the use of the Kubernetes namespace */
	uint64_t counted_ns;
	uint64_t published_ns;       /* charged time already added to the card's published use */
	uint64_t published_since_ns; /* when use_publisher.c first saw this device; 0: not yet */
	uint64_t worked_ns;          /* when charged time was last seen to grow; 0: never */
	/* how many censuses in a row have shown more memory than the quota */
	struct census_over over;
};

/* A process of the previous daemon that has not moved to this daemon yet. */
struct old_process {
	struct old_process *next;
	struct tenant *tenant;
	int pid;
	uint64_t start_time;
	bool registered; /* has a slot of this daemon, and is still copying its usage */
	unsigned slot;
	int pidfd;
	struct loop_source *source;
	uint64_t used_bytes[REGION_MAX_DEVICES];
};

struct process {
	struct tenant *tenant;
	unsigned slot;
	int pid;
	uint64_t start_time;
	int pidfd;
	struct loop_source *source;
	/* for census_compare.c */
	struct process_census {
		/* the process slot's values when the census in progress was requested */
		uint64_t used_before, fresh_before, swapped_before;
		bool was_moving;
		/* the process's memory at the last census, as NVML reports it; 0: not listed */
		uint64_t nvml_before;
		uint64_t beyond_before; /* by how much nvml_before exceeded the ledger */
		/* memory that no allocation call explains, but two censuses showed: census_compare.c */
		uint64_t unnamed;
		/* the part of `unnamed` that the library had already reported */
		uint64_t measured;
		/*
		 * `over` counts the censuses in a row in which NVML shows more than the ledger. `settled` counts those in which
		 * NVML's figure is steady, so that the context's size can be learned from it.
		 */
		struct census_over over, settled;
	} census[REGION_MAX_DEVICES];
	/* cgroup of the process's container; "": the process is in no container; NULL: not looked up yet */
	char *cgroup;
	bool is_cgroup_v2;
	uint32_t library_version; /* version of the library (registration.h); 0: not reported */
};

struct tenant {
	TAILQ_ENTRY(tenant) link;
	struct text_index_entry by_name, by_id;
	struct node *node;
	struct tenant_terms terms;
	struct region_host region;
	/* number in the swap schedule (swap_turns.h); negative: none */
	int swap_schedule;
	struct turn_share turn_share;
	/* guarantee and limit are multiplied by this factor, which is at least 1: turn_share.h */
	double share_scale;
	bool is_away;    /* some memory is off the card, so the tenant gets no lease */
	bool wants_room; /* an allocation of this swappable tenant waits for room on the card */
	/* when swap_turns.c last checked, the card had no room for the tenant's swapped memory */
	bool was_short;
	/* helper that checkpoints the tenant; NULL: never requested */
	struct checkpoint *checkpoint;
	struct tenant_checkpoint *checkpoint_request;
	/* host memory for swapping; NULL unless ON_FULL_SWAP is set and this daemon made the tenant */
	struct arena *arena;
	struct tenant_device device[REGION_MAX_DEVICES];
	struct memory_wait memory_wait;
	struct memory_wait_counts waits;
	struct swap_moves moves;
	struct fade use;         /* GPU time used, decaying: use.h */
	uint64_t use_charged_ns; /* charged time that was already added to `use` */
	struct process *process[REGION_MAX_SLOTS]; /* by slot */
	unsigned slot_limit, process_count;
	/* number on the board of gangs (daemon/arbitrate/gang_board.h); negative: none */
	int gang;
	bool started; /* a process has registered */
	/* group with which the tenant runs concurrently (daemon/space/space_groups.h); NULL: none */
	struct mps_group *space;
	/* pids of the last processes that ended: MPS may report about them later */
	int gone_pid[SPACE_GONE_PIDS];
	unsigned gone_count;
	char space_fault[SPACE_FAULT_MAX]; /* last fault of the group; "": none */
	bool corrupt; /* the tenant's report held an impossible value, so no process may register */
	/* processes in violation so far, by reason */
	unsigned violations[VIOLATION_REASONS];
	struct violation_track unregistered; /* censuses that showed its unregistered processes */
	unsigned holders;
	/* container in which a process was last seen; "": none */
	char container_id[CONTAINER_ID_MAX];
	/* path in cgroup version 2 of the command's own cgroup (daemon/tasks/commands/command_cgroups.h); NULL: it has none */
	char *command_cgroup;
	uint64_t command_cgroup_id;
	/* processes of the command that were told to end for a violation */
	unsigned command_offenders;
	/* when all processes in that cgroup are killed for a violation; 0: never */
	uint64_t command_end_ns;
	int command_pid; /* descendants of this process belong to the tenant; 0: none */
	uint64_t command_start;
	/* reports the end of command_pid; NULL unless this command started before this daemon */
	struct loop_source *command_source;
	int command_pidfd; /* valid while command_source is not NULL */
	/* an earlier daemon's tenant may lack holders and processes until grace_end_ns */
	bool grace;
	uint64_t grace_end_ns;
	/* the previous daemon's processes that have not joined this daemon, or still copy their use to it; NULL: none */
	struct old_process *old;
	bool adopting;
	uint64_t adopting_end_ns;
	struct registration *registration; /* socket where the tenant's processes register */
	/* trace session that records the tenant; NULL: not traced */
	struct tenant_trace *trace;
	/* number of the last trace, also in the region's control half; 0: never traced */
	uint32_t trace_order;
	struct fd_store *fd_store; /* descriptors that processes share; NULL: none yet */
	bool unsaved;              /* the state file is out of date */
	bool save_failed;          /* a failure to save the state file was logged */
	/* sum of the processes' used bytes, as in the state file */
	uint64_t saved_used_bytes;
};

/*
 * Sums over a tenant's processes on one device; denied and waited_ns include ended processes. Each value is capped,
 * since processes can write anything into their slots.
 */
struct tenant_usage {
	uint64_t used_bytes;    /* includes unnamed_bytes and the region's unslotted_bytes */
	uint64_t unnamed_bytes; /* the part of used_bytes that no call allocated but NVML shows */
	uint64_t denied, waited_ns;
};

/* The names are "fail", "wait" and "swap". Parsing another text returns -EINVAL. */
const char *on_full_name(enum on_full on_full);
int on_full_parse(const char *text, enum on_full *ret);

/*
 * Makes the tenant's region, directory, socket and leases. The caller has checked the terms. Writes no state file
 * (tenant_state.h). After a failure, nothing of the tenant is left.
 */
int tenant_new(struct node *node, const struct tenant_terms *terms, struct tenant **ret,
	       struct error *err);
/* Like tenant_new(), for a tenant whose files exist. After a failure, the files stay as they are. */
int tenant_adopt(struct node *node, const struct tenant_terms *terms, struct tenant **ret,
		 struct error *err);
/* Frees the tenant in memory. Its files and the slots of live processes stay. NULL is allowed; returns NULL. */
struct tenant *tenant_free(struct tenant *tenant);
/* No process of the tenant may live. `why` is logged; it is NULL if the tenant could not be made. */
void tenant_remove(struct tenant *tenant, const char *why);
/* Counts live processes, including those of the previous daemon that have not joined this one. */
unsigned tenant_living_count(const struct tenant *tenant);
/*
 * If no process lives, removes the tenant and returns false. Otherwise retires it and returns true: no new process may join,
 * and the tenant may not allocate more than it holds. Name and promise stay reserved until the last process ends, so that even
 * a process that bypasses the library uses no memory that is promised to others.
 */
bool tenant_retire(struct tenant *tenant, const char *why);
/* Returns -ESHUTDOWN for a retired tenant. */
int tenant_check_not_retired(const struct tenant *tenant, struct error *err);
/* The places where a tenant's directory may be: tenant_dir_path(). */
enum tenant_place { TENANT_PLACE_OWN, TENANT_PLACE_CLAIM };
/* Deletes the daemon's files in a tenant's directory, then the directory if it is empty. The tenant need not be in memory. */
void tenant_delete_files(const struct node *node, enum tenant_place place, const char *id);
/* Removes a retired tenant that has no live process, and a held tenant that also has no holder and whose `grace` is over. */
void tenant_end_if_unused(struct tenant *tenant);

/* Puts new terms of a device into force. The tenant must hold no more than the new quota. */
void tenant_set_promise(struct tenant *tenant, unsigned device, const struct promise *promise);
void tenant_set_guarantee(struct tenant *tenant, unsigned device, double guaranteed_pct);
void tenant_set_priority(struct tenant *tenant, int priority);
/* Sets share_scale, and puts the scaled shares into force. */
void tenant_scale_share(struct tenant *tenant, double scale);
/* Returns the guarantee in force and the tenant's own limit, times share_scale. Time that other tenants lend does not count. */
struct arbiter_share tenant_share(const struct tenant *tenant, unsigned device);
/* Returns the limit of tenant_share(). */
double tenant_limit_pct(const struct tenant *tenant, unsigned device);
/* Returns how far the share of the last minute is from the share that was asked for (policy/lease/rules/share_delta.h). */
double tenant_delta_pct(const struct tenant *tenant, unsigned device,
			const struct lessee_figures *figures);

/* Pauses or resumes. `swapped_out` (only with `paused`): the tenant's memory leaves the card too, or has left it. */
void tenant_set_paused(struct tenant *tenant, bool paused, bool swapped_out);
void tenant_set_elastic(struct tenant *tenant, enum elastic_choice choice);
void tenant_set_quota(struct tenant *tenant, unsigned device, uint64_t quota_bytes);
/* Publishes the quota to the processes. For a tenant that is off the card or retired, publishes no more than it holds. */
void tenant_publish_quota(struct tenant *tenant, unsigned device);

/* Returns true while a tenant waits for processes of the previous daemon, at most for config.adopt_wait_ns. */
bool tenant_is_any_adopting(const struct node *node);
/* Returns true if a checkpoint has moved the tenant off all GPUs. */
bool tenant_is_off_card(const struct tenant *tenant);

/* Returns the usage of a device at one moment. */
struct tenant_usage tenant_usage(struct tenant *tenant, unsigned device);
/* Returns the memory that the tenant holds on all its devices. */
uint64_t tenant_used_bytes(struct tenant *tenant);
/* Returns the memory that a tenant with on_full "wait" occupies: its grant or, if that is more, the memory that it holds. */
uint64_t tenant_taken_bytes(struct tenant *tenant, unsigned device);
/* Returns what counts as the tenant's: its quota; with on_full "wait", what it occupies; without a quota, what it holds. */
uint64_t tenant_counted_bytes(struct tenant *tenant, unsigned device);
/* Returns the page-locked host memory that the processes report in their slots. No card's quota counts this memory. */
uint64_t tenant_host_bytes(const struct tenant *tenant);
/* Returns the memory that the process reports in its slot; at most the card's memory. */
uint64_t process_used_bytes(struct process *process, unsigned device);
/*
 * Returns the process's memory that no allocation call explains: as found by the last censuses, plus what the library has
 * measured since then. At most the card's memory.
 */
uint64_t process_unnamed_bytes(struct process *process, unsigned device);
/* Returns the process's memory that is not on the card: swap_orders.h, daemon/memory/swap/tenant_checkpoint.h. */
uint64_t process_swapped_bytes(struct process *process, unsigned device);
/*
 * Returns true while the library moves the process's memory off the GPU or back (on_full "swap"). The slot may then count bytes
 * as swapped out that the driver still holds.
 */
bool process_is_moving(const struct process *process);
/* Returns process_used_bytes() plus process_unnamed_bytes(). */
uint64_t process_held_bytes(struct process *process, unsigned device);

/*
 * Returns the key by which the rate of log lines is limited (log.h). A claim's tenant has its own key; all other tenants of
 * a user have the same key.
 */
uint32_t tenant_log_key(const struct tenant_terms *terms);

/* Writes the state file (tenant_state.h) within 20 ms, with all changes until then. */
void tenant_save_soon(struct tenant *tenant);

/*
 * Gives "<run dir>/tenants/<id>", or "<run dir>/claims/<id>" for a claim's tenant, with "/<leaf>" unless `leaf` is NULL. Only
 * the daemon's user can enter "claims". So only a process in whose container a claim's directory is mounted can open the
 * socket in it.
 */
void tenant_path(const struct tenant *tenant, const char *leaf, char path[NODE_PATH_MAX]);
/* Like tenant_path(). If `id` is NULL, gives the directory that holds the tenants' directories. */
void tenant_dir_path(const struct node *node, enum tenant_place place, const char *id,
		     const char *leaf, char path[NODE_PATH_MAX]);
enum tenant_place tenant_place(const struct tenant_terms *terms);

/* Gives a process the lowest free slot. On success takes *pidfd. Returns -ENOSPC if all slots are used. */
int tenant_add_process(struct tenant *tenant, int pid, uint64_t start_time, int *pidfd,
		       struct process **ret, struct error *err);
/* The process's memory counts as taken until the driver has freed it (drain.h). Does not end the tenant. */
void tenant_remove_process(struct process *process);
/* Frees `process`, but keeps its slot's values. First remove it from the tenant's lessees (lessee_remove_process()). */
void tenant_forget_process(struct process *process);
/* Returns the process with this pid; if the pid has several slots, the lowest one. NULL if there is none. */
struct process *tenant_process_of(const struct tenant *tenant, int pid);
void tenant_remove_pid(struct tenant *tenant, int pid);

/*
 * Publishes how much work a tenant that runs alone may have in flight (LEASE_FREE): little if another tenant has a process on
 * the card, because that process may need the card at any moment. Call before the first request of a new tenant or process is
 * answered, and after a tenant or process has gone.
 */
void tenant_publish_free_depth(struct node *node);
