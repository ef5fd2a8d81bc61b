/*
 * A program's web page as a site: its address, its files, its access control, and the headers of every answer. The contents
 * come from the program: src/daemon/export/page, src/scheduler/page. Main thread only.
 */
#pragma once

#include <stdbool.h>

#include "http/dashboard/access.h"
#include "http/dashboard/files.h"
#include "http/dashboard/json_text.h"
#include "http/server.h"

#define SITE_JSON_TYPE "application/json"
#define SITE_EVENTS_TYPE "text/event-stream"

enum site_right {
	SITE_READS,   /* GET, for clients that may read */
	SITE_CHANGES, /* POST, for clients that may change */
};

struct site_route {
	const char *path;
	enum site_right right;
	void (*answer)(void *data, const struct server_request *request, struct server_answer *ret);
};

struct site_terms {
	struct loop *loop;
	struct access_settings settings; /* the caller owns the texts and keeps them valid */
	const struct page_file *files;
	size_t file_count;
	bool is_open;    /* let everyone connect to a unix socket */
	bool is_private; /* the program belongs to one user */
	size_t body_max;
	const char *what; /* name for the log: "the page" */
	/* what the page may change, for the log: "it changes nothing"; NULL if web_change_token_file decides */
	const char *changes;
	const struct site_route *
		routes; /* in addition to /api/rights and the files; ended by a route without a path */
	void (*stream_ended)(void *data, struct server_call *call);
	void *data; /* passed to both callbacks */
};

struct site;

/*
 * Reads the tokens once, so that errors are found now, and starts to listen. Sets *ret to NULL if web_listen is off. -errno,
 * naming the setting.
 */
int site_open(const struct site_terms *terms, struct site **ret, struct error *err);
/* NULL is fine; returns NULL. */
struct site *site_close(struct site *site);
struct server *site_server(const struct site *site);

/* Takes over the text, which is empty afterwards. */
void site_answer_text(struct json_text *text, struct server_answer *ret);
void site_answer_no_memory(struct server_answer *ret);
/* Answers with JSON from malloc(), which the server takes over; NULL if out of memory. */
void site_answer_own(char *text, struct server_answer *ret);
/* For a route of server-sent events: returns false if no stream begins; then *ret is the answer. */
bool site_begins_stream(const struct server_request *request, struct server_answer *ret);
/* `added` is negative if there are too many streams. */
void site_answer_stream(int added, struct server_answer *ret);
