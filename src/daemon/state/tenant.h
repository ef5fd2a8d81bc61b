/*
 * One tenant: its terms on each card, its region, its socket, its processes. Main thread only.
 *
 * Life: made by tenant_new() (create, or adoption after a restart), ended by tenant_remove(), or by
 * itself: a held tenant ends when neither a holder nor a live process of it is left, a retired one with
 * its processes.
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
#include "policy/space/choice.h"

#define TENANT_ID_MAX 9 /* hex digits and NUL */
#define TENANT_CLAIM_MAX 320

enum on_full { ON_FULL_FAIL, ON_FULL_WAIT, ON_FULL_SWAP };
enum elastic_choice { ELASTIC_BY_SETTING, ELASTIC_CHOSEN_ON, ELASTIC_CHOSEN_OFF };

/* The claim that a tenant was made for: daemon/containers/claims/claims.h. */
struct tenant_claim {
	char key[TENANT_CLAIM_MAX]; /* "": none */
	bool while_wanted;          /* ends also when nobody needs it */
	bool is_uncontrolled;       /* its container gets no library, by its own wish */
};

/* What a tenant is, as asked for, persisted and adopted. */
struct tenant_terms {
	char id[TENANT_ID_MAX];
	char name[REGION_NAME_MAX];
	uid_t uid;
	bool hold;       /* lives while held or populated; else until removed */
	bool is_retired; /* removed, and ends with its processes: tenant_retire() */
	bool paused;
	int priority;
	enum on_full on_full;
	uint64_t wait_timeout_ns; /* an allocation waits for memory so long at most; 0: without a limit */
	uint64_t swap_arena_bytes; /* of host memory, with ON_FULL_SWAP; 0: none */
	bool swapped_out;          /* by request: off the card until it is resumed */
	enum elastic_choice elastic;
	struct sharing_choice sharing;  /* in turns, or at the same time as its group */
	enum on_violation on_violation; /* at least: the setting may be stricter */
	bool has_host_quota;            /* of page-locked host memory */
	uint64_t host_quota_bytes;
	unsigned device_count;
	struct tenant_device_terms {
		struct card *card;
		struct promise promise;
		struct slots slots; /* of a claim's; else none */
	} device[REGION_MAX_DEVICES];
	struct tenant_claim claim;
};

/* Times that the memory of tenants was moved off their cards, and back. */
struct swap_moves {
	uint64_t out, back;
};

struct tenant_device {
	struct lessee *lessee;
	uint64_t denied, waited_ns;  /* of processes that are gone */
	double limit_logged_pct;     /* the limit in force that the log has; 0: none yet */
	uint64_t told_ns;            /* of the time charged, what its GPU tasks have been told */
	uint64_t counted_ns;         /* of it, what is in its namespace's use */
	uint64_t published_ns;       /* of it, what is in its card's published use ... */
	uint64_t published_since_ns; /* ... which has it in view since then; 0: not yet */
	uint64_t worked_ns;          /* when it was last seen to have been charged more; 0: never */
	struct census_over over;     /* NVML shows more than the quota */
};

/* A process that a daemon before this one knew, and that has not moved over yet. */
struct old_process {
	struct old_process *next;
	struct tenant *tenant;
	int pid;
	uint64_t start_time;
	bool registered; /* has a slot again, and is copying */
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
	/* census.c: the ledger when the census was asked for, and what was found before. */
	struct process_census {
		/* When the census was asked for: what its slot said. */
		uint64_t used_before, fresh_before, swapped_before;
		bool was_moving;
		uint64_t nvml_before;   /* of the last census; 0: not seen */
		uint64_t beyond_before; /* what that showed beyond the ledger */
		uint64_t unnamed;       /* what two in a row showed: see census_compare.c */
		uint64_t measured;      /* the most that its library measured itself of that */
		struct census_over over, settled; /* more than the ledger; fit to learn from */
	} census[REGION_MAX_DEVICES];
	/* Its container's cgroup: "": in none; NULL: not looked for yet. */
	char *cgroup;
	bool is_cgroup_v2;
	uint32_t library_version; /* as registration.h has it; 0: not told */
};

