#include "client/pause.h"

#include <time.h>

#define POLL_NS 50000000

/* A move goes on in the daemon: asks until there is an outcome. */
static int await(struct client *client, const char *op, const char *name, struct error *err)
{
	for (;;) {
		cleanup_json json_t *reply = NULL;
		json_t *body = json_pack("{s:s, s:b}", "name", name, "poll", 1);
		int r = client_request(client, op, body, &reply, err);
		if (r < 0 || !json_is_true(json_object_get(reply, "moving")))
			return r;
		nanosleep(&(struct timespec){ .tv_nsec = POLL_NS }, NULL);
	}
}

int client_pause(struct client *client, const char *op, const char *name, bool swap_out,
		 struct error *err)
{
	cleanup_json json_t *reply = NULL;
	json_t *body = json_pack("{s:s}", "name", name);
	int r;

	if (swap_out)
		json_object_set_new(body, "swap_out", json_true());
	r = client_request(client, op, body, &reply, err);
	if (r >= 0 && json_is_true(json_object_get(reply, "moving")))
		r = await(client, op, name, err);
	return r;
}
