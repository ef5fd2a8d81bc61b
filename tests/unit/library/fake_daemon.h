/*
 * A small daemon for one tenant, in a thread of the test. It answers registrations with the replies that the test sets, correct
 * or not, and updates the heartbeat.
 */
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include "abi/shm/region.h"
#include "abi/shm/registration.h"

enum fake_answer {
	ANSWER_WELL,
	ANSWER_REFUSAL, /* EDQUOT and a message */
	ANSWER_SILENCE,
	ANSWER_GARBAGE,
	ANSWER_LONG_GARBAGE, /* more than a reply */
	ANSWER_OLD_VERSION,
	ANSWER_HANG_UP, /* closes instead of answering */
	ANSWER_NO_FDS,
	ANSWER_ONE_FD,
	ANSWER_THREE_FDS,
	ANSWER_BAD_REGION, /* of another layout */
	ANSWER_BAD_SLOT,
	ANSWER_SLOWLY, /* well, after 300 ms */
};

#define FAKE_DAEMON_REQUESTS 64

struct fake_daemon {
	char path[108];
	_Atomic int answer; /* enum fake_answer */
	_Atomic bool beats;
	_Atomic unsigned requests;
	struct registration_request request[FAKE_DAEMON_REQUESTS];
	pid_t peer[FAKE_DAEMON_REQUESTS]; /* by SO_PEERCRED */
	unsigned next_slot;
	struct region_control *control;
	struct region_report *report;
	int control_fd, report_fd;
	int listener;
	_Atomic bool stop;
	pthread_t thread;
};

/* Listens at `path`; device 0 has the fake driver's UUID, 1 GiB of quota and contexts of 8 MiB. */
void fake_daemon_start(struct fake_daemon *d, const char *path, uint64_t epoch);

/* Ends it as a crash would: the socket's file stays, the regions are never written again. */
void fake_daemon_stop(struct fake_daemon *d);