struct tenant {
	TAILQ_ENTRY(tenant) link;
	struct text_index_entry by_name, by_id; /* in the node's */
	struct node *node;
	struct tenant_terms terms;
	struct region_host region;
	int swap_schedule; /* its number in swap_turns.h; negative: none, or not yet */
	struct turn_share turn_share;
	double share_scale; /* of guarantee and cap now, at least 1: see turn_share.h */
	bool is_away;       /* its memory is not on the card, or not all of it: no lease */
	bool wants_room;    /* an allocation of a swappable one waits for room on the card */
	bool was_short;     /* at the last look: no room to return to */
	struct checkpoint *checkpoint; /* of its processes; NULL: never asked for ... */
	struct tenant_checkpoint *checkpoint_request; /* ... as this: daemon/memory/swap/tenant_checkpoint.h */
	struct arena *arena; /* of a tenant that this daemon made, with ON_FULL_SWAP; else NULL */
	struct tenant_device device[REGION_MAX_DEVICES];
	struct tenant_admission admission;
	struct admission_counts waits;
	struct swap_moves moves;
	struct fade use;         /* see use.h ... */
	uint64_t use_charged_ns; /* ... charged in all, when that was added last */
	struct process *process[REGION_MAX_SLOTS]; /* by slot */
	unsigned slot_limit, process_count;
	int gang; /* its number among those that may be gangs (daemon/arbitrate/gang.h); negative: none */
	bool started;                  /* a process has registered, ever */
	struct mps_group *space;       /* of whom shares by space; see daemon/space/space.h */
	int gone_pid[SPACE_GONE_PIDS]; /* of it, that ended last: what is told of them comes later */
	unsigned gone_count;
	char space_fault[SPACE_FAULT_MAX]; /* what befell its group last; "": nothing */
	bool corrupt; /* its report held what can't be: no more registrations */
	unsigned violations[VIOLATION_REASONS]; /* processes, ever */
	unsigned holders;
	char container_id[CONTAINER_ID_MAX]; /* where a process of it was seen last; "": in none */
	int command_pid; /* what descends from this process is the tenant's; 0: none */
	uint64_t command_start;
	struct loop_source *command_source; /* of a command before the restart: when it ends */
	int command_pidfd;                  /* of that; valid with command_source */
	bool grace; /* adopted: may be without holder and process for a while */
	uint64_t grace_end_ns;
	struct old_process *old; /* adoption; NULL: all moved, or none */
	bool adopting;
	uint64_t adopting_end_ns;
	struct registration *registration; /* its socket */
	struct tenant_trace *trace;        /* its session's; NULL: nobody traces it */
	uint32_t trace_order;    /* of the last trace, as in its control page; 0: there was none */
	struct sharing *sharing; /* what its processes give each other; NULL: nothing yet */
	bool unsaved;            /* the state file is behind */
	bool save_failed;        /* said so once */
	uint64_t saved_used_bytes; /* sum over all that the state file says */
};

/* Sums over a tenant's live slots and what its dead ones left, every value bounded. */
struct tenant_usage {
	uint64_t used_bytes;    /* unslotted and unnamed bytes included */
	uint64_t unnamed_bytes; /* of these: no call named them, NVML shows them */
	uint64_t denied, waited_ns;
};

/* "fail", "wait", "swap"; -EINVAL for another text. */
const char *on_full_name(enum on_full on_full);
int on_full_parse(const char *text, enum on_full *ret);

/*
 * Makes the region, the directory, the socket and the leases of a tenant whose terms were checked.
 * Writes no state file: see tenant_state.h. On failure nothing is left behind that was not there.
 */
int tenant_new(struct node *node, const struct tenant_terms *terms, struct tenant **ret,
	       struct error *err);
/* The same for a tenant whose files exist already: a failure leaves those as they are. */
int tenant_adopt(struct node *node, const struct tenant_terms *terms, struct tenant **ret,
		 struct error *err);
/*
 * Forgets the tenant; its files stay, and so does what its slots say: living processes carry that over
 * to the next daemon. NULL is fine; returns NULL.
 */
struct tenant *tenant_free(struct tenant *tenant);
/* Forgets the tenant and deletes its files. No process of it may live. */
void tenant_remove(struct tenant *tenant, const char *why);
/* Its processes that live, those of the daemon before that have not moved over included. */
unsigned tenant_living_count(const struct tenant *tenant);
/*
 * Removes the tenant at once if no process of it lives. Otherwise no more may join, none may allocate
 * beyond what the tenant holds, and its name and promise stay taken until the last has ended: a process
 * that gets round its quota takes nothing that was promised to others. True: such processes live.
 */
bool tenant_retire(struct tenant *tenant, const char *why);
/* -ESHUTDOWN of a retired tenant: its terms stay as they are. */
int tenant_check_not_retired(const struct tenant *tenant, struct error *err);
/* A place of the two that a tenant's directory may be in: see tenant_dir_path(). */
enum tenant_place { TENANT_PLACE_OWN, TENANT_PLACE_CLAIM };
/* Deletes the directory of a tenant that is not in memory, as far as it holds what is ours. */
void tenant_delete_files(const struct node *node, enum tenant_place place, const char *id);
/* Removes a tenant that is held or retired, when nobody holds it and no process lives in it. */
void tenant_end_if_unused(struct tenant *tenant);

