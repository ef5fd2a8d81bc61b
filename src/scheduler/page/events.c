#include "scheduler/page/events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "scheduler/page/state.h"

#define TICK_NS (NSEC_PER_SEC / EVENTS_HZ)
#define FIRST_NS (10 * NSEC_PER_MSEC) /* delay of the first event, by which the stream has begun */
/* Some shown values change with time alone, so they are checked this often even if the model does not change. */
#define STILL_NS (5 * NSEC_PER_SEC)

/* The page gets 1 / EXPLAIN_PART of the rate of explanations that the setting explain_limit allows. */
#define EXPLAIN_PART 4

static const char before[] = "data: ", after[] = "\n\n";

struct reader {
	struct server_call *call;
	struct view view;
	struct sent_state sent;
};

struct events {
	struct scheduler *scheduler;
	struct reader *reader[EVENTS_READERS_MAX];
	unsigned count;
	struct loop_source *tick;
	struct reasons *reasons;
	/* The page's own rate limit of explanations, so that it takes nothing from `allot explain`. */
	struct token_bucket explaining;
	struct history history;
	/* the model's `generation`, and the time, when events were last made */
	uint64_t generation, checked_ns;
	bool is_due; /* make events at the next tick, even if the model is unchanged */
	bool led;
};

static struct page_cluster cluster_of(struct events *e, const struct aggregate *aggregate)
{
	struct scheduler *s = e->scheduler;
	return (struct page_cluster){ .model = cluster_model(s->cluster),
				      .aggregate = aggregate,
				      .reasons = e->reasons,
				      .is_ready = cluster_check_ready(s->cluster, NULL) >= 0,
				      .leads = cluster_leads(s->cluster),
				      .node_url = s->config.web_node_url,
				      .now_ns = clock_now_ns() };
}

/* *ret is NULL if nothing changed. */
static int make_event(const struct page_cluster *c, struct reader *r, struct server_part **ret)
{
	struct json_text t = { 0 };
	struct server_part *part = NULL;
	json_text_bytes(&t, before, strlen(before));
	json_text_open(&t, NULL, '{');
	bool is_news = page_cluster_write(c, &r->view, &r->sent, &t);
	json_text_close(&t, '}');
	json_text_bytes(&t, after, strlen(after));
	size_t size = t.used;
	char *text = json_text_end(&t);
	if (text && is_news)
		part = server_part_new(size);
	if (part)
		memcpy(server_part_bytes(part), text, size);
	free(text);
	*ret = part;
	return text && (part || !is_news) ? 0 : -ENOMEM;
}

/* Returns false if the previous event is still being sent, or if memory ran out. The next event then has all changes. */
static bool send_to_one(const struct page_cluster *c, struct reader *r)
{
	struct sent_state sent = r->sent;
	struct server_part *part;
	if (!server_stream_is_ready(r->call))
		return false;
	int e = make_event(c, r, &part);
	if (e >= 0 && part)
		e = server_stream_send(r->call, part);
	if (e < 0)
		r->sent = sent;
	server_part_free(part);
	return e >= 0;
}

static void send_to_all(struct events *e, uint64_t now_ns)
{
	struct aggregate aggregate;
	struct model *m = cluster_model(e->scheduler->cluster);
	if (aggregate_make(m, &aggregate) < 0)
		return;
	struct page_cluster c = cluster_of(e, &aggregate);
	e->generation = m->generation;
	e->checked_ns = now_ns;
	e->is_due = false;
	e->led = c.leads;
	for (unsigned i = 0; i < e->count; i++)
		e->is_due |= !send_to_one(&c, e->reader[i]);
	history_add(&e->history, &aggregate, now_ns);
	aggregate_free(&aggregate);
}

static void tick(void *data, uint32_t loop_events)
{
	struct events *e = data;
	struct scheduler *s = e->scheduler;
	struct model *m = cluster_model(s->cluster);
	uint64_t now_ns = clock_now_ns();
	/* CPU time of this thread: elapsed time would include the work of other threads. */
	uint64_t begun_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	if (e->is_due || m->generation != e->generation || now_ns - e->checked_ns >= STILL_NS ||
	    e->led != cluster_leads(s->cluster))
		send_to_all(e, now_ns);
	uint64_t spent_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - begun_ns;
	/* reasons_refresh() does not lengthen the pause, because it has a rate limit of its own (`explaining`). */
	if (reasons_refresh(e->reasons, m, &e->explaining, m->nodes.count, clock_now_ns()))
		e->is_due = true;
	uint64_t pause_ns = (uint64_t)((double)spent_ns / EVENTS_SHARE);
	loop_arm(e->tick, pause_ns > TICK_NS ? pause_ns : TICK_NS, 0);
}

int events_add(struct events *e, struct server_call *call, const struct view *view)
{
	if (e->count == EVENTS_READERS_MAX)
		return -EBUSY;
	struct reader *r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->call = call;
	r->view = *view;
	e->reader[e->count++] = r;
	e->is_due = true;
	loop_arm(e->tick, FIRST_NS, 0);
	return 0;
}

void events_remove(struct events *e, struct server_call *call)
{
	unsigned i = 0;
	while (i < e->count && e->reader[i]->call != call)
		i++;
	if (i == e->count)
		return;
	free(e->reader[i]);
	e->reader[i] = e->reader[--e->count];
	if (!e->count)
		loop_disarm(e->tick);
}

static char *write_state(const struct page_cluster *c, const struct view *view)
{
	struct sent_state sent = { 0 };
	struct json_text t = { 0 };
	json_text_open(&t, NULL, '{');
	page_cluster_write(c, view, &sent, &t);
	json_text_close(&t, '}');
	return json_text_end(&t);
}

char *events_state(struct events *e, const struct view *view)
{
	struct aggregate aggregate;
	struct scheduler *s = e->scheduler;
	struct model *m = cluster_model(s->cluster);
	if (aggregate_make(m, &aggregate) < 0)
		return NULL;
	const struct page_cluster c = cluster_of(e, &aggregate);
	char *text = write_state(&c, view);
	/* Without readers, the timer does not compute why pods wait. So compute it here, and write again. */
	if (text && !e->count &&
	    reasons_refresh(e->reasons, m, &e->explaining, m->nodes.count, c.now_ns)) {
		free(text);
		text = write_state(&c, view);
	}
	aggregate_free(&aggregate);
	return text;
}

char *events_history(struct events *e)
{
	struct json_text t = { 0 };
	json_text_open(&t, NULL, '{');
	json_text_whole(&t, "version", 1);
	history_write(&e->history, clock_now_ns(), &t);
	json_text_close(&t, '}');
	return json_text_end(&t);
}

int events_new(struct scheduler *s, struct events **ret, struct error *err)
{
	struct events *e = calloc(1, sizeof(*e));
	if (!e)
		return error_set_errno(err, ENOMEM, "page");
	e->scheduler = s;
	e->explaining.per_second = (s->config.explain_nodes + EXPLAIN_PART - 1) / EXPLAIN_PART;
	e->reasons = reasons_new();
	int r = e->reasons ? loop_add_timer(s->loop, tick, e, &e->tick) : -ENOMEM;
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
	reasons_free(e->reasons);
	while (e->count)
		free(e->reader[--e->count]);
	free(e);
	return NULL;
}
