#include "daemon/tasks/freezer/freezer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/settings/settings.h"
#include "daemon/tasks/freezer/frozen_list.h"
#include "daemon/tasks/freezer/watchdog.h"

#define MIB (UINT64_C(1) << 20)
/* Memory figures older than this are not used to decide whether a container may start. */
#define FRESH_NS (100 * NSEC_PER_MSEC)
/* Interval of look_at_v1() while containers are frozen by cgroup version 1. */
#define LOOK_NS (20 * NSEC_PER_MSEC)
#define MPS_NAME "nvidia-cuda-mps" /* prefix of the names of MPS's control daemon and server */

struct freezer {
	struct loop *loop;
	const struct config *config;
	const char *run_dir;
	struct gpu_tasks *tasks;
	struct cgroups cgroups;
	struct watchdog *watchdog;
	struct loop_source *watchdog_source, *v1_timer;
	unsigned v1_count; /* number of containers that are frozen by cgroup version 1 */
	struct freeze_card card[FREEZE_MAX_CARDS];
	/* when the last census began; 0: none yet */
	uint64_t read_ns;
	uint64_t arrivals;
	bool is_failure_logged;
	uint64_t freezes, thaws, failures, frozen_ns;
};

static void write_list(struct freezer *f, const struct gpu_container *more)
{
	const struct cgroup *list[WATCHDOG_MAX + 1];
	struct gpu_container *c;
	size_t count = 0;
	TAILQ_FOREACH(c, &f->tasks->containers, link)
		if ((c->is_frozen || c == more) && count <= WATCHDOG_MAX)
			list[count++] = &c->cgroup;
	int r = frozen_list_write(f->run_dir, list, count);
	if (r < 0)
		log_warning("%s/frozen can't be written: %s; a container may stay frozen if allotd "
			    "and its watchdog are killed",
			    f->run_dir, strerror(-r));
}

static void watchdog_died(void *data, uint32_t events);

static int need_watchdog(struct freezer *f, struct error *err)
{
	if (f->watchdog)
		return 0;
	int r = watchdog_start(&f->watchdog, err);
	if (r < 0)
		return r;
	r = loop_add(f->loop, watchdog_pidfd(f->watchdog), EPOLLIN, watchdog_died, f,
		     &f->watchdog_source);
	if (r >= 0)
		return 0;
	f->watchdog = watchdog_stop(f->watchdog);
	return error_set_errno(err, -r, "the freezer's watchdog");
}

static int thaw(struct freezer *f, struct gpu_container *c)
{
	uint64_t now_ns = clock_now_ns();
	if (!c->is_frozen)
		return 0;
	int r = cgroup_thaw(&c->cgroup);
	if (r < 0 && r != -ENOENT && r != -ENODEV) {
		log_error("container %.*s can't be thawed: %s; trying again", CONTAINER_SHORT_ID,
			  c->what.id, strerror(-r));
		/* freezer_read() tries again. Until then the watchdog and frozen_list.h keep the cgroup in their lists. */
		return r;
	}
	c->is_frozen = false;
	c->frozen_ns += now_ns - c->frozen_since_ns;
	f->frozen_ns += now_ns - c->frozen_since_ns;
	f->thaws++;
	c->frozen_since_ns = 0;
	if (f->watchdog)
		watchdog_remove(f->watchdog, &c->cgroup);
	if (!c->cgroup.is_v2 && --f->v1_count == 0)
		loop_disarm(f->v1_timer);
	write_list(f, NULL);
	return 0;
}

static int freeze(struct freezer *f, struct gpu_container *c, struct error *err)
{
	if (c->is_frozen)
		return 0;
	int r = cgroup_find_freezer(&f->cgroups, &c->what, &c->cgroup, err);
	if (r >= 0)
		r = need_watchdog(f, err);
	if (r < 0)
		return r;
	r = watchdog_add(f->watchdog, &c->cgroup);
	if (r == -ENOSPC)
		return error_set(err, ENOSPC,
				 "at most %d containers can be frozen at a time: resume one first",
				 WATCHDOG_MAX);
	if (r < 0)
		return error_set_errno(err, -r, "the freezer's watchdog");
	write_list(f, c);
	r = cgroup_freeze(&c->cgroup);
	if (r < 0) {
		watchdog_remove(f->watchdog, &c->cgroup);
		write_list(f, NULL);
		return error_set_errno(err, -r, "%s", c->cgroup.dir);
	}
	c->is_frozen = true;
	f->freezes++;
	c->frozen_since_ns = clock_now_ns();
	if (!c->cgroup.is_v2 && f->v1_count++ == 0)
		loop_arm(f->v1_timer, LOOK_NS, LOOK_NS);
	return 0;
}

