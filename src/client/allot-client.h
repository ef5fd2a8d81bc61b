/*
 * liballot-client queries a running allotd for its GPUs and tenants, and changes tenants' terms. It uses the daemon's operator
 * socket, like the command `allot`. It has no function that makes a tenant: `allot run` and `allot cdi` do that.
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
 * Units: memory is in bytes, shares in percent of one GPU's time (0 to 100), times in seconds. Each name contains its unit.
 *
 * Errors: a function that can fail returns 0 or a negative errno. If `err` is not NULL, it gets the positive errno, and one
 * line that names the value and says what would be right. Results are written only on success. The daemon's own errors, such as
 * -ENOENT for a tenant that does not exist, are in docs/reference/protocol.md. -ECONNRESET means that the daemon went away
 * (open again), -ETIMEDOUT that it did not answer for ten seconds (close and open again), -ENOMEM that memory ran out. Do not
 * pass NULL for an object unless the function's comment allows it.
 *
 * Ownership: the caller owns the results of allot_client_open(), allot_client_list(), allot_change_new() and
 * allot_client_request(), and frees each with the function named there. Devices, tenants, shares and all strings of a list
 * belong to the list and end with it.
 *
 * Threads: use a client or a change from one thread at a time; different ones are independent. A list never changes, and may be
 * read by several threads. A child made by fork() must not use its parent's client. allot_client_open() reads the environment
 * (ALLOT_RUN_DIR, XDG_RUNTIME_DIR), which no other thread may change meanwhile. The library installs no signal handler, starts
 * no thread and prints nothing. Its descriptors are closed on exec, and a daemon that goes away raises no SIGPIPE.
 *
 * Stability: functions and constants are only added while the library is liballot-client.so.0. Each symbol has the version in
 * which it was added.
 */
#ifndef ALLOT_CLIENT_ALLOT_CLIENT_H
#define ALLOT_CLIENT_ALLOT_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ALLOT_ERROR_TEXT_MAX 512

/* The caller owns the struct. `text` ends with a NUL, and has no newline. */
struct allot_error {
	int code; /* positive errno */
	char text[ALLOT_ERROR_TEXT_MAX];
};

typedef struct allot_client allot_client; /* connection to a daemon */
typedef struct allot_list allot_list;     /* a snapshot of devices and tenants */
typedef struct allot_device allot_device; /* a GPU or a MIG instance; belongs to a list */
typedef struct allot_tenant allot_tenant; /* belongs to a list */
typedef struct allot_share allot_share;   /* a tenant's share of one device; belongs to a list */
typedef struct allot_change allot_change; /* changes to be made to a tenant */

/* The library's own version: "0.1.0". */
const char *allot_client_version(void);

/*
 * Connects to a running daemon. run_dir selects the daemon of that run directory. NULL selects the daemon that `allot ps` uses:
 * the system's daemon, or the caller's own if the system's does not run. simulated is NULL for the machine's GPUs, or the name
 * of the simulated GPU that `allot run --sim` was given, such as "h200"; simulated is ignored if run_dir is given.
 *
 * Returns -ENOENT if no daemon runs; -EACCES if the caller may not open its socket; -EPERM if the daemon runs neither as root
 * nor as the caller. Free the client with allot_client_close().
 */
int allot_client_open(const char *run_dir, const char *simulated, allot_client **ret_client,
		      struct allot_error *err);

/* `client` may be NULL. */
void allot_client_close(allot_client *client);

/* The daemon's name and version, "allotd 0.1.0". The text belongs to the client. */
const char *allot_client_daemon(const allot_client *client);

/* A descriptor for poll(): readable or hung up when the daemon has gone. Owned by the client; do not read from it. */
int allot_client_fd(const allot_client *client);

/* Gets a snapshot of all devices and tenants. Free it with allot_list_free(). */
int allot_client_list(allot_client *client, allot_list **ret_list, struct allot_error *err);

/* `list` may be NULL. */
void allot_list_free(allot_list *list);

/*
 * The list as JSON, as `allot ps --json` prints it and docs/reference/protocol.md describes it. The JSON also has values for
 * which this library has no function. The text belongs to the list.
 */
const char *allot_list_json(const allot_list *list);

/* The i-th device or tenant, from 0; NULL if i is not less than the count. */
size_t allot_list_device_count(const allot_list *list);
const allot_device *allot_list_device(const allot_list *list, size_t i);
size_t allot_list_tenant_count(const allot_list *list);
const allot_tenant *allot_list_tenant(const allot_list *list, size_t i);

/* Finds a tenant by name or id. NULL if there is none. */
const allot_tenant *allot_list_find_tenant(const allot_list *list, const char *name);

/* The daemon's index of the device, from 0; changes and shares use it. */
int allot_device_index(const allot_device *device);
const char *allot_device_uuid(const allot_device *device);
const char *allot_device_name(const allot_device *device);

/* Without the driver's own reserve. */
uint64_t allot_device_memory_bytes(const allot_device *device);

/* Memory used by all processes, of tenants or not, at most a second ago. Returns -ENODATA if the driver does not report it. */
int allot_device_memory_used_bytes(const allot_device *device, uint64_t *ret_bytes);

/* GPU time charged to all tenants in the last second, in percent of that second. */
double allot_device_busy_pct(const allot_device *device);

/*
 * The sums of the quotas and of the guarantees that tenants were promised. The sum of the quotas leaves out tenants that
 * requested no quota, and tenants with `--on-full wait` or `swap`.
 */
uint64_t allot_device_promised_bytes(const allot_device *device);
double allot_device_promised_cores_pct(const allot_device *device);

