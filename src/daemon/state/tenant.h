/*
 * One tenant: its terms on each card, its region, its socket and its processes. Main thread only.
 *
 * tenant_new() makes a tenant on request; tenant_adopt() makes it again after a restart.
 * tenant_remove() ends it. Two kinds of tenant end on their own: a held tenant (`hold`) when it has
 * neither a holder nor a live process, and a retired tenant when its last process ends.
 */
#pragma once

#include "daemon/arbitrate/region_host.h"
#include "daemon/gpu/nvml/census_policy.h"
#include "daemon/state/node/admission_state.h"
#include "daemon/state/node/node.h"
#include "daemon/state/slots.h"
#include "daemon/util/container.h"
#include "policy/lease/rules/turn_share.h"
#include "policy/memory/fade.h"
#include "policy/memory/promise.h"
#include "policy/safety/violation_policy.h"
#include "policy/space/sharing_mode.h"

#define TENANT_ID_MAX 9 /* 8 hex digits and the final NUL */
#define TENANT_CLAIM_MAX 320

enum on_full { ON_FULL_FAIL, ON_FULL_WAIT, ON_FULL_SWAP };
enum elastic_choice { ELASTIC_BY_SETTING, ELASTIC_CHOSEN_ON, ELASTIC_CHOSEN_OFF };

/* The claim that a tenant was made for: daemon/containers/claims/claims.h. */
struct tenant_claim {
	char key[TENANT_CLAIM_MAX]; /* "" if the tenant belongs to no claim */
	bool while_wanted;          /* the tenant also ends when its claim is no longer needed */
	bool is_uncontrolled;       /* the claim asks for a container without the library */
};

/*
 * The terms of a tenant, as requested. They are saved in the state file and read again at adoption.
 */
struct tenant_terms {
	char id[TENANT_ID_MAX];
	char name[REGION_NAME_MAX];
	uid_t uid;
	/*
	 * the tenant ends when it has no holder and no process; if false, only when it is removed
	 */
	bool hold;
	bool is_retired; /* removed, but lives until its processes end: tenant_retire() */
	bool paused;
	int priority;
	enum on_full on_full;
	uint64_t wait_timeout_ns;  /* longest wait of an allocation for memory; 0: no limit */
	uint64_t swap_arena_bytes; /* host memory for swapping, with ON_FULL_SWAP; else 0 */
	bool swapped_out;          /* swapped out on request; stays off the card until resumed */
	enum elastic_choice elastic;
	struct sharing_choice sharing; /* gets time slices, or runs concurrently with its group */
	/* what to do with a process in violation; a stricter action in the settings wins */
	enum on_violation on_violation;
	bool has_host_quota; /* there is a limit on page-locked host memory */
	uint64_t host_quota_bytes;
	unsigned device_count;
	struct tenant_device_terms {
		struct card *card;
		struct promise promise;
		/* the claim's slots of the card (slots.h); empty without a claim */
		struct slots slots;
	} device[REGION_MAX_DEVICES];
	struct tenant_claim claim;
};

/* How often a tenant's memory was moved off its cards, and back. */
struct swap_moves {
	uint64_t out, back;
};

struct tenant_device {
	struct lessee *lessee;
	/* of the tenant's ended processes: allocations refused; ns waited at the gate */
	uint64_t denied, waited_ns;
	double limit_logged_pct; /* the tenant's limit in percent as last logged; 0: never logged */
	uint64_t told_ns;        /* charged time already divided among the tenant's GPU tasks */
	uint64_t counted_ns;     /* charged time already added to the namespace's use */
	uint64_t published_ns;   /* charged time already added to the card's published use */
	uint64_t published_since_ns; /* when use_publisher.c first saw this device; 0: not yet */
	uint64_t worked_ns;          /* when charged time was last seen to grow; 0: never */
	struct census_over over;     /* counts censuses in a row that show more than the quota */
};

