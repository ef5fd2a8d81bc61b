/*
 * A client's connection to the simulated card. All functions are safe to call from several threads.
 *
 * There is no reader thread: of the threads that wait for a reply, one reads for all of them and
 * hands the reading on when its own reply has come. That keeps a round trip at two wake-ups.
 *
 * After a fork the child's link is dead (its descriptor is closed there), and a server that goes
 * away makes every call, waiting ones too, return LINK_DEAD.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/wire.h"

#define LINK_DEAD 46 /* CUDA_ERROR_DEVICE_UNAVAILABLE */

struct link_pending;

/* A note of the server, in the order in which they came. */
struct link_note {
	struct link_note *next;
	struct sim_reply_msg msg;
};

struct link {
	int fd;
	struct sim_gate *gate; /* NULL: nobody shuts it */
	atomic_bool dead;
	pthread_mutex_t send_lock;
	pthread_mutex_t room_lock;
	_Atomic uint64_t launched;
	_Atomic uint64_t completed; /* of those, as far as replies told */
	pthread_mutex_t lock;       /* what follows */
	pthread_cond_t changed;
	bool reading; /* a thread reads, without the lock */
	uint32_t next_req;
	struct link_pending *pending;
	struct link_note *notes, *notes_tail;
	size_t in_end;
	unsigned char in[8192];
	uint32_t cards;
	bool clock_off; /* the server's clock is another: its times mean nothing here */
};

/*
 * The MPS server that this process is a client of, as its environment has it (CUDA_MPS_PIPE_DIRECTORY, where that
 * exists): the same directory is the same number. 0: none.
 */
uint64_t link_mps_server(void);
/* Connects and says hello. -errno. Not to be called twice at once. */
int link_open(struct link *l, const char *path, enum sim_client_kind kind);
void link_close(struct link *l);
/* As if the server had gone away: every call, waiting ones too, returns LINK_DEAD. Any thread. */
void link_cut(struct link *l);

/* A one-way request; its stamp is set here. 0 or LINK_DEAD. */
int link_post(struct link *l, struct sim_request_msg m);
/* The same for work that counts as `launches` in the launch queue: waits for room. */
int link_post_work(struct link *l, struct sim_request_msg m, uint32_t launches);
/*
 * A request and its reply: the reply's status, or LINK_DEAD. ret_val (5 values) may be NULL and is
 * written whenever there is a reply. ret_payload may be NULL; else it is malloced and the caller's,
 * NULL when there is none.
 */
int link_call(struct link *l, struct sim_request_msg m, uint64_t *ret_val, void **ret_payload,
	      size_t *ret_payload_bytes);
/* As link_call, and a copy of fd goes with it. */
int link_call_fd(struct link *l, struct sim_request_msg m, int fd, uint64_t *ret_val);

/* The oldest note, waiting for up to timeout_ns (UINT64_MAX: for ever). 1, 0 at the timeout, or
 * LINK_DEAD negated. */
int link_wait_note(struct link *l, struct sim_reply_msg *ret_note, uint64_t timeout_ns);
