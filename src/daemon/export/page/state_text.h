/*
 * The web page's state as JSON text. Each tenant's position in the text is kept, so that a client that has the previous state
 * gets only the tenants that changed. No clock, no I/O; not thread safe.
 */
#pragma once

#include "daemon/state/tenant.h"
#include "http/dashboard/json_text.h"

/* Zero it to start an empty text. json.failed stays set after a lack of memory. */
struct state_text {
	struct json_text json;
	/* where the text between the brackets of "tenants" begins and ends */
	size_t list_begin, list_end;
	size_t count, room;
	struct state_row {
		char id[TENANT_ID_MAX];
		size_t begin, end;
	} * row;
};

/* Write the array "tenants". The caller writes each tenant's object to s->json between begin_tenant() and end_tenant(). */
void state_text_open_tenants(struct state_text *s);
void state_text_begin_tenant(struct state_text *s, const char *id);
void state_text_end_tenant(struct state_text *s);
void state_text_close_tenants(struct state_text *s);

/*
 * Writes to `t` what has changed since `before`: the JSON of `now`, but with only new and changed tenants in "tenants", and
 * with the ids of removed ones in "gone". Both states must be complete (the object is closed). A tenant may be in both lists:
 * the reader removes those in "gone" first.
 */
void state_text_write_news(const struct state_text *before, const struct state_text *now,
			   struct json_text *t);

/* Frees the contents, and leaves *s empty. */
void state_text_free(struct state_text *s);
