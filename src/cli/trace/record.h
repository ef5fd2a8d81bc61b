/*
 * Records a trace of a tenant: polls the daemon and reads the processes' rings (buffers of events; abi/shm/trace_ring.h). After
 * record_finish(), the file is complete JSON, even if the daemon died. Not thread safe.
 */
#pragma once

#include "client/client.h"
#include "cli/trace/out.h"
#include "cli/trace/traced_process.h"
#include "cli/trace/tracks.h"

/* most processes that record_untraced() knows; further ones are left out */
#define RECORD_UNTRACED_MAX 64
/* record_untraced() returns a process only after the daemon has listed it as not recording for this long. */
#define RECORD_ANSWER_NS UINT64_C(1000000000)

struct record {
	struct client *client; /* owned by the caller */
	struct out out;
	struct tick_map map;
	struct tracks tracks;
	struct traced_process **process;
	size_t process_count;
	bool has_more; /* the latest reply had as many rings as fit, so the daemon may have more */
	struct trace_sums sums;
	/* on the daemon's clock: begin of the trace, and latest reply */
	uint64_t begin_ns, now_ns;
	char clock[16];
	bool has_ended;
	struct {
		int pid;
		/* when the daemon first and last listed the process as not recording */
		uint64_t since_ns, last_ns;
	} untraced[RECORD_UNTRACED_MAX];
	size_t untraced_count;
};

/* Makes the daemon trace the tenant. The caller owns `fd`, the file's descriptor. Free *ret with record_free(). */
int record_begin(struct client *client, const char *tenant, int fd, struct record **ret,
		 struct error *err);

/*
 * Asks the daemon, and writes new events and leases; with `is_last`, all (ring_reader_drain()). Returns, for example,
 * -ECONNRESET if the daemon is gone; the file can still be finished. Errors of the file are in out.error.
 */
int record_round(struct record *record, bool is_last, struct error *err);

uint64_t record_lasted_ns(const struct record *record);

/* Returns the pid of the i-th process that the daemon has listed as not recording for RECORD_ANSWER_NS; 0 after the last. */
int record_untraced(const struct record *record, size_t i);

/* Finishes the file. Returns 0, or the -errno of a failed write. */
int record_finish(struct record *record);

/* NULL is allowed; always returns NULL. */
struct record *record_free(struct record *record);
