#include "cli/trace/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

static int read_moment(const json_t *reply, uint64_t *ret_ticks, uint64_t *ret_ns, struct error *err)
{
	const json_t *moment = json_object_get(reply, "moment");
	const json_t *ticks = json_object_get(moment, "ticks");
	const json_t *ns = json_object_get(moment, "now_ns");

	if (!json_is_integer(ticks) || !json_is_integer(ns))
		return error_set(
			err, EPROTO,
			"the daemon's reply does not name its clock; are allot and allotd of the same version?");
	*ret_ticks = (uint64_t)json_integer_value(ticks);
	*ret_ns = (uint64_t)json_integer_value(ns);
	return 0;
}

int record_begin(struct client *client, const char *tenant, int fd, struct record **ret,
		 struct error *err)
{
	cleanup_json json_t *reply = NULL;
	uint64_t ticks, ns;
	int r = client_request(client, "trace", json_pack("{s:s}", "name", tenant), &reply, err);

	if (r == -EOPNOTSUPP)
		return error_set(err, EOPNOTSUPP,
				 "the daemon in %s is of a version that can't trace: restart it with "
				 "an allotd of the same version as this allot command",
				 client_run_dir(client));
	if (r >= 0)
		r = read_moment(reply, &ticks, &ns, err);
	if (r < 0)
		return r;
	struct record *record = calloc(1, sizeof(*record));
	if (!record || tick_map_begin(&record->map, ticks, ns) < 0) {
		record_free(record);
		return error_set(err, ENOMEM, "out of memory");
	}
	const char *name = json_string_value(json_object_get(reply, "name"));
	const char *clock = json_string_or(reply, "clock", "");
	record->client = client;
	record->out.fd = fd;
	record->begin_ns = record->now_ns = ns;
	snprintf(record->clock, sizeof(record->clock), "%s", clock);
	out_begin(&record->out);
	tracks_begin(&record->tracks, &record->out, name ? name : tenant, ns);
	*ret = record;
	return 0;
}

static void forget_untraced(struct record *r, int pid)
{
	for (size_t i = 0; i < r->untraced_count; i++)
		if (r->untraced[i].pid == pid) {
			r->untraced[i] = r->untraced[--r->untraced_count];
			return;
		}
}

static int add_process(struct record *r, const json_t *ring, int fd, struct error *err)
{
	struct traced_process **list = realloc(r->process, (r->process_count + 1) *
								   sizeof(struct traced_process *));
	cleanup_free struct traced_process *p = calloc(1, sizeof(*p));
	const char *name = json_string_or(ring, "name", "");

	if (list)
		r->process = list;
	if (!list || !p)
		return error_set(err, ENOMEM, "out of memory");
	p->pid = (int)json_integer_value(json_object_get(ring, "pid"));
	snprintf(p->command, sizeof(p->command), "%s", name);
	int result = ring_reader_open(fd, &p->reader, err);
	if (result < 0)
		return error_add(err, result, "process %d", p->pid);
	traced_process_begin(p, &r->out);
	forget_untraced(r, p->pid);
	r->process[r->process_count++] = steal_pointer(&p);
	return 0;
}

/* The descriptors of the reply's "rings" came with the reply, in the same order. */
static int add_processes(struct record *r, const json_t *reply, struct error *err)
{
	const json_t *rings = json_object_get(reply, "rings");
	int fds[CLIENT_FDS_MAX], result = 0;
	size_t count = client_take_fds(r->client, fds, CLIENT_FDS_MAX);

	r->has_more = count == CLIENT_FDS_MAX;
	if (count != json_array_size(rings))
		result = error_set(
			err, EPROTO,
			"the daemon's reply lacks the files of the trace: use the same version "
			"of allot and allotd");
	for (size_t i = 0; i < count; i++) {
		if (result >= 0)
			result = add_process(r, json_array_get(rings, i), fds[i], err);
		close(fds[i]);
	}
	return result;
}

static void note_untraced(struct record *r, const json_t *reply)
{
	const json_t *pids = json_object_get(reply, "untraced");
	size_t length = json_array_size(pids);

	for (size_t k = 0; k < length; k++) {
		int pid = (int)json_integer_value(json_array_get(pids, k));
		size_t i = 0;

		while (i < r->untraced_count && r->untraced[i].pid != pid)
			i++;
		if (i == RECORD_UNTRACED_MAX)
			continue;
		if (i == r->untraced_count) {
			r->untraced_count++;
			r->untraced[i].pid = pid;
			r->untraced[i].since_ns = r->now_ns;
		}
		r->untraced[i].last_ns = r->now_ns;
	}
}

