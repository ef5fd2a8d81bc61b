/*
 * A connection to a daemon (docs/reference/protocol.md): JSON objects, one a line, one reply a request.
 * Thread safety: one caller at a time.
 */
#pragma once

#include <jansson.h>

#include "base/cleanup.h"
#include "base/error.h"

#define CLIENT_PROTOCOL_VERSION 1

struct client;

/*
 * Connects to the daemon of a run directory, and makes sure that it is root's or the caller's own.
 * -ENOENT when none runs there, -EACCES when the caller may not open the socket. The caller owns
 * the client.
 */
int client_connect(const char *run_dir, struct client **ret_client, struct error *err);

/* NULL is fine; returns NULL. A tenant held through this connection is let go. */
struct client *client_free(struct client *client);

/* Readable or hung up when the daemon is gone: it never speaks first. Stays the client's. */
int client_fd(const struct client *client);

const char *client_run_dir(const struct client *client);

/*
 * Sends op with `body` (an object that this takes over; NULL: none), and waits for the reply, some
 * seconds at most. A refusal is returned as the daemon's -errno with the daemon's text;
 * -ECONNRESET when the daemon went away, -ETIMEDOUT when it does not answer. The caller owns
 * *ret_reply (ret_reply may be NULL).
 */
int client_request(struct client *client, const char *op, json_t *body, json_t **ret_reply,
		   struct error *err);

/* The same in two steps: the reply's text, which the caller frees, and what it says. */
int client_request_text(struct client *client, const char *op, json_t *body, char **ret_text,
			struct error *err);
int client_read_reply(struct client *client, const char *text, json_t **ret_reply,
		      struct error *err);

/*
 * Takes the descriptors that came with the last reply, at most `most`, in their order; those that are left are closed
 * by the next request. They are the caller's. Returns how many.
 */
#define CLIENT_FDS_MAX 16
size_t client_take_fds(struct client *client, int *ret_fds, size_t most);

/* What a reply warns of, to stderr: "allot: COMMAND: warning: TEXT". */
void client_print_warnings(const char *command, const json_t *reply);

static inline void cleanup_client_pointer(struct client **client)
{
	client_free(*client);
}

static inline void cleanup_json_pointer(json_t **json)
{
	json_decref(*json);
}

#define cleanup_client cleanup(cleanup_client_pointer)
#define cleanup_json cleanup(cleanup_json_pointer)
