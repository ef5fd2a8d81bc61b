/*
 * A state's JSON, and where each tenant stands in it: so that whoever was told the state before is told of those tenants alone
 * that are otherwise since. Pure, but for memory; not thread safe.
 */
#pragma once

#include "daemon/state/tenant.h"
#include "http/dashboard/json_text.h"

/* All zero: an empty one. Out of memory is noted in `json`, as there. */
struct state_text {
	struct json_text json;
	size_t list_begin, list_end; /* what stands between the brackets of "tenants" */
	size_t count, room;
	struct state_row {
		char id[TENANT_ID_MAX];
		size_t begin, end;
	} * row;
};

/* Member "tenants" of the object that is being written: a tenant's object is written to s->json between begin and end. */
void state_text_open_tenants(struct state_text *s);
void state_text_begin_tenant(struct state_text *s, const char *id);
void state_text_end_tenant(struct state_text *s);
void state_text_close_tenants(struct state_text *s);

/*
 * The state `now` as differences from `before`: as it is, but that "tenants" has those alone that are new or otherwise, and that
 * there is a member "gone", the ids of those that are no more; one that is in both has come back as another. Both are whole.
 */
void state_text_write_news(const struct state_text *before, const struct state_text *now,
			   struct json_text *t);

/* *s is empty afterwards. */
void state_text_free(struct state_text *s);
