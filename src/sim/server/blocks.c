/* Device memory: which client holds which block, and how long a block lives. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/server/server.h"

static void block_unref(struct server *s, struct block *block)
{
	struct block **at;

	if (--block->holds)
		return;
	if (!block->parked)
		s->used_bytes[block->card] -= block->bytes;
	if (block->name) {
		for (at = &s->named_blocks; *at != block; at = &(*at)->next_named)
			;
		*at = block->next_named;
	}
	free(block);
}

static bool holds_grow(struct server *s)
{
	uint32_t size = s->holds_n ? s->holds_n * 2 : 256;
	struct hold **holds;
	uint32_t *spare;

	if (s->holds_free_n)
		return true;
	holds = realloc(s->holds, size * sizeof(*holds));
	if (holds)
		s->holds = holds;
	spare = realloc(s->holds_free, size * sizeof(*spare));
	if (spare)
		s->holds_free = spare;
	if (!holds || !spare)
		return false;
	for (uint32_t i = size; i-- > s->holds_n;) {
		holds[i] = NULL;
		if (i) /* 0 is no valid number of a hold */
			spare[s->holds_free_n++] = i;
	}
	s->holds_n = size;
	return true;
}

/* As in driver 580, NVML counts a block for its oldest holder, or for no process if that is an exported descriptor. */
static void choose_counted_hold(struct server *s, const struct block *block)
{
	uint64_t since = UINT64_MAX;
	struct hold *oldest = NULL;

	for (const struct export *e = s->exports; e; e = e->next)
		if (e->block == block && e->since < since)
			since = e->since;
	for (uint32_t i = 1; i < s->holds_n; i++) {
		struct hold *hold = s->holds[i];
		if (hold && hold->block == block && !hold->hidden && hold->since < since) {
			since = hold->since;
			oldest = hold;
		}
	}
	if (!oldest || oldest->counted)
		return;
	oldest->counted = true;
	oldest->client->held_bytes[block->card] += block->bytes;
}

static struct hold *hold_new(struct server *s, struct client *c, struct block *block, bool counted)
{
	struct hold *hold = calloc(1, sizeof(*hold));

	if (!hold || !holds_grow(s)) {
		free(hold);
		return NULL;
	}
	hold->id = s->holds_free[--s->holds_free_n];
	s->holds[hold->id] = hold;
	hold->client = c;
	hold->block = block;
	hold->counted = counted;
	hold->since = ++s->turns;
	block->holds++;
	if (counted)
		c->held_bytes[block->card] += block->bytes;
	hold->next = c->holds;
	if (hold->next)
		hold->next->prev = hold;
	c->holds = hold;
	return hold;
}

static void hold_free(struct server *s, struct hold *hold)
{
	if (hold->counted)
		hold->client->held_bytes[hold->block->card] -= hold->block->bytes;
	if (hold->prev)
		hold->prev->next = hold->next;
	else
		hold->client->holds = hold->next;
	if (hold->next)
		hold->next->prev = hold->prev;
	s->holds[hold->id] = NULL;
	s->holds_free[s->holds_free_n++] = hold->id;
	if (hold->counted && hold->block->holds > 1)
		choose_counted_hold(s, hold->block);
	block_unref(s, hold->block);
	free(hold);
}

static struct hold *hold_of(const struct server *s, const struct client *c, uint32_t id)
{
	struct hold *hold = id < s->holds_n ? s->holds[id] : NULL;

	return hold && hold->client == c ? hold : NULL;
}

static void reply_hold(struct server *s, struct client *c, uint32_t req, const struct hold *hold)
{
	if (!hold)
		server_reply(s, c, req, SIM_OOM, NULL, NULL, 0);
	else
		server_reply(s, c, req, SIM_OK,
			     (uint64_t[5]){ hold->id, hold->block->bytes, hold->block->card }, NULL,
			     0);
}

static void mem_new(struct server *s, struct client *c, const struct sim_request_msg *m)
{
	uint64_t bytes = m->arg[0];
	uint64_t room = s->spec.cards[m->card].info.memory_bytes - s->used_bytes[m->card];
	struct block *block;

	if (bytes > room || !(block = calloc(1, sizeof(*block)))) {
		server_reply(s, c, m->req, SIM_OOM, NULL, NULL, 0);
		return;
	}
	block->bytes = bytes;
	block->card = m->card;
	s->used_bytes[m->card] += bytes;
	block->holds = 1;
	struct hold *hold = hold_new(s, c, block, true);
	if (hold) {
		hold->context = m->arg[1] == SIM_BLOCK_CONTEXT;
		hold->managed = m->arg[1] == SIM_BLOCK_MANAGED;
	}
	block_unref(s, block);
	reply_hold(s, c, m->req, hold);
}

