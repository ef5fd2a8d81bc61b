#include "cli/top/data/look.h"

#include <errno.h>

#include "base/clock.h"
#include "cli/top/data/reader.h"

/* The list's text. A tree of it is made where it is wanted, and of a refusal. */
static int ask_list(struct client *client, bool wants_list, struct look *look, char **ret_text,
		    struct error *err)
{
	cleanup_free char *text = NULL;
	int r = client_request_text(client, "list", NULL, &text, err);

	if (r < 0)
		return r;
	if (wants_list || !reader_is(reader_find(reader_whole(text), "ok"), "true"))
		r = client_read_reply(client, text, &look->list, err);
	if (r == 0)
		*ret_text = steal_pointer(&text);
	return r;
}

static int ask(struct client *client, bool wants_list, struct look *look, char **ret_text,
	       struct error *err)
{
	int r = ask_list(client, wants_list, look, ret_text, err);

	if (r < 0)
		return r;
	r = client_request(client, "tasks", NULL, &look->tasks, NULL);
	return r == -ECONNRESET || r == -ETIMEDOUT
		       ? error_set(err, -r, "the daemon in %s went away", client_run_dir(client))
		       : 0;
}

int look_take(const struct daemon_target *target, struct client **client, bool wants_list,
	      struct look *ret_look, struct error *err)
{
	struct look look = { 0 };
	cleanup_free char *text = NULL;
	int r = *client ? 0 : daemon_find(target, client, &look.trouble);

	if (r == 0)
		r = ask(*client, wants_list, &look, &text, &look.trouble);
	if (r < 0)
		*client = client_free(*client);
	if (r < 0 && r != -ENOENT && r != -ECONNRESET) {
		look_free(&look);
		return error_set(err, -r, "%s", look.trouble.text);
	}
	look.is_answered = r == 0;
	look.snapshot = snapshot_make(r == 0 ? text : NULL, look.tasks, clock_now_ns());
	if (!look.snapshot) {
		look_free(&look);
		return error_set(err, ENOMEM, "out of memory");
	}
	*ret_look = look;
	return 0;
}

void look_free(struct look *look)
{
	json_decref(look->list);
	json_decref(look->tasks);
	snapshot_free(look->snapshot);
	look->list = look->tasks = NULL;
	look->snapshot = NULL;
}
