/*
 * liballot-client: asks a running allotd what its GPUs and tenants are, and changes what tenants may have.
 * It speaks to the daemon's operator socket, as the command `allot` does; `allot run` is what makes tenants.
 *
 *     struct allot_error err;
 *     allot_client *client;
 *     allot_list *list;
 *
 *     if (allot_client_open(NULL, NULL, &client, &err) < 0)
 *         errx(1, "%s", err.text);
 *     if (allot_client_list(client, &list, &err) < 0)
 *         errx(1, "%s", err.text);
 *     for (size_t i = 0; i < allot_list_tenant_count(list); i++)
 *         puts(allot_tenant_name(allot_list_tenant(list, i)));
 *     allot_list_free(list);
 *     allot_client_close(client);
 *
 * Compile and link with `pkg-config --cflags --libs allot-client`.
 *
 * Units: memory is in bytes, shares are in percent of one GPU's time (0 to 100), times in seconds; the unit
 * is in each name.
 *
 * Errors: what can fail returns 0 or a negative errno, and where `err` is not NULL describes a failure
 * there: the number, positive, and one line that names the value and what would be right. Results are
 * written on success alone. The daemon's own refusals, such as -ENOENT for a tenant that is not there, are
 * in docs/reference/protocol.md; -ECONNRESET says that the daemon went away (open again), -ETIMEDOUT that it did
 * not answer for ten seconds (close and open again), -ENOMEM that memory ran out. A NULL where an object is
 * asked for is the caller's mistake, except where NULL is spoken of.
 *
 * Ownership: what allot_client_open(), allot_client_list(), allot_change_new() and allot_client_request()
 * return is the caller's, to be given back by the function that is named there. Devices, tenants, shares
 * and all strings of a list belong to the list and end with it.
 *
 * Threads: a client or a change is used by one thread at a time; different ones are independent. A list
 * never changes, and may be read by several threads. A child made by fork() must not use a client of its
 * parent's. allot_client_open() reads the environment (ALLOT_RUN_DIR, XDG_RUNTIME_DIR), which no other thread may
 * change meanwhile. No signal handler, no thread, no output, and no descriptor that a program that is executed
 * would inherit; a daemon that goes away raises no SIGPIPE.
 *
 * Stability: functions and constants are only ever added while the library is liballot-client.so.0; each
 * symbol has the version in which it appeared.
 */
#ifndef ALLOT_CLIENT_ALLOT_CLIENT_H
#define ALLOT_CLIENT_ALLOT_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ALLOT_ERROR_TEXT_MAX 512

/* The caller's own, on its stack as a rule. `text` ends with a NUL, and has no newline. */
struct allot_error {
	int code; /* positive errno */
	char text[ALLOT_ERROR_TEXT_MAX];
};

typedef struct allot_client allot_client; /* a connection to a daemon */
typedef struct allot_list allot_list;     /* what there was at one moment */
typedef struct allot_device allot_device; /* a GPU, or a MIG instance; of a list */
typedef struct allot_tenant allot_tenant; /* of a list */
typedef struct allot_share allot_share;   /* what a tenant has of one device; of a list */
typedef struct allot_change allot_change; /* what is to be changed of a tenant */

/* The library's own version: "0.1.0". */
const char *allot_client_version(void);

/* ---- connections ---- */

/*
 * Connects to a daemon that runs. run_dir: the one of this run directory; NULL: the one that `allot ps`
 * asks, the system's first, else the caller's own. simulated: NULL for the machine's GPUs, else the
 * simulated GPU that `allot run --sim` was given, such as "h200"; not looked at beside run_dir.
 *
 * -ENOENT: none runs. -EACCES: the caller may not open its socket. -EPERM: it belongs neither to root nor
 * to the caller. Give it back with allot_client_close().
 */
int allot_client_open(const char *run_dir, const char *simulated, allot_client **ret_client,
		      struct allot_error *err);

/* NULL is fine. */
void allot_client_close(allot_client *client);

/* The daemon's name and version, "allotd 0.1.0"; the client's. */
const char *allot_client_daemon(const allot_client *client);

/* Readable or hung up when the daemon has gone, for poll(); stays the client's. Nothing may be read there. */
int allot_client_fd(const allot_client *client);

/* ---- what there is ---- */

/* Asks for all devices and tenants, of one moment. Give it back with allot_list_free(). */
int allot_client_list(allot_client *client, allot_list **ret_list, struct allot_error *err);

/* NULL is fine. */
void allot_list_free(allot_list *list);

/*
 * The same as JSON, as `allot ps --json` prints it and docs/reference/protocol.md describes: also what has no function
 * here. The list's.
 */
const char *allot_list_json(const allot_list *list);

/* i is less than the count; NULL otherwise. */
size_t allot_list_device_count(const allot_list *list);
const allot_device *allot_list_device(const allot_list *list, size_t i);
size_t allot_list_tenant_count(const allot_list *list);
const allot_tenant *allot_list_tenant(const allot_list *list, size_t i);

/* The tenant of that name or id; NULL: there is none. */
const allot_tenant *allot_list_find_tenant(const allot_list *list, const char *name);

/* The daemon's number for it, from 0: what changes and shares name it by. */
int allot_device_index(const allot_device *device);
const char *allot_device_uuid(const allot_device *device);
const char *allot_device_name(const allot_device *device);

/* What can be held on it, the driver's own reserve left out. */
uint64_t allot_device_memory_bytes(const allot_device *device);

/* By all processes, of tenants or not, a second ago at most. -ENODATA: the driver does not say. */
int allot_device_memory_used_bytes(const allot_device *device, uint64_t *ret_bytes);

