/*
 * The page's state as JSON text, with the position of each tenant in the text. So two states can be compared, and a client that
 * has the previous state gets only the tenants that have changed. Pure but for memory; not thread safe.
 */
#pragma once

#include "daemon/state/tenant.h"
#include "http/dashboard/json_text.h"

/* Zero it to start an empty text. If memory runs out, json.failed stays set. */
struct state_text {
	struct json_text json;
	size_t list_begin, list_end; /* position of the text between the brackets of "tenants" */
	size_t count, room;
	struct state_row {
		char id[TENANT_ID_MAX];
		size_t begin, end;
	} * row;
};

/*
 * Write member "tenants" of the object that s->json has open. The caller writes each tenant's object to s->json, between
 * state_text_begin_tenant() and state_text_end_tenant().
 */
void state_text_open_tenants(struct state_text *s);
void state_text_begin_tenant(struct state_text *s, const char *id);
void state_text_end_tenant(struct state_text *s);
void state_text_close_tenants(struct state_text *s);

/*
 * Writes the state `now` as differences from `before`; both must be complete. The result is `now`, with two exceptions:
 * "tenants" has only new and changed tenants, and a member "gone" has the ids of removed tenants. An id in both lists: that
 * tenant was removed, and a new one has the same id.
 */
void state_text_write_news(const struct state_text *before, const struct state_text *now,
			   struct json_text *t);

/* Frees the contents; *s is empty afterwards. */
void state_text_free(struct state_text *s);