/* A process of the previous daemon that has not moved to this daemon yet. */
struct old_process {
	struct old_process *next;
	struct tenant *tenant;
	int pid;
	uint64_t start_time;
	bool registered; /* has a slot of this daemon and is still copying its usage */
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
	/* What census_compare.c keeps of the process for each device. */
	struct process_census {
		/* the slot's values when the running census was requested */
		uint64_t used_before, fresh_before, swapped_before;
		bool was_moving;
		/* the process's memory by NVML at the last census; 0: the process was not listed */
		uint64_t nvml_before;
		uint64_t beyond_before; /* by how much nvml_before exceeded the ledger */
		/*
		 * memory of the process that no call allocated, but that two censuses in a row
		 * showed: see census_compare.c
		 */
		uint64_t unnamed;
		/*
		 * the part of `unnamed` that the process's library had already measured and
		 * reported
		 */
		uint64_t measured;
		/*
		 * `over` counts the censuses in a row that show more memory than the ledger.
		 * `settled` counts those in a row whose figures are steady; the context's size is
		 * learned from them.
		 */
		struct census_over over, settled;
	} census[REGION_MAX_DEVICES];
	/*
	 * The cgroup of the process's container. "" if it is in no container; NULL if not looked up
	 * yet.
	 */
	char *cgroup;
	bool is_cgroup_v2;
	uint32_t library_version; /* the library's version (registration.h); 0: not reported */
};

struct tenant {
	TAILQ_ENTRY(tenant) link;
	struct text_index_entry by_name, by_id; /* its entries in the node's indexes */
	struct node *node;
	struct tenant_terms terms;
	struct region_host region;
	/*
	 * the tenant's number in the swap schedule (swap_turns.h); negative: none, or not assigned
	 * yet
	 */
	int swap_schedule;
	struct turn_share turn_share;
	/*
	 * factor by which the tenant's guarantee and cap are multiplied now; at least 1: see
	 * turn_share.h
	 */
	double share_scale;
	bool is_away; /* some or all of the tenant's memory is off the card, so it gets no lease */
	bool wants_room; /* an allocation of this swappable tenant waits for room on the card */
	/* at the last poll there was no room on the card for the memory that is off it */
	bool was_short;
	/* the helper that checkpoints the tenant; NULL: never requested */
	struct checkpoint *checkpoint;
	/* the request for a checkpoint: daemon/memory/swap/tenant_checkpoint.h */
	struct tenant_checkpoint *checkpoint_request;
	/*
	 * host memory for swapping; NULL unless ON_FULL_SWAP is set and this daemon made the tenant
	 */
	struct arena *arena;
	struct tenant_device device[REGION_MAX_DEVICES];
	struct tenant_admission admission;
	struct admission_counts waits;
	struct swap_moves moves;
	struct fade use;                           /* see use.h */
	uint64_t use_charged_ns;                   /* total charged time already added to `use` */
	struct process *process[REGION_MAX_SLOTS]; /* by slot */
	unsigned slot_limit, process_count;
	/* the tenant's number as a gang (daemon/arbitrate/gang_board.h); negative: none */
	int gang;
	bool started; /* a process has registered at least once */
	/* the group with which the tenant runs (daemon/space/space_groups.h); NULL: none */
	struct mps_group *space;
	/*
	 * pids of the tenant's last processes that ended, because the MPS server may report about
	 * them later
	 */
	int gone_pid[SPACE_GONE_PIDS];
	unsigned gone_count;
	char space_fault[SPACE_FAULT_MAX]; /* last fault of the tenant's group; "": none */
	bool corrupt; /* the tenant's report held an impossible value, so no process may register */
	/* number of the tenant's processes so far that were in violation, by reason */
	unsigned violations[VIOLATION_REASONS];
	unsigned holders;
	/* container in which a process of the tenant was last seen; "": in none */
	char container_id[CONTAINER_ID_MAX];
	int command_pid; /* descendants of this process belong to the tenant; 0: none */
	uint64_t command_start;
	/*
	 * reports the end of the tenant's command, if the command started before the daemon's
	 * restart
	 */
	struct loop_source *command_source;
	int command_pidfd; /* the pidfd of command_source; valid while command_source is not NULL */
	bool grace;        /* adopted; may lack holders and processes until grace_end_ns */
	uint64_t grace_end_ns;
	/* the previous daemon's processes that have not moved yet; NULL: none left */
	struct old_process *old;
	bool adopting;
	uint64_t adopting_end_ns;
	struct registration *registration; /* the socket where the tenant's processes register */
	/* the trace session that records the tenant; NULL: not traced */
	struct tenant_trace *trace;
	/*
	 * number of the tenant's last trace, as written in the trace's control page; 0: never
	 * traced
	 */
	uint32_t trace_order;
	struct sharing *sharing; /* descriptors that the tenant's processes share; NULL: none yet */
	bool unsaved;            /* the tenant's state file is out of date */
	bool save_failed;        /* a failure to save the tenant's state file has been logged */
	/* sum of the used bytes of the tenant's processes, as written in the state file */
	uint64_t saved_used_bytes;
};