static void set_holds(struct gpu_container *c, unsigned holds)
{
	c->holds = holds;
	c->item.by_hand = holds != 0;
}

/* From now on, neither a request nor the policy holds the container. */
static void end_holds(struct gpu_container *c)
{
	set_holds(c, 0);
	if (freeze_is_held(&c->item))
		freeze_resume(&c->item, clock_now_ns());
}

/* Thaws all containers: without the watchdog, a killed daemon would leave containers frozen until the next daemon starts. */
static void watchdog_died(void *data, uint32_t events)
{
	struct freezer *f = data;
	struct gpu_container *c;
	log_warning("the freezer's watchdog process has died: all containers are thawed, and the "
		    "next freeze starts another watchdog");
	f->watchdog_source = loop_remove(f->watchdog_source);
	f->watchdog = watchdog_stop(f->watchdog);
	TAILQ_FOREACH(c, &f->tasks->containers, link)
		if (c->is_frozen) {
			thaw(f, c);
			end_holds(c);
		}
}

/*
 * A killed process that is frozen by cgroup version 1 ends only after a thaw, so thaws its container. Version 1 can also miss
 * processes when it freezes a cgroup, so freezes the other containers' cgroups again.
 */
static void look_at_v1(void *data, uint32_t events)
{
	struct freezer *f = data;
	struct gpu_container *c;
	TAILQ_FOREACH(c, &f->tasks->containers, link) {
		if (!c->is_frozen || c->cgroup.is_v2)
			continue;
		if (!cgroup_has_killed(&c->cgroup)) {
			cgroup_retry_freeze(&c->cgroup);
			continue;
		}
		log_info("container %.*s is thawed: a process in it was killed, and can end only "
			 "after the thaw",
			 CONTAINER_SHORT_ID, c->what.id);
		thaw(f, c);
		end_holds(c);
	}
}

static struct freeze_config policy(const struct freezer *f)
{
	return (struct freeze_config){ .threshold_bytes = f->config->freeze_threshold_bytes,
				       .settle_ns = f->config->thaw_settle_ns,
				       .bounds = { ORDER_PATIENCE_NS, ORDER_PASSES_MOST } };
}

/* Lists the containers about which the policy decides. The caller frees the list; NULL if out of memory. */
static struct freeze_item **gather(const struct freezer *f, size_t *ret_count)
{
	struct freeze_item **items = calloc(f->tasks->container_count + 1, sizeof(*items));
	struct gpu_container *c;
	size_t count = 0;
	TAILQ_FOREACH(c, &f->tasks->containers, link)
		if (items && c->item.cards)
			items[count++] = &c->item;
	*ret_count = count;
	return items;
}

static struct gpu_container *container_of(struct freeze_item *item)
{
	char *at = (char *)item - offsetof(struct gpu_container, item);
	return (struct gpu_container *)(void *)at;
}

static int apply(struct freezer *f, struct gpu_container *c, struct error *err)
{
	if (c->item.by_hand || freeze_is_held(&c->item))
		return freeze(f, c, err);
	thaw(f, c);
	return 0;
}

static bool fits_list(const char *list, const struct container *what)
{
	return settings_list_matches(list, what->v2_path[0] ? what->v2_path : what->v1_path);
}

static bool serves_mps(const struct freezer *f)
{
	struct gpu_task *t;
	TAILQ_FOREACH(t, &f->tasks->live, link)
		if (!strncmp(t->name, MPS_NAME, strlen(MPS_NAME)))
			return true;
	return false;
}

static bool is_governed(const struct freezer *f, const struct gpu_container *c)
{
	return f->config->is_freezing && c && !c->has_library &&
	       fits_list(f->config->freeze_only, &c->what) &&
	       !fits_list(f->config->freeze_never, &c->what) && !serves_mps(f);
}

static void log_frozen(const struct freezer *f, const struct gpu_container *c)
{
	for (unsigned i = 0; i < f->tasks->card_count; i++)
		if (c->item.phase == FREEZE_WAITING && c->item.cards >> i & 1)
			log_info("container %.*s (%s) waits at the start of its GPU work: GPU %u "
				 "has %" PRIu64 " MiB free, and %" PRIu64 " MiB are needed",
				 CONTAINER_SHORT_ID, c->what.id, c->what.engine, i,
				 f->card[i].free_bytes / MIB,
				 f->config->freeze_threshold_bytes / MIB);
}

static void cannot_freeze(struct freezer *f, struct gpu_container *c, const struct error *err)
{
	freeze_resume(&c->item, clock_now_ns());
	/* The container has ended meanwhile: that is no failure. */
	if (err->code == ENOENT || err->code == ENODEV)
		return;
	f->failures++;
	if (f->is_failure_logged)
		return;
	f->is_failure_logged = true;
	log_warning("freezer: a container can't be frozen: %s; such containers start their GPU "
		    "work without waiting for memory (logged once)",
		    err->text);
}

