/*
 * Recording a tenant: the daemon is asked to begin, then again and again for what it has, and the processes' rings
 * are read, until somebody says that it is enough; then the file is finished, whatever happened before. One
 * thread.
 */
#pragma once

#include "client/client.h"
#include "cli/trace/out.h"
#include "cli/trace/process.h"
#include "cli/trace/tracks.h"

#define RECORD_UNTRACED_MAX 64
/* A process that has not answered for so long does not record. */
#define RECORD_ANSWER_NS UINT64_C(1000000000)

struct record {
	struct client *client; /* the caller's */
	struct out out;
	struct tick_map map;
	struct tracks tracks;
	struct traced_process **process;
	size_t process_count;
	struct trace_sums sums;
	uint64_t begin_ns, now_ns; /* of the daemon's clock; the last moment that was told */
	char clock[16];
	bool has_ended; /* the tenant has */
	struct {
		int pid;
		uint64_t since_ns, last_ns; /* listed as one that does not record: from, until */
	} untraced[RECORD_UNTRACED_MAX];
	size_t untraced_count;
};

/* Asks the daemon to begin with the tenant; `fd` is the file's, the caller's. *ret is to be ended. */
int record_begin(struct client *client, const char *tenant, int fd, struct record **ret,
		 struct error *err);

/*
 * One round: writes what is new. -ECONNRESET and the like: the daemon is gone; what was recorded until then can still
 * be finished. Errors of the file are in out.error.
 */
int record_round(struct record *record, bool is_last, struct error *err);

/* Nanoseconds so far. */
uint64_t record_lasted_ns(const struct record *record);

/* The i-th process that does not record, though it was asked to; 0: no more. */
int record_untraced(const struct record *record, size_t i);

/* Finishes the file: 0 or the -errno of a write that failed. */
int record_finish(struct record *record);

/* NULL is fine; returns NULL. */
struct record *record_free(struct record *record);
