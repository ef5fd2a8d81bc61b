#include "client/pause.h"

#include <errno.h>
#include <time.h>

#define POLL_NS 50000000

/* Names the tenant by its id if the first reply had one, because another tenant may get the name meanwhile. */
static int ask(struct client *client, const char *op, const char *name, const json_t *first,
	       bool swap_out, json_t **ret_reply, struct error *err)
{
	const char *id = json_string_value(json_object_get(first, "id"));
	int r = client_request(client, op,
			       json_pack("{s:s, s:b, s:o*}", "name", id ? id : name, "poll", 1,
					 "swap_out", swap_out ? json_true() : NULL),
			       ret_reply, err);

	if (r == -ENOENT)
		return error_set(err, ESRCH,
				 "tenant '%s' has ended meanwhile, so it holds no memory", name);
	return r;
}

static int await(struct client *client, const char *op, const char *name,
		 const struct client_pause_options *options, const json_t *first, struct error *err)
{
	bool goes_on = true;

	while (goes_on) {
		cleanup_json json_t *reply = NULL;

		nanosleep(&(struct timespec){ .tv_nsec = POLL_NS }, NULL);
		int r = ask(client, op, name, first, options->swap_out, &reply, err);
		if (r < 0)
			return r;
		goes_on = json_is_true(json_object_get(reply, "moving"));
		if (options->watch && !options->watch(options->data, reply) && goes_on)
			return error_set(
				err, EINTR,
				"interrupted: the daemon continues to move the tenant's memory");
	}
	return 0;
}

int client_pause(struct client *client, const char *op, const char *name,
		 const struct client_pause_options *options, struct error *err)
{
	cleanup_json json_t *reply = NULL;
	int r = client_request(client, op,
			       json_pack("{s:s, s:o*}", "name", name, "swap_out",
					 options->swap_out ? json_true() : NULL),
			       &reply, err);

	if (r < 0)
		return r;
	bool goes_on = json_is_true(json_object_get(reply, "moving")) && !options->no_wait;
	if (options->watch && !options->watch(options->data, reply) && goes_on)
		return error_set(err, EINTR,
				 "interrupted: the daemon continues to move the tenant's memory");
	return goes_on ? await(client, op, name, options, reply, err) : 0;
}