/* GPU time charged to all tenants in the last second. */
double allot_device_busy_pct(const allot_device *device);

/* To tenants, by quotas and guarantees that were asked for. */
uint64_t allot_device_promised_bytes(const allot_device *device);
double allot_device_promised_cores_pct(const allot_device *device);

/* NULL: it is healthy; else one line that says why not. */
const char *allot_device_fault(const allot_device *device);

/* 1: it takes no new tenants; 0. */
int allot_device_is_cordoned(const allot_device *device);

const char *allot_tenant_name(const allot_tenant *tenant);

/* Unlike a name never used again. */
const char *allot_tenant_id(const allot_tenant *tenant);

/*
 * "paused", "queued", "leaving", "swapped", "returning", "starting", "running", "waiting", "idle" or "ending", as
 * docs/reference/protocol.md has them; a later daemon may have more.
 */
const char *allot_tenant_state(const allot_tenant *tenant);

/* Of who made it. */
uint32_t allot_tenant_uid(const allot_tenant *tenant);

/* -100 to 100; higher may interrupt lower. */
int allot_tenant_priority(const allot_tenant *tenant);

/* A share a device that it may use, in its order: its GPU 0 is the first. i as above. */
size_t allot_tenant_share_count(const allot_tenant *tenant);
const allot_share *allot_tenant_share(const allot_tenant *tenant, size_t i);

/* allot_device_index() of its device. */
int allot_share_device_index(const allot_share *share);
uint64_t allot_share_memory_quota_bytes(const allot_share *share);

/* 1: the quota was asked for; 0: it is what others were not promised, and changes with that. */
int allot_share_memory_is_given(const allot_share *share);
uint64_t allot_share_memory_used_bytes(const allot_share *share);

/* Guaranteed; 0: nothing is. */
double allot_share_cores_pct(const allot_share *share);

/* May be reached when others leave time unused: as asked for, and as in force now, lent time included. */
double allot_share_cores_limit_pct(const allot_share *share);
double allot_share_cores_limit_now_pct(const allot_share *share);

/* GPU time charged in the last 1 and 60 seconds, or since the tenant was made. */
double allot_share_got_1s_pct(const allot_share *share);
double allot_share_got_60s_pct(const allot_share *share);

/* Thread time held back at gates, and allocations refused, since the tenant was made. */
double allot_share_waited_s(const allot_share *share);
uint64_t allot_share_denied(const allot_share *share);

/* ---- changes ---- */

/* In place of a device's index: the only device of the tenant. */
#define ALLOT_ONLY_DEVICE (-1)

/*
 * Gathers what allot_client_set() is to change, all of it or nothing; what is not named stays. May be used
 * for several tenants. NULL: no memory. Give it back with allot_change_free().
 */
allot_change *allot_change_new(void);

/* NULL is fine. */
void allot_change_free(allot_change *change);

/*
 * Each returns 0, -EINVAL for a value that no daemon would take (nothing is gathered then), or -ENOMEM. Of
 * one device a later call goes before an earlier one.
 */
int allot_change_memory_bytes(allot_change *change, int device_index, uint64_t quota_bytes);

/* What others were not promised, now and as that changes, in place of a quota. */
int allot_change_memory_rest(allot_change *change, int device_index);
int allot_change_cores_pct(allot_change *change, int device_index, double cores_pct);
int allot_change_cores_limit_pct(allot_change *change, int device_index, double limit_pct);
int allot_change_priority(allot_change *change, int priority);

/* Whether it may use what others leave unused, on all of its devices: 1 or 0. */
int allot_change_elastic(allot_change *change, int is_elastic);

/* tenant: a name or an id. What the daemon warns of is then in allot_client_warnings(). */
int allot_client_set(allot_client *client, const char *tenant, const allot_change *change,
		     struct allot_error *err);

/*
 * What the daemon warned of in its last reply to allot_client_set(), a line each; "": nothing. The client's,
 * until the next call with it.
 */
const char *allot_client_warnings(const allot_client *client);

/* Of allot_client_pause(): its memory leaves the devices too, for host memory. */
#define ALLOT_PAUSE_SWAP_OUT 1U
/* Of allot_client_pause(): returns once the request is taken. Since 0.1. */
#define ALLOT_PAUSE_NO_WAIT 2U

/*
 * A paused tenant starts no more work on its devices; what runs already ends. Where its memory leaves, or comes
 * back by the driver's checkpoint call, these return when that is over: that takes as long as the bytes
 * take. -EBUSY, -ENOSPC: it is paused, but its memory can't leave; -ECANCELED: resumed by somebody meanwhile; -ESRCH:
 * it ended meanwhile. `tenant` may also be a container with GPU work, by name or by the beginning of its id, for root and
 * group allot. -EINVAL: flags that this version does not have.
 */
int allot_client_pause(allot_client *client, const char *tenant, unsigned int flags,
		       struct allot_error *err);
int allot_client_resume(allot_client *client, const char *tenant, struct allot_error *err);

/* ---- everything else ---- */

/*
 * Any request of docs/reference/protocol.md: `op` with `members`, a JSON object, "{}" or NULL. The whole reply as JSON
 * is the caller's, to be given back with allot_free(); ret_reply may be NULL. -EINVAL: members is no object.
 */
int allot_client_request(allot_client *client, const char *op, const char *members,
			 char **ret_reply, struct allot_error *err);

/* NULL is fine. */
void allot_free(char *reply);

#ifdef __cplusplus
}
#endif

#endif
