/*
 * A client's connection to the server that simulates the GPUs ("cards"). Thread safe, except where noted.
 *
 * There is no reader thread. One of the threads that wait for replies reads for all of them, until its own reply has come.
 * After a fork, the child's link is dead. If the server goes away, every call fails with LINK_DEAD, including calls that wait.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/wire.h"

#define LINK_DEAD 46 /* the value of CUDA_ERROR_DEVICE_UNAVAILABLE */

struct link_pending;

/* A message that the server sent unasked (wire.h), in a list in order of arrival. */
struct link_note {
	struct link_note *next;
	struct sim_reply_msg msg;
};

struct link {
	int fd;
	struct sim_gate *gate; /* NULL unless this is a program's CUDA client */
	atomic_bool dead;
	pthread_mutex_t send_lock;
	pthread_mutex_t room_lock;
	_Atomic uint64_t launched;
	_Atomic uint64_t completed; /* how many of `launched` are done, by the latest reply */
	pthread_mutex_t lock;       /* guards the fields below */
	pthread_cond_t changed;
	bool reading; /* a thread reads from the socket, without holding `lock` */
	uint32_t next_req;
	struct link_pending *pending;
	struct link_note *notes, *notes_tail;
	size_t in_end;
	unsigned char in[8192];
	uint32_t cards;
	bool clock_off; /* the server's clock differs, so its times mean nothing to this process */
};

/* Returns a number that identifies the MPS server of CUDA_MPS_PIPE_DIRECTORY; 0 if there is none. */
uint64_t link_mps_server(void);
/* Connects and sends SIM_HELLO. Returns 0 or -errno. Not thread safe. */
int link_open(struct link *l, const char *path, enum sim_client_kind kind);
void link_close(struct link *l);
/* Ends the link as if the server had gone away. */
void link_abort(struct link *l);

/* Sends a one-way request with its time stamp. Returns 0 or LINK_DEAD. */
int link_post(struct link *l, struct sim_request_msg m);
/* As link_post(), for work that counts as `launches` launches. Waits while the launch queue is full. */
int link_post_work(struct link *l, struct sim_request_msg m, uint32_t launches);
/*
 * Sends a request and waits for its reply. Returns the reply's status or LINK_DEAD. *ret_val (5 values) is set whatever the
 * status is. The caller frees *ret_payload, which is NULL if there is none. All outputs may be NULL.
 */
int link_call(struct link *l, struct sim_request_msg m, uint64_t *ret_val, void **ret_payload,
	      size_t *ret_payload_bytes);
/* As link_call(), and passes a copy of fd to the server. */
int link_call_fd(struct link *l, struct sim_request_msg m, int fd, uint64_t *ret_val);

/* Asks the server about one of its cards. Returns 0, or the reply's status, LINK_DEAD or SIM_INVALID. */
int link_card_info(struct link *l, uint32_t card, struct sim_card_info *ret_info);

/* Takes the oldest note, waiting up to timeout_ns (UINT64_MAX: without limit). Returns 1, 0 at the timeout, or -LINK_DEAD. */
int link_wait_note(struct link *l, struct sim_reply_msg *ret_note, uint64_t timeout_ns);