static void mem_export(struct server *s, struct client *c, const struct sim_request_msg *m)
{
	struct hold *hold = hold_of(s, c, m->id);
	struct export *export = calloc(1, sizeof(*export));
	int fd = server_take_fd(c);
	struct epoll_event ev = { .data.ptr = export };
	struct stat st;

	if (!hold || !export || fd < 0 || fstat(fd, &st) < 0 ||
	    epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0) {
		free(export);
		if (fd >= 0)
			close(fd);
		server_reply(s, c, m->req, SIM_BAD_HANDLE, NULL, NULL, 0);
		return;
	}
	export->fd = fd;
	export->inode = st.st_ino;
	export->since = ++s->turns;
	export->block = hold->block;
	export->block->holds++;
	export->next = s->exports;
	s->exports = export;
	server_reply(s, c, m->req, SIM_OK, NULL, NULL, 0);
}

void blocks_export_closed(struct server *s, struct export *export)
{
	struct export **at;

	for (at = &s->exports; *at != export; at = &(*at)->next)
		;
	*at = export->next;
	close(export->fd);
	if (export->block->holds > 1)
		choose_counted_hold(s, export->block);
	block_unref(s, export->block);
	free(export);
}

static void mem_import(struct server *s, struct client *c, const struct sim_request_msg *m)
{
	struct export *export = NULL;
	int fd = server_take_fd(c);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0)
		for (export = s->exports; export && export->inode != st.st_ino;)
			export = export->next;
	if (fd >= 0)
		close(fd);
	if (!export)
		server_reply(s, c, m->req, SIM_INVALID, NULL, NULL, 0);
	else
		reply_hold(s, c, m->req, hold_new(s, c, export->block, false));
}

static void mem_name(struct server *s, struct client *c, const struct sim_request_msg *m)
{
	struct hold *hold = hold_of(s, c, m->id);

	if (!hold) {
		server_reply(s, c, m->req, SIM_BAD_HANDLE, NULL, NULL, 0);
		return;
	}
	if (!hold->block->name) {
		hold->block->name = ++s->names;
		hold->block->next_named = s->named_blocks;
		s->named_blocks = hold->block;
	}
	server_reply(s, c, m->req, SIM_OK, (uint64_t[5]){ hold->block->name }, NULL, 0);
}

static void mem_open(struct server *s, struct client *c, const struct sim_request_msg *m)
{
	struct block *block = s->named_blocks;

	while (block && block->name != m->arg[0])
		block = block->next_named;
	if (!block || !m->arg[0]) {
		server_reply(s, c, m->req, SIM_INVALID, NULL, NULL, 0);
		return;
	}
	struct hold *hold = hold_new(s, c, block, false);
	if (hold)
		hold->hidden = m->arg[1];
	reply_hold(s, c, m->req, hold);
}

bool blocks_handle(struct server *s, struct client *c, const struct sim_request_msg *m)
{
	struct hold *hold;

	switch (m->type) {
	case SIM_MEM_NEW:
		if ((s->lost | c->broken) >> m->card & 1)
			server_reply(s, c, m->req, SIM_CARD_LOST, NULL, NULL, 0);
		else
			mem_new(s, c, m);
		return true;
	case SIM_MEM_FREE:
		hold = hold_of(s, c, m->id);
		if (hold)
			hold_free(s, hold);
		server_reply(s, c, m->req, hold ? SIM_OK : SIM_BAD_HANDLE, NULL, NULL, 0);
		return true;
	case SIM_MEM_INFO:
		server_reply(s, c, m->req,
			     (s->lost | c->broken) >> m->card & 1 ? SIM_CARD_LOST : SIM_OK,
			     (uint64_t[5]){ s->spec.cards[m->card].info.memory_bytes,
					    s->used_bytes[m->card] },
			     NULL, 0);
		return true;
	case SIM_MEM_EXPORT: mem_export(s, c, m); return true;
	case SIM_MEM_IMPORT: mem_import(s, c, m); return true;
	case SIM_MEM_NAME: mem_name(s, c, m); return true;
	case SIM_MEM_OPEN: mem_open(s, c, m); return true;
	default: return false;
	}
}

bool blocks_park(struct server *s, struct client *c)
{
	for (const struct hold *h = c->holds; h; h = h->next)
		if (h->managed || h->hidden || h->block->name || h->block->holds > 1)
			return false;
	for (struct hold *h = c->holds; h; h = h->next) {
		h->block->parked = true;
		s->used_bytes[h->block->card] -= h->block->bytes;
	}
	return true;
}

bool blocks_unpark(struct server *s, struct client *c)
{
	uint64_t wanted[SIM_MAX_CARDS] = { 0 };

	for (const struct hold *h = c->holds; h; h = h->next)
		wanted[h->block->card] += h->block->bytes;
	for (uint32_t i = 0; i < s->spec.cards_n; i++)
		if (wanted[i] > s->spec.cards[i].info.memory_bytes - s->used_bytes[i])
			return false;
	for (struct hold *h = c->holds; h; h = h->next) {
		h->block->parked = false;
		s->used_bytes[h->block->card] += h->block->bytes;
	}
	return true;
}

void blocks_client_gone(struct server *s, struct client *c)
{
	while (c->holds)
		hold_free(s, c->holds);
}
