/*
 * A program's web page as a site: its address, its files, its access control, and the headers of every answer. The contents
 * come from the program: src/daemon/export/page, src/scheduler/page. Main thread only.
 */
#pragma once

#include <stdbool.h>

#include "http/dashboard/access.h"
#include "http/dashboard/files.h"
#include "http/dashboard/json_text.h"
#include "http/http_server.h"

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

struct site_config {
	struct loop *loop;
	struct access_settings settings; /* the caller owns the texts and keeps them valid */
	const struct page_file *files;
	size_t file_count;
	bool is_open; /* let everyone connect to a unix socket */
	bool is_private;
	size_t body_max;
	const char *what; /* the site's name in the log: "the page" */
	/* what clients can change, for the log; NULL: the text depends on web_change_token_file */
	const char *changes;
	const struct site_route *
		/* served besides /api/rights and the files; ended by a route without a path */
		routes;
	void (*stream_ended)(void *data, struct server_call *call);
	void *data;
};

struct site;

/* Reads the tokens once, to find errors in them, and listens. *ret is NULL if web_listen is off. Errors name the setting. */
int site_open(const struct site_config *config, struct site **ret, struct error *err);
/* NULL is allowed; returns NULL. */
struct site *site_close(struct site *site);
struct server *site_server(const struct site *site);

/* Answers with the JSON, or with an error if memory ran out. Takes ownership of the text; *text is empty afterwards. */
void site_answer_text(struct json_text *text, struct server_answer *ret);
void site_answer_no_memory(struct server_answer *ret);
/* Answers with JSON text from malloc(), which the server then owns; with an error if `text` is NULL (out of memory). */
void site_answer_own(char *text, struct server_answer *ret);
/*
 * A route that answers with a stream must call this first. Returns false for a HEAD request, which begins no stream: *ret is
 * then the whole answer.
 */
bool site_begins_stream(const struct server_request *request, struct server_answer *ret);
/* Answers with a stream of server-sent events, or with an error if `added` is negative: the program has too many streams. */
void site_answer_stream(int added, struct server_answer *ret);
