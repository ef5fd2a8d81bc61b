#include "cli/run/group_wait.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define PAUSE_NS (20 * NSEC_PER_MSEC)
#define WAIT_NS (90 * NSEC_PER_SEC) /* longer than the daemon waits for MPS */

static int mps_error(const json_t *space, struct error *err)
{
	const char *group = json_string_value(json_object_get(space, "group"));
	const char *why = json_string_or(space, "why", "does not run, and allotd gives no reason");

	return error_set(
		err, EIO,
		"--sharing: 'space': group '%s': MPS: %s; see allotd's log, or use --sharing time",
		group ? group : "", why);
}

int space_await(struct client *client, const json_t *tenant, struct error *err)
{
	const char *id = json_string_or(tenant, "id", "");
	uint64_t until_ns = clock_now_ns() + WAIT_NS;
	struct timespec pause = clock_to_timespec(PAUSE_NS);

	if (!json_is_object(json_object_get(tenant, "space")))
		return 0;
	for (;;) {
		json_t *reply = NULL;
		int r = client_request(client, "space", json_pack("{s:s}", "name", id), &reply, err);
		if (r < 0)
			return r;
		const json_t *space = json_object_get(reply, "space");
		const char *state = json_string_value(json_object_get(space, "state"));
		bool is_starting = json_is_true(json_object_get(reply, "starting"));
		bool is_ready = state && strcmp(state, "ready") == 0;
		if (!is_starting && !is_ready)
			r = mps_error(space, err);
		json_decref(reply);
		if (!is_starting)
			return r;
		if (clock_now_ns() > until_ns)
			return error_set(err, ETIMEDOUT,
					 "--sharing: 'space': NVIDIA MPS did not start within %d "
					 "s; see allotd's log, or use --sharing time",
					 (int)(WAIT_NS / NSEC_PER_SEC));
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
}

int space_environment(const json_t *tenant, struct environment *environment, struct error *err)
{
	json_t *variables = json_object_get(tenant, "environment");
	const char *name;
	json_t *value;

	json_object_foreach(variables, name, value)
	{
		const char *text = json_string_value(value);
		int r = text ? environment_set(environment, name, text, err) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}
