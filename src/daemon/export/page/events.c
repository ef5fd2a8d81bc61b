#include "daemon/export/page/events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/export/page/state.h"
#include "daemon/gpu/census.h"

#define TICK_NS (NSEC_PER_SEC / EVENTS_HZ)
/* delay of the first state, so that the stream has begun by then */
#define FIRST_NS (10 * NSEC_PER_MSEC)
#define KEEP_NS (HISTORY_SAMPLES * HISTORY_EVERY_NS)

static const char before[] = "data: ", after[] = "\n\n";

struct reader {
	struct server_call *call;
	/* the client received the previous state, so it needs only the differences */
	bool has_last;
};

struct events {
	struct node *node;
	struct reader reader[EVENTS_READERS_MAX];
	unsigned count;
	struct loop_source *tick, *sample_timer;
	struct page_sent sent;
	struct state_text last;  /* the previous state; empty if none */
	struct history *history; /* NULL: no client in the last ten minutes */
	uint64_t left_ns;        /* when the last client left */
};

/* NULL if out of memory, now or when the JSON was written. */
static struct server_part *make_event(const struct json_text *json)
{
	struct server_part *part =
		json->failed ? NULL : server_part_new(strlen(before) + json->used + strlen(after));
	if (!part)
		return NULL;
	char *to = mempcpy(server_part_bytes(part), before, strlen(before));
	memcpy(mempcpy(to, json->text, json->used), after, strlen(after));
	return part;
}

/* True if a state can be sent now to a client whose reader.has_last equals `has_last`. */
static bool is_any(const struct events *e, bool has_last)
{
	for (unsigned i = 0; i < e->count; i++)
		if (e->reader[i].has_last == has_last && server_stream_is_ready(e->reader[i].call))
			return true;
	return false;
}

static struct server_part *make_news(const struct state_text *last, const struct state_text *now)
{
	struct json_text news = { 0 };
	state_text_write_news(last, now, &news);
	struct server_part *part = make_event(&news);
	free(json_text_end(&news));
	return part;
}

static void send_state(void *data, uint32_t loop_events)
{
	struct events *e = data;
	struct state_text now = { 0 };
	/*
	 * A client that missed states also missed lease spans (times in which one tenant had a card). So send all recorded
	 * spans; a client may get one twice.
	 */
	if (is_any(e, false))
		e->sent = (struct page_sent){ 0 };
	page_state_write(e->node, &e->sent, &now);
	bool is_written = !now.json.failed;
	struct server_part *whole = is_written && is_any(e, false) ? make_event(&now.json) : NULL;
	struct server_part *news = is_written && is_any(e, true) ? make_news(&e->last, &now) : NULL;
	for (unsigned i = 0; i < e->count; i++) {
		struct reader *r = &e->reader[i];
		struct server_part *part = r->has_last ? news : whole;
		r->has_last = part && server_stream_send(r->call, part) >= 0;
	}
	server_part_free(whole);
	server_part_free(news);
	state_text_free(&e->last);
	e->last = now;
}

static void sample(void *data, uint32_t loop_events)
{
	struct events *e = data;
	if (!e->count && clock_now_ns() - e->left_ns >= KEEP_NS) {
		e->history = history_free(e->history);
		loop_disarm(e->sample_timer);
		return;
	}
	page_state_sample(e->node, e->history);
}

static void watch_spans(struct events *e, bool is_watched)
{
	for (unsigned i = 0; i < e->node->card_count; i++)
		if (arbitration_watch_spans(e->node->card[i].arbitration, is_watched) < 0)
			log_warning(
				"page: out of memory: the web page does not show which tenant has GPU %u",
				i);
	e->sent = (struct page_sent){ 0 };
}

int events_add(struct events *e, struct server_call *call)
{
	if (e->count == EVENTS_READERS_MAX)
		return -EBUSY;
	if (!e->history) {
		e->history = history_new();
		if (!e->history)
			return -ENOMEM;
		loop_arm(e->sample_timer, 0, HISTORY_EVERY_NS);
	}
	if (!e->count) {
		watch_spans(e, true);
		/* The first watcher should see current memory use. */
		census_request(e->node->census);
		loop_arm(e->tick, FIRST_NS, TICK_NS);
	}
	e->reader[e->count++] = (struct reader){ .call = call };
	return 0;
}

void events_remove(struct events *e, struct server_call *call)
{
	unsigned i = 0;
	while (i < e->count && e->reader[i].call != call)
		i++;
	if (i == e->count)
		return;
	e->reader[i] = e->reader[--e->count];
	if (e->count)
		return;
	loop_disarm(e->tick);
	watch_spans(e, false);
	state_text_free(&e->last);
	e->left_ns = clock_now_ns();
}

const struct history *events_history(const struct events *e)
{
	return e->history;
}

int events_new(struct node *node, struct events **ret, struct error *err)
{
	struct events *e = calloc(1, sizeof(*e));
	if (!e)
		return error_set_errno(err, ENOMEM, "can't start the web page (web_listen)");
	e->node = node;
	int r = loop_add_timer(node->loop, send_state, e, &e->tick);
	if (r >= 0)
		r = loop_add_timer(node->loop, sample, e, &e->sample_timer);
	if (r < 0) {
		events_free(e);
		return error_set_errno(err, -r, "can't start the web page (web_listen)");
	}
	*ret = e;
	return 0;
}

struct events *events_free(struct events *e)
{
	if (!e)
		return NULL;
	loop_remove(e->tick);
	loop_remove(e->sample_timer);
	history_free(e->history);
	state_text_free(&e->last);
	free(e);
	return NULL;
}
