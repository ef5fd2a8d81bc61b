#include "daemon/state/node/drain.h"

#include <stdlib.h>

#include "base/clock.h"
#include "daemon/gpu/nvml/census_policy.h"
#include "daemon/state/node/node.h"

struct drain {
	struct drain *next;
	int pid;
	uint64_t bytes;
	uint64_t begun_ns;
	bool figure_known;
	uint64_t figure_bytes; /* the card's used memory, as last read before the death */
	bool unlisted_known;
	/* the part of figure_bytes that no process on NVML's list held */
	uint64_t unlisted_bytes;
};

void drain_add(struct node *node, struct card *card, int pid, uint64_t bytes, bool was_listed)
{
	struct drain *d = bytes ? calloc(1, sizeof(*d)) : NULL;
	/* If calloc() failed, the bytes count as free slightly too early. */
	if (!d)
		return;
	*d = (struct drain){ .next = card->drains,
			     .pid = pid,
			     .bytes = bytes,
			     .begun_ns = clock_now_ns(),
			     .figure_known = card->memory_known,
			     .figure_bytes = card->memory_used_bytes,
			     .unlisted_known = card->unlisted_known && was_listed,
			     .unlisted_bytes = card->unlisted_bytes };
	card->drains = d;
	loop_arm(node->drain_timer, DRAIN_LOOK_NS, 0);
}

uint64_t drain_bytes(const struct card *card)
{
	uint64_t sum = 0;
	for (const struct drain *d = card->drains; d; d = d->next)
		sum += d->bytes;
	return sum;
}

static bool is_listed(const struct census_card *seen, int pid)
{
	for (size_t i = 0; i < seen->process_count; i++)
		if (seen->process[i].pid == pid)
			return true;
	return false;
}

bool drain_has(const struct card *card, int pid)
{
	for (const struct drain *d = card->drains; d; d = d->next)
		if (d->pid == pid)
			return true;
	return false;
}

/* Finds the part of the card's used memory that no process on NVML's list holds. Returns false if it is unknown. */
static bool unlisted(const struct census_card *seen, uint64_t *ret_bytes)
{
	uint64_t listed = 0;
	if (!seen->memory_known || !seen->processes_known)
		return false;
	for (size_t i = 0; i < seen->process_count; i++) {
		if (!seen->process[i].used_known)
			return false;
		listed += seen->process[i].used_bytes;
	}
	*ret_bytes = seen->memory.used_bytes > listed ? seen->memory.used_bytes - listed : 0;
	return true;
}

/*
 * Returns true if `seen` shows that the driver has freed the memory of `d`. The process must be off NVML's list. Also, the
 * card's used memory must have fallen by about d->bytes, or its part that no listed process holds must not have grown. The
 * latter works even if other processes allocate. If figure_bytes is unknown, NVML's list alone decides.
 */
static bool is_confirmed(const struct drain *d, const struct census_card *seen)
{
	if (!seen->memory_known || seen->begun_ns < d->begun_ns)
		return false;
	if (seen->processes_known && is_listed(seen, d->pid))
		return false;
	if (!d->figure_known)
		return seen->processes_known;
	uint64_t expected = d->figure_bytes > d->bytes ? d->figure_bytes - d->bytes : 0;
	uint64_t now_unlisted;
	if (d->unlisted_known && unlisted(seen, &now_unlisted) &&
	    now_unlisted <= d->unlisted_bytes + d->bytes / 16)
		return true;
	return seen->memory.used_bytes <= expected + d->bytes / 16;
}

/* One fall of the card's used memory must not confirm two entries: subtract the bytes of `d` from the other entries' figure. */
static void use_up_fall(struct card *card, const struct drain *d)
{
	uint64_t least = d->bytes - d->bytes / 16;
	if (!d->figure_known)
		return;
	for (struct drain *other = card->drains; other; other = other->next)
		if (other != d)
			other->figure_bytes -= least < other->figure_bytes ? least
									   : other->figure_bytes;
}

void drain_update(struct node *node, struct card *card, const struct census_card *seen)
{
	uint64_t now_ns = clock_now_ns();
	for (struct drain **link = &card->drains; *link;) {
		struct drain *d = *link;
		bool is_gone = seen && is_confirmed(d, seen);
		if (now_ns - d->begun_ns < DRAIN_MAX_NS && !is_gone) {
			link = &d->next;
			continue;
		}
		if (is_gone)
			use_up_fall(card, d);
		*link = d->next;
		free(d);
		node_grant_soon(node);
	}
	/* Read the unlisted memory only while no memory drains: otherwise it includes the memory of dead processes. */
	if (seen && !card->drains)
		card->unlisted_known = unlisted(seen, &card->unlisted_bytes);
	if (card->drains)
		loop_arm(node->drain_timer, DRAIN_LOOK_NS, 0);
}

void drain_free_all(struct card *card)
{
	while (card->drains) {
		struct drain *d = card->drains;
		card->drains = d->next;
		free(d);
	}
}
