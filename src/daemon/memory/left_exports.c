#include "daemon/memory/left_exports.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/shm/fd_tag_format.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/state/tenant.h"

#define MIB (UINT64_C(1) << 20)

struct left_export {
	struct left_export *next;
	uint64_t key;
	unsigned device;
	uint64_t bytes; /* 0 until the tag is read */
	bool is_charged;
};

/* ---- the tags of open files ---- */

struct tags {
	struct fd_tag *list;
	size_t count, capacity;
};

static int compare_keys(const void *a, const void *b)
{
	const struct fd_tag *x = a, *y = b;
	return (x->key > y->key) - (x->key < y->key);
}

static bool add_tag(struct tags *tags, const char *line)
{
	const char *lock = strstr(line, "OFDLCK");
	struct fd_tag tag;
	if (!lock || !fd_tag_parse(lock, &tag))
		return true;
	if (tags->count == tags->capacity) {
		size_t more = tags->capacity ? 2 * tags->capacity : 64;
		struct fd_tag *grown = realloc(tags->list, more * sizeof(*grown));
		if (!grown)
			return false;
		tags->list = grown;
		tags->capacity = more;
	}
	tags->list[tags->count++] = tag;
	return true;
}

static bool read_locks(struct tags *tags)
{
	cleanup_file FILE *f = fopen("/proc/locks", "re");
	char line[256];
	size_t total = 0;
	while (f && fgets(line, sizeof(line), f)) {
		total += strlen(line);
		if (total > FD_TAG_LOCKS_MOST || !add_tag(tags, line))
			return false;
	}
	return f && !ferror(f);
}

/* Reads twice, because a file that is closed meanwhile may hide another tag. Returns false if the tags are unknown. */
static bool read_tags(struct tags *tags)
{
	bool is_read = read_locks(tags) && read_locks(tags);
	if (is_read && tags->count)
		qsort(tags->list, tags->count, sizeof(*tags->list), compare_keys);
	return is_read;
}

static const struct fd_tag *find_tag(const struct tags *tags, uint64_t key)
{
	struct fd_tag wanted = { .key = key };
	return tags->count ? bsearch(&wanted, tags->list, tags->count, sizeof(wanted), compare_keys)
			   : NULL;
}

/* ---- which tenant is charged ---- */

/* Returns true if the table of the tenant's shared memory (library/memory/exports.h) has a live process for the key. */
static bool has_live_owner(const struct tenant *t, uint64_t key)
{
	const struct region_report *report = t->region.report;
	for (unsigned i = 0; i < REGION_MAX_EXPORTS; i++) {
		const struct region_export *e = &report->export[(key + i) % REGION_MAX_EXPORTS];
		uint64_t at = atomic_load(&e->key), owner = atomic_load(&e->owner);
		uint32_t slot = (uint32_t)owner - 1;
		if (!at)
			return false;
		if (at == key)
			return slot < REGION_MAX_SLOTS && t->process[slot] &&
			       atomic_load(&report->slot[slot].generation) == owner >> 32;
	}
	return false;
}

static const struct left_export *find_left(const struct tenant *t, uint64_t key)
{
	for (const struct left_export *l = t->left; l; l = l->next)
		if (l->key == key)
			return l;
	return NULL;
}

/* Returns true if a live process of any tenant is charged, or another tenant by this module. */
static bool is_charged_elsewhere(const struct tenant *t, uint64_t key)
{
	const struct tenant *other;
	TAILQ_FOREACH(other, &t->node->tenants, link) {
		const struct left_export *l = other == t ? NULL : find_left(other, key);
		if (has_live_owner(other, key) || (l && l->is_charged))
			return true;
	}
	return false;
}

static void learn_size(const struct tenant *t, struct left_export *l, const struct fd_tag *tag)
{
	unsigned device = (unsigned)(l->key >> FD_TAG_DEVICE_SHIFT);
	/* Anyone may set a tag, so its values are bounded. */
	l->device = device < t->terms.device_count ? device : 0;
	uint64_t most = t->terms.device[l->device].card->info.memory_bytes;
	l->bytes = device == REGION_HOST             ? 0
		   : tag->pages < most / FD_TAG_PAGE ? tag->pages * FD_TAG_PAGE
						     : most;
}

static void update_tenant(struct tenant *t, const struct tags *tags)
{
	uint64_t sum[REGION_MAX_DEVICES] = { 0 };
	bool is_changed = false;
	for (struct left_export **at = &t->left, *l; (l = *at);) {
		const struct fd_tag *tag = find_tag(tags, l->key);
		if (!tag) {
			*at = l->next;
			free(l);
			continue;
		}
		learn_size(t, l, tag);
		l->is_charged = !is_charged_elsewhere(t, l->key);
		uint64_t most = t->terms.device[l->device].card->info.memory_bytes;
		if (l->is_charged && sum[l->device] < most)
			sum[l->device] += l->bytes;
		at = &l->next;
	}
	for (unsigned i = 0; i < t->terms.device_count; i++) {
		is_changed |= sum[i] != t->device[i].left_bytes;
		if (sum[i] > t->device[i].left_bytes)
			log_info_of(tenant_log_key(&t->terms),
				    "tenant '%s' (%s): descriptors of ended processes keep %" PRIu64
				    " MiB of GPU %u, which stay charged to the tenant",
				    t->terms.name, t->terms.id, sum[i] / MIB,
				    t->terms.device[i].card->index);
		t->device[i].left_bytes = sum[i];
	}
	if (!is_changed)
		return;
	tenant_publish_unslotted(t);
	node_grant_soon(t->node);
}

/* ---- events ---- */

void left_exports_update(struct node *node, const struct census_card *seen)
{
	struct tags tags = { 0 };
	struct tenant *t;
	uint64_t begun_ns = clock_now_ns();
	if (!left_exports_are_any(node) || begun_ns < node->left_due_ns)
		return;
	if (read_tags(&tags))
		TAILQ_FOREACH(t, &node->tenants, link)
			if (t->left)
				update_tenant(t, &tags);
	free(tags.list);
	uint64_t now_ns = clock_now_ns();
	node->left_due_ns = now_ns + FD_TAG_COST_PART * (now_ns - begun_ns);
}

void left_exports_process_gone(struct tenant *t, int pid, unsigned slot)
{
	const struct region_report *report = t->region.report;
	uint64_t owner = (uint64_t)atomic_load(&report->slot[slot].generation) << 32 | (slot + 1);
	bool is_any = false;
	for (unsigned i = 0; i < REGION_MAX_EXPORTS; i++) {
		struct left_export *l;
		uint64_t key = atomic_load(&report->export[i].key);
		if (!key || atomic_load(&report->export[i].owner) != owner || find_left(t, key) ||
		    !(l = calloc(1, sizeof(*l))))
			continue;
		*l = (struct left_export){ .next = t->left, .key = key };
		t->left = l;
		is_any = true;
	}
	if (is_any)
		left_exports_update(t->node, NULL);
}

void left_exports_forget(struct tenant *t)
{
	for (struct left_export *l; (l = t->left);) {
		t->left = l->next;
		free(l);
	}
}

bool left_exports_are_any(const struct node *node)
{
	const struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link)
		if (t->left)
			return true;
	return false;
}
