#include "cli/top/data/sample.h"

#include <errno.h>

#include "base/clock.h"
#include "cli/top/data/reader.h"

/* Gets the list as text; also as a tree if wants_list is set or the reply is an error. */
static int ask_list(struct client *client, bool wants_list, struct sample *sample, char **ret_text,
		    struct error *err)
{
	cleanup_free char *text = NULL;
	int r = client_request_text(client, "list", json_object(), &text, err);

	if (r < 0)
		return r;
	if (wants_list || !reader_is(reader_find(reader_whole(text), "ok"), "true"))
		r = client_read_reply(client, text, &sample->list, err);
	if (r == 0)
		*ret_text = steal_pointer(&text);
	return r;
}

static int ask(struct client *client, bool wants_list, struct sample *sample, char **ret_text,
	       struct error *err)
{
	int r = ask_list(client, wants_list, sample, ret_text, err);

	if (r < 0)
		return r;
	r = client_request(client, "tasks", json_object(), &sample->tasks, NULL);
	return r == -ECONNRESET || r == -ETIMEDOUT
		       ? error_set(err, -r,
				   "the daemon in %s closed the connection or does not answer: see its log",
				   client_run_dir(client))
		       : 0;
}

int sample_take(const struct daemon_target *target, struct client **client, bool wants_list,
		struct sample *ret_sample, struct error *err)
{
	struct sample sample = { 0 };
	cleanup_free char *text = NULL;
	int r = *client ? 0 : daemon_find(target, client, &sample.trouble);

	if (r == 0)
		r = ask(*client, wants_list, &sample, &text, &sample.trouble);
	if (r < 0)
		*client = client_free(*client);
	if (r < 0 && r != -ENOENT && r != -ECONNRESET) {
		sample_free(&sample);
		return error_set(err, -r, "%s", sample.trouble.text);
	}
	sample.is_answered = r == 0;
	sample.snapshot = snapshot_make(r == 0 ? text : NULL, sample.tasks, clock_now_ns());
	if (!sample.snapshot) {
		sample_free(&sample);
		return error_set(err, ENOMEM, "out of memory");
	}
	*ret_sample = sample;
	return 0;
}

void sample_free(struct sample *sample)
{
	json_decref(sample->list);
	json_decref(sample->tasks);
	snapshot_free(sample->snapshot);
	sample->list = sample->tasks = NULL;
	sample->snapshot = NULL;
}