int record_untraced(const struct record *r, size_t i)
{
	for (size_t k = 0; k < r->untraced_count; k++)
		if (r->untraced[k].last_ns - r->untraced[k].since_ns >= RECORD_ANSWER_NS && i-- == 0)
			return r->untraced[k].pid;
	return 0;
}

static int ask(struct record *r, struct error *err)
{
	cleanup_json json_t *reply = NULL;
	uint64_t ticks, ns;
	int result = client_request(r->client, "trace_poll", json_object(), &reply, err);

	if (result >= 0)
		result = read_moment(reply, &ticks, &ns, err);
	if (result < 0)
		return result;
	if (tick_map_add(&r->map, ticks, ns) < 0)
		return error_set(err, ENOMEM, "out of memory");
	r->now_ns = ns;
	result = add_processes(r, reply, err);
	if (result < 0)
		return result;
	r->has_ended = json_is_true(json_object_get(reply, "ended"));
	note_untraced(r, reply);
	tracks_add(&r->tracks, reply, ns);
	return 0;
}

static int write_processes(struct record *r, bool is_last, struct error *err)
{
	struct trace_scene scene = {
		.out = &r->out,
		.map = &r->map,
		.device = r->tracks.device,
		.device_count = r->tracks.device_count,
		.end_ns = is_last ? record_lasted_ns(r) : UINT64_MAX,
		.sums = &r->sums,
	};

	for (size_t i = 0; i < r->process_count; i++)
		if (traced_process_write(r->process[i], &scene, clock_now_ns(), is_last) < 0)
			return error_set(err, ENOMEM, "out of memory");
	out_flush(&r->out);
	return 0;
}

int record_round(struct record *r, bool is_last, struct error *err)
{
	int asked;

	/* One reply brings at most CLIENT_FDS_MAX rings (event buffers of processes), so ask until none is left. */
	do
		asked = ask(r, err);
	while (asked >= 0 && r->has_more);
	/* Write the processes' events even if the daemon is gone: the rings still have them. */
	int written = write_processes(r, is_last || asked < 0, asked < 0 ? NULL : err);

	return asked < 0 ? asked : written;
}

uint64_t record_lasted_ns(const struct record *r)
{
	return r->now_ns - r->begin_ns;
}

static void put_other(struct record *r)
{
	struct out *out = &r->out;
	time_t began = time(NULL) - (time_t)(record_lasted_ns(r) / NSEC_PER_SEC);
	struct tm utc;
	char text[32] = "";

	if (gmtime_r(&began, &utc))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
	out_begin_other(out);
	out_text(out, "tool", "allot " ALLOT_VERSION);
	out_text(out, "tenant", r->tracks.tenant);
	out_text(out, "began", text);
	out_text(out, "clock", r->clock);
	out_real(out, "lasted_s", (double)record_lasted_ns(r) / (double)NSEC_PER_SEC);
	out_whole(out, "processes", r->process_count);
	out_whole(out, "leases", r->tracks.leases);
	out_whole(out, "launches", r->sums.launches);
	out_whole(out, "work", r->sums.work);
	out_whole(out, "allocations", r->sums.allocations);
	out_whole(out, "frees", r->sums.frees);
	out_whole(out, "denied", r->sums.denied);
	out_whole(out, "gate_waits", r->sums.gate_waits);
	out_whole(out, "memory_waits", r->sums.memory_waits);
	out_whole(out, "lost", r->sums.lost);
	out_whole(out, "leases_lost", r->tracks.leases_lost);
}

int record_finish(struct record *r)
{
	tracks_end(&r->tracks, r->now_ns);
	put_other(r);
	return out_end(&r->out);
}

struct record *record_free(struct record *r)
{
	if (!r)
		return NULL;
	for (size_t i = 0; i < r->process_count; i++) {
		traced_process_end(r->process[i]);
		free(r->process[i]);
	}
	free(r->process);
	tick_map_clear(&r->map);
	free(r);
	return NULL;
}
