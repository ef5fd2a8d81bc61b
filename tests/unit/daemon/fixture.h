/*
 * A daemon in the test's own process: a node with fake cards, its own run directory and lock directories, and a loop that the
 * test runs by hand. Also a client that registers with the daemon.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "abi/shm/registration.h"
#include "daemon/api/session.h"
#include "daemon/state/node/node.h"
#include "daemon/state/tenant.h"

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)
#define FAKE_CARD_BYTES (8 * GIB)

/* Answers of the fake NVML; written by the test, read by the census's thread. */
struct fake_gpu {
	unsigned count;
	_Atomic uint64_t used_bytes;
	_Atomic int pid; /* of its only process; 0: none */
	_Atomic uint64_t pid_bytes;
};
extern struct fake_gpu fake_gpu;
extern const struct gpu_backend fake_backend;

/* The directory in which each fixture makes its own; /tmp unless a test sets it. */
extern const char *fixture_base;

struct fixture {
	char dir[64]; /* the run directory is in it */
	struct node *node;
	struct session session; /* of this process's uid */
};

/* cmocka setup and teardown: *state is the fixture. A test may also call them, to begin anew. */
int fixture_setup(void **state);
int fixture_teardown(void **state);
/* Stop the daemon as it ends itself (tenants' files stay), and start it again on the files that are there. */
void fixture_stop(struct fixture *f);
void fixture_start(struct fixture *f);

/* Runs the loop for this long. */
void fixture_turn(struct fixture *f, unsigned ms);
/* Turns the loop until the condition holds, two seconds at most; fails the test otherwise. */
#define fixture_until(f, condition) \
	do { \
		for (unsigned i_ = 0; i_ < 2000 && !(condition); i_++) \
			fixture_turn(f, 1); \
		assert_true(condition); \
	} while (0)

/* Sends a request (a line of JSON). Returns the reply, which the caller owns. */
json_t *fixture_request(struct fixture *f, const char *line);
/* Send a request that must succeed, or must fail with errno `code` and a text that contains `word`. */
json_t *fixture_ok(struct fixture *f, const char *line);
void fixture_refused(struct fixture *f, const char *line, int code, const char *word);

/* A registered client's reply, and its mappings of the region. */
struct client {
	struct registration_reply reply;
	int control_fd, report_fd;
	const struct region_control *control; /* NULL: refused */
	struct region_report *report;
};
/* Connects to a tenant's socket; -1 on failure. */
int client_connect(const struct tenant *tenant);
int client_connect_path(const char *path);
/* Registers on fd, maps the region of the reply, and closes fd. Runs the daemon of `f` meanwhile (NULL: it runs elsewhere). */
void client_register(struct fixture *f, int fd, uint64_t previous_epoch, struct client *ret);
void client_close(struct client *client);

/* Starts a child process that registers, calls `act` and sleeps until it is killed. Returns its pid after `act` has run. */
typedef void (*client_act)(struct client *client);
int client_spawn(struct fixture *f, const struct tenant *tenant, uint64_t previous_epoch,
		 client_act act);
void client_kill(int pid);