/* Puts new terms of a device into force. The tenant holds no more than the quota. */
void tenant_set_promise(struct tenant *tenant, unsigned device, const struct promise *promise);
void tenant_set_priority(struct tenant *tenant, int priority);
/* In its turn on the card: its guarantee and its cap are so many times what was promised. */
void tenant_scale_share(struct tenant *tenant, double scale);
/* Its cap in this turn, before anything is lent to it. */
double tenant_limit_pct(const struct tenant *tenant, unsigned device);

/* swapped_out, of one that is paused: its memory leaves the card as well, or has left it. */
void tenant_set_paused(struct tenant *tenant, bool paused, bool swapped_out);
void tenant_set_elastic(struct tenant *tenant, enum elastic_choice choice);
void tenant_set_quota(struct tenant *tenant, unsigned device, uint64_t quota_bytes);
/* Tells its processes the quota in force: if it is off its card or retired, no more than it holds. */
void tenant_publish_quota(struct tenant *tenant, unsigned device);

/* It is out by checkpoint: nothing of it is on a GPU. */
bool tenant_is_off_card(const struct tenant *tenant);

struct tenant_usage tenant_usage(struct tenant *tenant, unsigned device);
/* What a tenant that waits takes of the GPU of its device: what it was granted, or holds beyond that. */
uint64_t tenant_taken_bytes(struct tenant *tenant, unsigned device);
/* Page-locked host memory of the tenant's processes, as their slots say: no figure of any card. */
uint64_t tenant_host_bytes(const struct tenant *tenant);
/* What one process's slot says it holds, bounded by the card. */
uint64_t process_used_bytes(struct process *process, unsigned device);
/* What no call named: as measured by the last censuses, and by its library since. Bounded likewise. */
uint64_t process_unnamed_bytes(struct process *process, unsigned device);
/* Of what it holds, bytes that are not on the card (swap.h, daemon/memory/swap/tenant_checkpoint.h). */
uint64_t process_swapped_bytes(struct process *process, unsigned device);
/* Its memory is leaving the GPU or coming back: for a moment its slot says that bytes are out while the driver still has them. */
bool process_is_moving(const struct process *process);
/* What it holds by both. */
uint64_t process_held_bytes(struct process *process, unsigned device);

/*
 * "<run dir>/tenants/<id>", of a claim's tenant "<run dir>/claims/<id>", and, with leaf, "/<leaf>". Of the
 * second nobody but the daemon's user sees the directory above: who may open the socket in it is whoever
 * has the directory mounted, as any user.
 */
/* Whose lines in the log count together (log.h): a claim's for themselves, others by user. */
uint32_t tenant_log_key(const struct tenant_terms *terms);

/* Its state file (tenant_state.h) is written within 20 ms, together with what else changes until then. */
void tenant_save_soon(struct tenant *tenant);

void tenant_path(const struct tenant *tenant, const char *leaf, char path[NODE_PATH_MAX]);
/* The same by id; NULL id: the directory above. */
void tenant_dir_path(const struct node *node, enum tenant_place place, const char *id,
		     const char *leaf, char path[NODE_PATH_MAX]);
enum tenant_place tenant_place(const struct tenant_terms *terms);

/*
 * Gives a process the lowest free slot. Takes the pidfd over on success. -ENOSPC: all slots are in use.
 */
int tenant_add_process(struct tenant *tenant, int pid, uint64_t start_time, int *pidfd,
		       struct process **ret, struct error *err);
/* Zeroes the slot and gives it back; what it held drains. Does not end the tenant. */
void tenant_remove_process(struct process *process);
/* Watches it no longer; its slot stays as it is. The leases must be gone. */
void tenant_forget_process(struct process *process);
/* The one of that pid with the lowest slot; NULL: none. */
struct process *tenant_process_of(struct tenant *tenant, int pid);
/* Every slot of that pid. */
void tenant_remove_pid(struct tenant *tenant, int pid);

/*
 * Publishes to all tenants how much work one that runs alone may have in flight (LEASE_FREE): little where another tenant has a
 * process on the card, which may want it at any moment; much more where none has, as a newcomer needs a tenth of a second for
 * its context. After a tenant or a process came, before it is told so, or went.
 */
void tenant_publish_free_depth(struct node *node);