/* NULL if the device is healthy, or else the reason in one line. */
const char *allot_device_fault(const allot_device *device);

/* 1 if the device takes no new tenants, else 0. */
int allot_device_is_cordoned(const allot_device *device);

const char *allot_tenant_name(const allot_tenant *tenant);

/* Unlike a name, an id is never reused. */
const char *allot_tenant_id(const allot_tenant *tenant);

/*
 * "paused", "queued", "leaving", "swapped", "returning", "starting", "running", "waiting", "idle" or "ending"; see
 * docs/reference/protocol.md. A later daemon may have more states.
 */
const char *allot_tenant_state(const allot_tenant *tenant);

/* The user who made the tenant. */
uint32_t allot_tenant_uid(const allot_tenant *tenant);

/* -100 to 100; a tenant of a higher priority may interrupt one of a lower. */
int allot_tenant_priority(const allot_tenant *tenant);

/* One share for each device, in the order in which programs number their GPUs. NULL if i is not less than the count. */
size_t allot_tenant_share_count(const allot_tenant *tenant);
const allot_share *allot_tenant_share(const allot_tenant *tenant, size_t i);

/* The allot_device_index() of the share's device. */
int allot_share_device_index(const allot_share *share);
uint64_t allot_share_memory_quota_bytes(const allot_share *share);

/* 1 if the quota was requested; 0 if the quota is all memory that is not promised to other tenants. */
int allot_share_memory_is_given(const allot_share *share);
uint64_t allot_share_memory_used_bytes(const allot_share *share);

/* The guaranteed share; 0 if there is no guarantee. */
double allot_share_cores_pct(const allot_share *share);

/* The most GPU time that the tenant may have, in percent: as requested, and with the time that other tenants lend now. */
double allot_share_cores_limit_pct(const allot_share *share);
double allot_share_cores_limit_now_pct(const allot_share *share);

/* GPU time charged in the last second and in the last 60 seconds, in percent of that time, or of a younger tenant's life. */
double allot_share_got_1s_pct(const allot_share *share);
double allot_share_got_60s_pct(const allot_share *share);

/* Since the tenant was made: how long its threads waited for their turn; how many allocations were refused. */
double allot_share_waited_s(const allot_share *share);
uint64_t allot_share_denied(const allot_share *share);

/* The device index to use for a tenant that has only one device. */
#define ALLOT_ONLY_DEVICE (-1)

/*
 * Makes an empty change for allot_client_set(). Values that are not set stay as they are. A change may be used for several
 * tenants. Returns NULL if out of memory. Free it with allot_change_free().
 */
allot_change *allot_change_new(void);

/* `change` may be NULL. */
void allot_change_free(allot_change *change);

/*
 * Set one value of the change. Each returns 0, -EINVAL for a value that no daemon would accept (the change then stays as it
 * was), or -ENOMEM. A later call for the same device replaces an earlier one.
 */
int allot_change_memory_bytes(allot_change *change, int device_index, uint64_t quota_bytes);

/* Sets no fixed quota: the tenant may hold the memory that is not promised to others, which changes with their promises. */
int allot_change_memory_rest(allot_change *change, int device_index);
int allot_change_cores_pct(allot_change *change, int device_index, double cores_pct);
int allot_change_cores_limit_pct(allot_change *change, int device_index, double limit_pct);
int allot_change_priority(allot_change *change, int priority);

/* 1 if the tenant may use time that others leave unused, on all of its devices; else 0. */
int allot_change_elastic(allot_change *change, int is_elastic);

/* Applies the whole change or nothing. `tenant` is a name or an id. allot_client_warnings() then has the daemon's warnings. */
int allot_client_set(allot_client *client, const char *tenant, const allot_change *change,
		     struct allot_error *err);

/*
 * The daemon's warnings in its reply to the last allot_client_set(), one per line; "" if none. The text belongs to the client,
 * and is valid until the client's next call.
 */
const char *allot_client_warnings(const allot_client *client);

/* Flag of allot_client_pause(): also move the tenant's memory from the devices to host memory. */
#define ALLOT_PAUSE_SWAP_OUT 1U
/* Flag of allot_client_pause(): return once the request is accepted. Since 0.1. */
#define ALLOT_PAUSE_NO_WAIT 2U

/*
 * Pause and resume a tenant. A paused tenant starts no more work on its devices; running work completes. If the tenant's memory
 * is moved off its devices, or brought back from a driver's checkpoint, these functions return when the move is over, unless
 * ALLOT_PAUSE_NO_WAIT is given. The duration of the move grows with the number of bytes. For root and group "allot", `tenant`
 * may also be a container with GPU work, by name or by the beginning of its id.
 *
 * -EBUSY: the memory is being moved already, or can't be moved now. -ENOSPC: there is no room at the move's destination.
 * -ECANCELED: meanwhile another client resumed the tenant, or moved the tenant's memory out again. -ESRCH: the tenant ended
 * meanwhile, or has no process with GPU memory to move. -EINVAL: `flags` has a bit that this version does not know.
 */
int allot_client_pause(allot_client *client, const char *tenant, unsigned int flags,
		       struct allot_error *err);
int allot_client_resume(allot_client *client, const char *tenant, struct allot_error *err);

/*
 * Sends the request `op` of docs/reference/protocol.md. `members` is a JSON object as text; NULL counts as "{}". *ret_reply
 * gets the whole reply as JSON; free it with allot_free(). ret_reply may be NULL. -EINVAL if members is not an object.
 */
int allot_client_request(allot_client *client, const char *op, const char *members,
			 char **ret_reply, struct allot_error *err);

/* `reply` may be NULL. */
void allot_free(char *reply);

#ifdef __cplusplus
}
#endif

#endif
