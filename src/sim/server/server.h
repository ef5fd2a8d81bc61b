/*
 * The server of the simulated GPUs ("cards"): one thread, one epoll loop, one connection for each client process. When a
 * client's socket closes, the server frees all that the client held.
 *
 *   server.c   sockets, the loop, timers             blocks.c   device memory
 *   work.c     streams, work, events                 observe.c  NVML, statistics, faults
 *   checkpoint.c  processes taken off their GPUs
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sim/server/gpu_engine.h"
#include "sim/server/spec.h"
#include "sim/wire.h"

struct client;

/* Device memory. Lives while a client holds it or an exported descriptor of it is open. */
struct block {
	struct block *next_named;
	uint64_t name; /* 0: none */
	uint64_t bytes;
	uint32_t card;
	uint32_t holds; /* clients' holds and exports */
	bool parked;    /* off the GPU, because its only holder is checkpointed */
};

/* A client's hold on a block, which the client names by the hold's `id`. */
struct hold {
	struct hold *next, *prev; /* of the same client */
	struct client *client;
	struct block *block;
	uint32_t id;
	uint64_t since; /* running number, which orders all holds and exports */
	bool counted;   /* NVML counts the block for this client */
	bool hidden;    /* NVML never counts the block for this client */
	bool context;
	bool managed;
};

/* The read end of a pipe. The exported descriptor is the write end: when all its copies are closed, the read end hangs up. */
struct export
{
	struct export *next;
	struct block *block;
	int fd;
	uint64_t inode;
	uint64_t since;
};

struct waiter {
	/* in a client's list, or in an event's list, which does not use prev */
	struct waiter *next, *prev;
	struct client *client;
	uint32_t req;
	uint32_t left; /* ENGINE_MARKs that must still be done before the reply */
	bool failed;
};

struct event {
	struct engine_event engine; /* must be first: the engine's hooks get a pointer to this */
	struct waiter *waiters;     /* SIM_EVENT_SYNC requests */
	struct event *next_named, *next_watched;
	uint64_t name;
	uint32_t holds; /* clients that may name the event */
};

/* Maps the small numbers that a client chooses for its streams and events to pointers. */
struct id_map {
	void **items;
	uint32_t size;
};

struct client {
	struct client *next;
	int fd;
	enum sim_client_kind kind; /* 0 before SIM_HELLO */
	uint64_t group;            /* number of the client's MPS server; 0: none */
	pid_t pid;
	uid_t uid;
	enum sim_process process;
	struct sim_gate *gate; /* NULL unless this is a program's CUDA client */
	/* client that asked to lock or checkpoint this one, and waits until this one's work is done; NULL: none */
	struct client *requester;
	uint32_t requester_req;
	bool asked_to_lock;
	uint64_t lock_until_ns;
	bool gone; /* freed at the end of this round of the loop */
	/* the client is in another time namespace, so its time stamps mean nothing */
	bool clock_off;
	bool listens;    /* wants SIM_NOTE_XID and SIM_NOTE_ECC */
	uint32_t broken; /* bit i: card i was lost while this client used it */
	struct engine_proc *procs[SIM_MAX_CARDS];
	uint64_t held_bytes[SIM_MAX_CARDS];
	struct hold *holds;
	struct id_map streams, events;
	struct waiter *waiters;
	uint32_t room_req;
	/* launches that could not be queued, because the card or stream was gone or memory ran out: the client counts them */
	uint64_t completed_before;
	unsigned char in[16384];
	size_t in_at, in_end;
	unsigned char *out;
	size_t out_at, out_end, out_size;
	int fds[16]; /* received and not taken yet */
	unsigned int fds_n;
};

struct server {
	struct spec spec;
	struct engine engine;
	int epoll_fd, listen_fd, timer_fd;
	uint64_t linger_ns; /* how long the server lives without clients; 0: for ever */
	uint64_t empty_since_ns;
	sigset_t wait_mask; /* while server_run() waits */
	bool had_client;
	uint32_t lost; /* bit i: card i fell off the bus (SIM_CTL_LOSE) */
	struct client *clients;
	uint64_t used_bytes[SIM_MAX_CARDS];
	struct hold **holds;
	uint32_t holds_n;
	uint32_t *holds_free;
	uint32_t holds_free_n;
	struct block *named_blocks;
	struct event *named_events, *watched_events;
	struct export *exports;
	uint64_t names;
	/* `since` of the newest hold or export */
	uint64_t turns;
};

/* Listens on path. Returns 0, or -errno with one line in error. */
int server_open(struct server *server, const char *path, char *error, size_t error_size);
/*
 * Runs until SIGTERM or SIGINT. If linger_ns is not 0, also ends once the last client has been gone for linger_ns, or if no
 * client comes in the first 30 s. Returns 0, or -errno if the loop fails.
 */
int server_run(struct server *server);
void server_close(struct server *server);

/* Sends a reply, or nothing if req is 0. payload may be NULL. */
void server_reply(struct server *server, struct client *client, uint32_t req, int status,
		  const uint64_t val[5], const void *payload, size_t payload_bytes);
void server_note(struct server *server, struct client *client, uint32_t type, uint64_t a,
		 uint64_t b);
/* Takes the oldest descriptor that came with the client's requests; the caller closes it. -1 if there is none. */
int server_take_fd(struct client *client);

/* Request handlers. False if the type is another handler's. True: handled; the reply may come later (SIM_STREAM_SYNC). */
bool blocks_handle(struct server *s, struct client *c, const struct sim_request_msg *m);
bool work_handle(struct server *s, struct client *c, const struct sim_request_msg *m);
bool observe_handle(struct server *s, struct client *c, const struct sim_request_msg *m);
bool checkpoint_handle(struct server *s, struct client *c, const struct sim_request_msg *m);

/* checkpoint.c. True if a request must wait because its client is checkpointed. */
bool checkpoint_blocks(const struct client *c, uint32_t type);
/* Serves the clients that wait for a lock or checkpoint. checkpoint_next_due() says when to call it again. */
void checkpoint_poll(struct server *s, uint64_t now_ns);
uint64_t checkpoint_next_due(const struct server *s);
void checkpoint_client_gone(struct server *s, struct client *c);

/*
 * blocks_park() takes all of the client's memory off the GPUs. If a block is managed or shared, it returns false and changes
 * nothing. blocks_unpark() brings everything back, or returns false if there is no room.
 */
bool blocks_park(struct server *s, struct client *c);
bool blocks_unpark(struct server *s, struct client *c);

bool work_is_done(const struct client *c);
/* Returns the earliest time at which work_is_done() may change. */
uint64_t work_next_end(const struct server *s, const struct client *c);

void blocks_client_gone(struct server *s, struct client *c);
void work_client_gone(struct server *s, struct client *c);

/* Call when all write ends of an export are closed. */
void blocks_export_closed(struct server *s, struct export *export);
uint64_t work_completed(const struct client *c);
/* Answers the SIM_ROOM requests of clients whose launch queue has room again. */
void work_check_room(struct server *s);
/* Returns the earliest time at which something that a client waits for can happen. */
uint64_t work_next_due(const struct server *s);
void work_op_notice(void *arg, struct engine_stream *stream, struct engine_op *op, bool failed);
void work_event_done(void *arg, struct engine_event *event);