/*
 * Sums over a tenant's live slots and its ended processes, for one device. Every value is bounded,
 * because processes can write anything into their slots.
 */
struct tenant_usage {
	uint64_t used_bytes;    /* includes unslotted and unnamed bytes */
	uint64_t unnamed_bytes; /* part of used_bytes that no call allocated but NVML shows */
	uint64_t denied, waited_ns;
};

/* The names are "fail", "wait" and "swap". Parsing any other text returns -EINVAL. */
const char *on_full_name(enum on_full on_full);
int on_full_parse(const char *text, enum on_full *ret);

/*
 * Makes the region, the directory, the socket and the leases of a tenant whose terms were checked.
 * Writes no state file: see tenant_state.h. If it fails, it removes everything that it made.
 */
int tenant_new(struct node *node, const struct tenant_terms *terms, struct tenant **ret,
	       struct error *err);
/*
 * Like tenant_new(), for a tenant whose files already exist. If it fails, those files stay as they
 * are.
 */
int tenant_adopt(struct node *node, const struct tenant_terms *terms, struct tenant **ret,
		 struct error *err);
/*
 * Frees the tenant in memory. Its files and its slots' values stay, because live processes carry
 * them over to the next daemon. NULL is allowed; returns NULL.
 */
struct tenant *tenant_free(struct tenant *tenant);
/* Frees the tenant and deletes its files. It must have no live process. */
void tenant_remove(struct tenant *tenant, const char *why);
/*
 * Counts the tenant's live processes. Processes of the previous daemon that have not moved over
 * count too.
 */
unsigned tenant_living_count(const struct tenant *tenant);
/*
 * Removes the tenant at once if it has no live process; returns false.
 *
 * Otherwise marks it as retired and returns true. No process may then join it or allocate beyond
 * what the tenant holds. Its name and promise stay reserved until the last process ends, so a
 * process that bypasses its quota cannot take memory that was promised to others.
 */
bool tenant_retire(struct tenant *tenant, const char *why);
/*
 * Returns -ESHUTDOWN if the tenant is retired: its terms may no longer change, and no process may
 * join.
 */
int tenant_check_not_retired(const struct tenant *tenant, struct error *err);
/* The two places where a tenant's directory may be: see tenant_dir_path(). */
enum tenant_place { TENANT_PLACE_OWN, TENANT_PLACE_CLAIM };
/* Deletes the directory of a tenant that is not in memory. Only files of the daemon are deleted. */
void tenant_delete_files(const struct node *node, enum tenant_place place, const char *id);
/* Removes a held or retired tenant if it has no holder and no live process. */
void tenant_end_if_unused(struct tenant *tenant);

/* Puts new terms of a device into force. The tenant must hold no more than the new quota. */
void tenant_set_promise(struct tenant *tenant, unsigned device, const struct promise *promise);
void tenant_set_priority(struct tenant *tenant, int priority);
/* Sets share_scale and puts the shares multiplied by it into force. */
void tenant_scale_share(struct tenant *tenant, double scale);
/* Returns the tenant's cap times share_scale, without what other tenants lend to it. */
double tenant_limit_pct(const struct tenant *tenant, unsigned device);

/*
 * Pauses or resumes the tenant. `swapped_out` (only with `paused`): its memory leaves the card too,
 * or has already left it.
 */
void tenant_set_paused(struct tenant *tenant, bool paused, bool swapped_out);
void tenant_set_elastic(struct tenant *tenant, enum elastic_choice choice);
void tenant_set_quota(struct tenant *tenant, unsigned device, uint64_t quota_bytes);
/*
 * Tells the tenant's processes the quota in force. If the tenant is off its card or retired, the
 * quota is at most what the tenant holds.
 */