void freezer_task_begun(struct freezer *f, struct gpu_task *task, uint64_t cards, bool runs)
{
	struct gpu_container *c = task->container;
	struct freeze_config config = policy(f);
	uint64_t now_ns = clock_now_ns();
	struct error err = { 0 };
	size_t count;
	if (!is_governed(f, c)) {
		/* If the container has got the library, it need not stay frozen: the library makes its allocations wait. */
		if (c && freeze_is_held(&c->item))
			freeze_resume(&c->item, now_ns);
		if (c && !c->item.by_hand)
			thaw(f, c);
		return;
	}
	if (c->item.phase != FREEZE_NONE)
		return;
	c->item.cards = cards;
	c->item.key = (struct order_key){
		.use_ns = fade_use_ns(&c->fade, now_ns, f->config->use_half_life_ns),
		.arrival = ++f->arrivals,
		.since_ns = now_ns,
		.id = (uint32_t)f->arrivals,
	};
	if (runs) {
		freeze_resume(&c->item, now_ns);
		return;
	}
	struct freeze_item **items = gather(f, &count);
	bool is_fresh = f->read_ns && now_ns - f->read_ns < FRESH_NS;
	if (items)
		freeze_start(&config, f->card, f->tasks->card_count, items, count, &c->item,
			     is_fresh, now_ns);
	free(items);
	if (apply(f, c, &err) < 0)
		cannot_freeze(f, c, &err);
	else
		log_frozen(f, c);
}

void freezer_task_ended(struct freezer *f, struct gpu_task *task)
{
	struct gpu_container *c = task->container;
	if (!c || c->live)
		return;
	freeze_end(&c->item);
	c->item.cards = 0;
	c->has_library = false;
	if (!c->item.by_hand)
		thaw(f, c);
}

/* Decides in the order of arrival. Omits containers that were frozen after the last census began: its figures are older. */
static void answer_asking(struct freezer *f, const struct freeze_config *config,
			  struct freeze_item **items, size_t count, uint64_t now_ns)
{
	for (;;) {
		struct freeze_item *first = NULL;
		for (size_t i = 0; i < count; i++)
			if (items[i]->phase == FREEZE_ASKING &&
			    items[i]->key.since_ns <= f->read_ns &&
			    (!first || items[i]->key.arrival < first->key.arrival))
				first = items[i];
		if (!first)
			return;
		freeze_start(config, f->card, f->tasks->card_count, items, count, first, true,
			     now_ns);
		log_frozen(f, container_of(first));
	}
}

void freezer_read(struct freezer *f, const struct freeze_card *cards, uint64_t begun_ns)
{
	struct freeze_config config = policy(f);
	uint64_t now_ns = clock_now_ns();
	struct freeze_item *next;
	struct gpu_container *c;
	size_t count;
	memcpy(f->card, cards, f->tasks->card_count * sizeof(*cards));
	f->read_ns = begun_ns;
	struct freeze_item **items = gather(f, &count);
	if (!items)
		return;
	for (size_t i = 0; i < count; i++) {
		uint64_t held = 0;
		c = container_of(items[i]);
		for (unsigned k = 0; k < f->tasks->card_count; k++)
			held += c->card[k].held_bytes;
		freeze_note_memory(items[i], held, now_ns);
		items[i]->key.use_ns = fade_use_ns(&c->fade, now_ns, f->config->use_half_life_ns);
	}
	for (size_t i = 0; i < count && serves_mps(f); i++)
		if (freeze_is_held(items[i]))
			freeze_resume(items[i], now_ns);
	answer_asking(f, &config, items, count, now_ns);
	while ((next = freeze_next(&config, f->card, f->tasks->card_count, items, count, now_ns)))
		log_info("container %.*s continues, after it waited %.1f s for GPU memory",
			 CONTAINER_SHORT_ID, container_of(next)->what.id,
			 (double)(now_ns - next->key.since_ns) / (double)NSEC_PER_SEC);
	free(items);
	/* Visit also containers without tasks, because they may still have to be thawed. */
	TAILQ_FOREACH(c, &f->tasks->containers, link) {
		struct error err = { 0 };
		if (apply(f, c, &err) < 0)
			cannot_freeze(f, c, &err);
	}
}

uint64_t freezer_starting_bytes(const struct freezer *f, unsigned card)
{
	struct freeze_config config = policy(f);
	size_t count;
	struct freeze_item **items = gather(f, &count);
	uint64_t bytes = items ? freeze_starting_bytes(&config, card, items, count) : 0;
	free(items);
	return bytes;
}

