/*
 * A program's web page as a site: where it is served, its files, who may ask, and the headers of every answer. What the page
 * tells is the program's: src/daemon/export/page, src/scheduler/page. Main thread only.
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
	SITE_READS,   /* GET, by those who may read */
	SITE_CHANGES, /* POST, by those who may change */
};

struct site_route {
	const char *path;
	enum site_right right;
	void (*answer)(void *data, const struct server_request *request, struct server_answer *ret);
};

struct site_terms {
	struct loop *loop;
	struct access_settings settings; /* their texts are the caller's, and stay */
	const struct page_file *files;
	size_t file_count;
	bool is_open;    /* a unix socket's: to everyone */
	bool is_private; /* the program is one user's */
	size_t body_max;
	const char *what; /* in the log: "the page" */
	const char *changes; /* what the page may do, for the log: "it changes nothing"; NULL: as web_change_token_file says */
	const struct site_route
		*routes; /* beside /api/rights and the files; one without a path behind the last */
	void (*stream_ended)(void *data, struct server_call *call);
	void *data; /* for both */
};

struct site;

/* Reads tokens once, so that what is wrong is said now, and listens. *ret is NULL where web_listen is off. -errno with the setting. */
int site_open(const struct site_terms *terms, struct site **ret, struct error *err);
/* NULL is fine; returns NULL. */
struct site *site_close(struct site *site);
struct server *site_server(const struct site *site);

/* Takes the text over, which is then empty. */
void site_answer_text(struct json_text *text, struct server_answer *ret);
void site_answer_no_memory(struct server_answer *ret);
/* JSON by malloc(), which is the server's from then on; NULL: out of memory. */
void site_answer_own(char *text, struct server_answer *ret);
/* Of a route of server-sent events: false where no stream begins, and *ret is the answer. */
bool site_begins_stream(const struct server_request *request, struct server_answer *ret);
/* `added` below 0: there are too many streams. */
void site_answer_stream(int added, struct server_answer *ret);
