/* The connections and requests of liballot-client. */
#include "client/handle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "client/find.h"
#include "client/pause.h"

_Static_assert(ALLOT_ERROR_TEXT_MAX == ERROR_TEXT_MAX, "a text of ours fits the caller's");
_Static_assert(sizeof(struct allot_error) == 516, "programs have it on their stacks");

/* Copies an error to the caller's err, unless that is NULL. Returns `result`. */
static int fail(int result, const struct error *from, struct allot_error *err)
{
	if (err) {
		err->code = -result;
		memcpy(err->text, from->text, sizeof(err->text));
	}
	return result;
}

static int no_memory(struct allot_error *err)
{
	struct error own = { 0 };

	return fail(error_set(&own, ENOMEM, "out of memory"), &own, err);
}

ALLOT_PUBLIC const char *allot_client_version(void)
{
	return ALLOT_VERSION;
}

ALLOT_PUBLIC void allot_client_close(allot_client *client)
{
	if (!client)
		return;
	client_free(client->connection);
	free(client->daemon);
	free(client->warnings);
	free(client);
}

static int find_daemon(const char *run_dir, const char *simulated, struct client **ret_connection,
		       struct error *err)
{
	char hardware[PATHS_HARDWARE_MAX] = "";
	int r = run_dir ? 0 : paths_hardware(simulated, hardware, err);

	return r < 0 ? r : client_find(hardware, run_dir, ret_connection, err);
}

ALLOT_PUBLIC int allot_client_open(const char *run_dir, const char *simulated,
				   allot_client **ret_client, struct allot_error *err)
{
	allot_client *client = calloc(1, sizeof(*client));
	cleanup_json json_t *hello = NULL;
	struct error own = { 0 };
	int r;

	if (!client)
		return no_memory(err);
	r = find_daemon(run_dir, simulated, &client->connection, &own);
	if (r >= 0)
		r = client_request(client->connection, "hello", json_object(), &hello, &own);
	if (r >= 0) {
		const char *daemon = json_string_or(hello, "daemon", "");

		client->daemon = strdup(daemon);
		r = client->daemon ? 0 : error_set(&own, ENOMEM, "out of memory");
	}
	if (r < 0) {
		allot_client_close(client);
		return fail(r, &own, err);
	}
	*ret_client = client;
	return 0;
}

ALLOT_PUBLIC const char *allot_client_daemon(const allot_client *client)
{
	return client->daemon;
}

ALLOT_PUBLIC int allot_client_fd(const allot_client *client)
{
	return client_fd(client->connection);
}

ALLOT_PUBLIC int allot_client_list(allot_client *client, allot_list **ret_list,
				   struct allot_error *err)
{
	struct error own = { 0 };
	json_t *reply = NULL;
	int r = client_request(client->connection, "list", json_object(), &reply, &own);

	if (r < 0)
		return fail(r, &own, err);
	json_object_del(reply, "ok");
	allot_list *list = list_new(reply);
	if (!list)
		return no_memory(err);
	*ret_list = list;
	return 0;
}

static char *join_warnings(const json_t *warnings)
{
	size_t length = 0;
	json_t *text;
	size_t i;
	char *all;

	json_array_foreach((json_t *)warnings, i, text)
	{
		length += json_string_length(text) + 1;
	}
	all = calloc(length + 1, 1);
	json_array_foreach((json_t *)warnings, i, text)
	{
		if (!all || !json_is_string(text))
			continue;
		if (*all)
			strcat(all, "\n");
		strcat(all, json_string_value(text));
	}
	return all;
}

ALLOT_PUBLIC int allot_client_set(allot_client *client, const char *tenant,
				  const allot_change *change, struct allot_error *err)
{
	json_t *request = change_to_request(change, tenant);
	cleanup_json json_t *reply = NULL;
	struct error own = { 0 };
	int r;

	free(client->warnings);
	client->warnings = NULL;
	if (!request)
		return no_memory(err);
	r = client_request(client->connection, "set", request, &reply, &own);
	if (r < 0)
		return fail(r, &own, err);
	client->warnings = join_warnings(json_object_get(reply, "warnings"));
	return 0;
}

ALLOT_PUBLIC const char *allot_client_warnings(const allot_client *client)
{
	return client->warnings ? client->warnings : "";
}

static int tell(allot_client *client, const char *op, const char *tenant, unsigned int flags,
		struct allot_error *err)
{
	struct error own = { 0 };
	struct client_pause_options options = { .swap_out = flags & ALLOT_PAUSE_SWAP_OUT,
						.no_wait = flags & ALLOT_PAUSE_NO_WAIT };
	int r = client_pause(client->connection, op, tenant, &options, &own);

	return r < 0 ? fail(r, &own, err) : 0;
}

ALLOT_PUBLIC int allot_client_pause(allot_client *client, const char *tenant, unsigned int flags,
				    struct allot_error *err)
{
	struct error own = { 0 };

	if (flags & ~(ALLOT_PAUSE_SWAP_OUT | ALLOT_PAUSE_NO_WAIT))
		return fail(error_set(&own, EINVAL,
				      "flags: %#x: must be 0, ALLOT_PAUSE_SWAP_OUT, "
				      "ALLOT_PAUSE_NO_WAIT, or both",
				      flags),
			    &own, err);
	return tell(client, "pause", tenant, flags, err);
}

ALLOT_PUBLIC int allot_client_resume(allot_client *client, const char *tenant,
				     struct allot_error *err)
{
	return tell(client, "resume", tenant, 0, err);
}

ALLOT_PUBLIC int allot_client_request(allot_client *client, const char *op, const char *members,
				      char **ret_reply, struct allot_error *err)
{
	cleanup_json json_t *reply = NULL;
	struct error own = { 0 };
	json_t *body = json_loads(members ? members : "{}", 0, NULL);
	int r;

	if (!json_is_object(body)) {
		json_decref(body);
		return fail(error_set(&own, EINVAL,
				      "members: '%.40s': must be a JSON object, such as {}", members),
			    &own, err);
	}
	r = client_request(client->connection, op, body, &reply, &own);
	if (r < 0)
		return fail(r, &own, err);
	if (ret_reply) {
		char *text = json_dumps(reply, JSON_COMPACT);

		if (!text)
			return no_memory(err);
		*ret_reply = text;
	}
	return 0;
}

ALLOT_PUBLIC void allot_free(char *reply)
{
	free(reply);
}
