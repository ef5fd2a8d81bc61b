#include "node/page/events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "node/census.h"
#include "node/page/state.h"

#define TICK_NS (NSEC_PER_SEC / EVENTS_HZ)
#define FIRST_NS (10 * NSEC_PER_MSEC) /* until the first state: the stream has begun by then */
#define KEEP_NS (HISTORY_SAMPLES * HISTORY_EVERY_NS)

static const char before[] = "data: ", after[] = "\n\n";

struct events {
	struct node *node;
	struct server_call *reader[EVENTS_READERS_MAX];
	unsigned count;
	struct loop_source *tick, *sample_timer;
	struct page_told told;
	struct history *history; /* NULL: nobody has looked of late */
	uint64_t left_ns;        /* when the last reader went */
};

/* The state as an event; NULL: out of memory. */
static struct server_part *make_event(struct events *e)
{
	struct json_text t = { 0 };
	struct server_part *part = NULL;
	json_text_bytes(&t, before, strlen(before));
	page_state_write(e->node, &e->told, &t);
	json_text_bytes(&t, after, strlen(after));
	size_t size = t.used;
	char *text = json_text_end(&t);
	if (text)
		part = server_part_new(size);
	if (part)
		memcpy(server_part_bytes(part), text, size);
	free(text);
	return part;
}

static void tell(void *data, uint32_t loop_events)
{
	struct events *e = data;
	struct server_part *part = make_event(e);
	for (unsigned i = 0; part && i < e->count; i++)
		server_stream_send(e->reader[i], part);
	server_part_free(part);
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
			log_warning("page: out of memory: it does not show who has GPU %u", i);
	e->told = (struct page_told){ 0 };
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
		/* As for whoever asks on the control socket: what the cards hold should be of now. */
		census_request(e->node->census);
		loop_arm(e->tick, FIRST_NS, TICK_NS);
	}
	e->reader[e->count++] = call;
	return 0;
}

void events_remove(struct events *e, struct server_call *call)
{
	unsigned i = 0;
	while (i < e->count && e->reader[i] != call)
		i++;
	if (i == e->count)
		return;
	e->reader[i] = e->reader[--e->count];
	if (e->count)
		return;
	loop_disarm(e->tick);
	watch_spans(e, false);
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
		return error_set_errno(err, ENOMEM, "page");
	e->node = node;
	int r = loop_add_timer(node->loop, tell, e, &e->tick);
	if (r >= 0)
		r = loop_add_timer(node->loop, sample, e, &e->sample_timer);
	if (r < 0) {
		events_free(e);
		return error_set_errno(err, -r, "page");
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
	free(e);
	return NULL;
}
