/*
 * A connection to a daemon (docs/reference/protocol.md). Messages are JSON objects, one per line; each request gets one reply.
 * Use from one thread at a time.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "base/json.h"

#define CLIENT_PROTOCOL_VERSION 1

struct client;

/*
 * Connects to the daemon of a run directory. -EPERM unless the daemon runs as root or as the caller; -ENOENT if no daemon runs
 * there; -EACCES if the caller may not open the socket. The caller owns the client.
 */
int client_connect(const char *run_dir, struct client **ret_client, struct error *err);

/*
 * Closes the connection. A tenant with `hold` (docs/reference/protocol.md) that was made or attached through the connection
 * then lives only as long as its processes. NULL is allowed; returns NULL.
 */
struct client *client_free(struct client *client);

/*
 * A descriptor for poll(), which belongs to the client. Between requests it becomes readable or hung up only when the daemon is
 * gone, because the daemon sends nothing except replies.
 */
int client_fd(const struct client *client);

const char *client_run_dir(const struct client *client);

/*
 * Sends request `op` with the members of `body`, and waits some seconds for the reply. Takes ownership of `body`. Sends nothing
 * and returns -ENOMEM if `body` is NULL, so the result of json_pack() needs no check. If the daemon refuses, returns its -errno
 * with its text; -ECONNRESET if the daemon went away; -ETIMEDOUT if it does not answer. The caller owns *ret_reply; ret_reply
 * may be NULL.
 */
int client_request(struct client *client, const char *op, json_t *body, json_t **ret_reply,
		   struct error *err);

/* The two steps of client_request(): get the reply as text, which the caller frees; make the object or error from it. */
int client_request_text(struct client *client, const char *op, json_t *body, char **ret_text,
			struct error *err);
int client_read_reply(struct client *client, const char *text, json_t **ret_reply,
		      struct error *err);

/*
 * Takes up to `most` descriptors that came with the last reply, in order, and returns their number. The caller owns them. The
 * next request closes those that were not taken.
 */
#define CLIENT_FDS_MAX 16
size_t client_take_fds(struct client *client, int *ret_fds, size_t most);

void client_print_warnings(const char *command, const json_t *reply);

static inline void cleanup_client_pointer(struct client **client)
{
	client_free(*client);
}

#define cleanup_client cleanup(cleanup_client_pointer)