bool freezer_needs_census_soon(const struct freezer *f)
{
	struct gpu_container *c;
	TAILQ_FOREACH(c, &f->tasks->containers, link)
		if (c->item.cards && c->item.phase != FREEZE_NONE && c->item.phase != FREEZE_SETTLED)
			return true;
	return false;
}

bool freezer_needs_census_now(const struct freezer *f)
{
	struct gpu_container *c;
	TAILQ_FOREACH(c, &f->tasks->containers, link)
		if (c->item.phase == FREEZE_ASKING)
			return true;
	return false;
}

int freezer_hold(struct freezer *f, struct gpu_container *c, enum freezer_hold why,
		 struct error *err)
{
	int r = freeze(f, c, err);
	if (r >= 0)
		set_holds(c, c->holds | why);
	return r;
}

static int thaw_by_request(struct freezer *f, struct gpu_container *c, struct error *err)
{
	int r = thaw(f, c);
	return r < 0 ? error_set(err, -r,
				 "container %.*s can't be thawed and stays frozen: %s; allotd tries "
				 "again, and allot tasks shows when it runs",
				 CONTAINER_SHORT_ID, c->what.id, strerror(-r))
		     : 0;
}

int freezer_release(struct freezer *f, struct gpu_container *c, enum freezer_hold why,
		    struct error *err)
{
	set_holds(c, c->holds & ~(unsigned)why);
	return c->holds || freeze_is_held(&c->item) ? 0 : thaw_by_request(f, c, err);
}

int freezer_resume(struct freezer *f, struct gpu_container *c, struct error *err)
{
	if (!c->is_frozen)
		return error_set(err, EALREADY,
				 "container %.*s is not paused: there is nothing to resume",
				 CONTAINER_SHORT_ID, c->what.id);
	end_holds(c);
	return thaw_by_request(f, c, err);
}

struct freezer_figures freezer_figures(const struct freezer *f, uint64_t now_ns)
{
	struct freezer_figures figures = { .freezes = f->freezes,
					   .thaws = f->thaws,
					   .failures = f->failures,
					   .frozen_ns = f->frozen_ns };
	const struct gpu_container *c;
	TAILQ_FOREACH(c, &f->tasks->containers, link)
		if (c->is_frozen)
			figures.frozen_ns += now_ns - c->frozen_since_ns;
	return figures;
}

enum freezer_state freezer_state(const struct gpu_container *c)
{
	if (c->item.by_hand)
		return FREEZER_STATE_PAUSED;
	if (freeze_is_held(&c->item))
		return FREEZER_STATE_WAITING;
	if (c->is_frozen) /* its thaw failed */
		return FREEZER_STATE_PAUSED;
	if (!c->live)
		return FREEZER_STATE_ENDED;
	return c->item.phase == FREEZE_STARTING ? FREEZER_STATE_STARTING : FREEZER_STATE_RUNNING;
}

const char *freezer_state_text(enum freezer_state state)
{
	static const char *const texts[] = { "running", "starting", "waiting", "paused", "ended" };
	return texts[state];
}

const char *freezer_state_name(const struct gpu_container *c)
{
	return freezer_state_text(freezer_state(c));
}

uint64_t freezer_frozen_ns(const struct gpu_container *c, uint64_t now_ns)
{
	return c->frozen_ns + (c->frozen_since_ns ? now_ns - c->frozen_since_ns : 0);
}

int freezer_new(struct loop *loop, const struct config *config, const char *run_dir,
		struct gpu_tasks *tasks, struct freezer **ret, struct error *err)
{
	struct freezer *f = calloc(1, sizeof(*f));
	if (!f)
		return error_set_errno(err, ENOMEM, "freezer");
	f->loop = loop;
	f->config = config;
	f->run_dir = run_dir;
	f->tasks = tasks;
	int r = loop_add_timer(loop, look_at_v1, f, &f->v1_timer);
	if (r < 0) {
		free(f);
		return error_set_errno(err, -r, "freezer's timer");
	}
	r = cgroups_find(&f->cgroups);
	if (r < 0)
		log_warning("freezer: cgroups can't be found: %s; no container can be frozen",
			    strerror(-r));
	unsigned left = frozen_list_thaw(run_dir, &f->cgroups);
	if (left)
		log_warning("%u containers that the previous daemon left frozen were thawed", left);
	*ret = f;
	return 0;
}

struct freezer *freezer_free(struct freezer *f)
{
	struct gpu_container *c;
	if (!f)
		return NULL;
	TAILQ_FOREACH(c, &f->tasks->containers, link)
		thaw(f, c);
	loop_remove(f->watchdog_source);
	loop_remove(f->v1_timer);
	watchdog_stop(f->watchdog);
	free(f);
	return NULL;
}
