/*
 * A state's JSON and the position of each tenant in it. With it, a client that has the previous state gets only the tenants
 * that have changed. Pure but for memory; not thread safe.
 */
#pragma once

#include "daemon/state/tenant.h"
#include "http/dashboard/json_text.h"

/* Zero it to start an empty text. Running out of memory is remembered in `json`. */
struct state_text {
	struct json_text json;
	size_t list_begin, list_end; /* position of the text between the brackets of "tenants" */
	size_t count, room;
	struct state_row {
		char id[TENANT_ID_MAX];
		size_t begin, end;
	} * row;
};

/* Write the member "tenants" of the current object. Write a tenant's object to s->json between begin and end. */
void state_text_open_tenants(struct state_text *s);
void state_text_begin_tenant(struct state_text *s, const char *id);
void state_text_end_tenant(struct state_text *s);
void state_text_close_tenants(struct state_text *s);

/*
 * Writes the state `now` as differences from `before`; both must be complete. The result is `now`, with two exceptions:
 * "tenants" has only new and changed tenants, and a member "gone" has the ids of removed tenants. A tenant in both was removed
 * and made again with the same id.
 */
void state_text_write_news(const struct state_text *before, const struct state_text *now,
			   struct json_text *t);

/* *s is empty afterwards. */
void state_text_free(struct state_text *s);