void tenant_publish_quota(struct tenant *tenant, unsigned device);

/* Whether a checkpoint has moved the tenant off all its GPUs. */
bool tenant_is_off_card(const struct tenant *tenant);

/* Returns the tenant's usage of a device at one moment. */
struct tenant_usage tenant_usage(struct tenant *tenant, unsigned device);
/*
 * Returns the memory that a tenant with on_full "wait" occupies on a device: its grant, or what it
 * holds if that is more.
 */
uint64_t tenant_taken_bytes(struct tenant *tenant, unsigned device);
/*
 * Returns the page-locked host memory of the tenant's processes, by their slots. It counts towards
 * no card.
 */
uint64_t tenant_host_bytes(const struct tenant *tenant);
/* Returns the memory that the process holds, by its slot; at most the card's memory. */
uint64_t process_used_bytes(struct process *process, unsigned device);
/*
 * Returns the memory of the process that no call allocated: the amount that the last censuses
 * found, plus what the process's library measured since. At most the card's memory.
 */
uint64_t process_unnamed_bytes(struct process *process, unsigned device);
/*
 * Returns how much of the process's memory is not on the card (swap_orders.h,
 * daemon/memory/swap/tenant_checkpoint.h).
 */
uint64_t process_swapped_bytes(struct process *process, unsigned device);
/*
 * Whether the process's memory is being moved off the GPU or back. During the move, its slot may
 * already count bytes as swapped out while the driver still holds them.
 */
bool process_is_moving(const struct process *process);
/* Returns process_used_bytes() plus process_unnamed_bytes(). */
uint64_t process_held_bytes(struct process *process, unsigned device);

/*
 * Returns the key by which log lines about the tenant are rate-limited (log.h). A claim's tenant
 * has a key of its own; other tenants share the key of their user.
 */
uint32_t tenant_log_key(const struct tenant_terms *terms);

/*
 * Writes the tenant's state file (tenant_state.h) within 20 ms, together with all changes until
 * then.
 */
void tenant_save_soon(struct tenant *tenant);

/*
 * Writes "<run dir>/tenants/<id>", or "<run dir>/claims/<id>" for a claim's tenant, followed by
 * "/<leaf>" if `leaf` is not NULL. Only the daemon's user can enter "claims". So only a process with
 * a claim's directory mounted can open the socket in it, as any user.
 */
void tenant_path(const struct tenant *tenant, const char *leaf, char path[NODE_PATH_MAX]);
/*
 * Like tenant_path(), but takes the tenant's place and id. If `id` is NULL, gives the directory
 * that holds the tenants' directories.
 */
void tenant_dir_path(const struct node *node, enum tenant_place place, const char *id,
		     const char *leaf, char path[NODE_PATH_MAX]);
enum tenant_place tenant_place(const struct tenant_terms *terms);

/*
 * Gives a process the lowest free slot and, on success, takes ownership of *pidfd. Returns -ENOSPC
 * if all slots are in use.
 */
int tenant_add_process(struct tenant *tenant, int pid, uint64_t start_time, int *pidfd,
		       struct process **ret, struct error *err);
/*
 * Zeroes the slot and frees it. The memory that the process held counts as draining. Does not end
 * the tenant.
 */
void tenant_remove_process(struct process *process);
/*
 * Forgets the process without freeing its slot, whose values stay as they are. The leases must have
 * been removed.
 */
void tenant_forget_process(struct process *process);
/* Returns the tenant's process of that pid with the lowest slot, or NULL. */
struct process *tenant_process_of(struct tenant *tenant, int pid);
/* Frees every slot of the tenant that belongs to that pid. */
void tenant_remove_pid(struct tenant *tenant, int pid);

/*
 * Publishes to all tenants the free depth: how much work a tenant that runs alone may have in
 * flight (LEASE_FREE). It is small if another tenant has a process on the card, because that
 * process may want the card at any moment. Otherwise it is much larger, because a new process needs
 * about 0.1 s to make its context.
 *
 * Call after a tenant or process was added but before it is told so, and after a tenant or process
 * has gone.
 */
void tenant_publish_free_depth(struct node *node);
