/*
 * The server process of the simulated cards: one thread, one epoll loop, one connection a client
 * process. A client that goes away in whatever manner is a closed socket, and everything that it
 * held is freed there and then.
 *
 *   server.c   sockets, the loop, what is due when     blocks.c   device memory
 *   work.c     streams, work, events                   observe.c  NVML, statistics, faults
 *   checkpoint.c  processes that are taken off their cards
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sim/server/engine.h"
#include "sim/server/spec.h"
#include "sim/wire.h"

struct client;

/* Device memory. It lives while a client holds it or an exported descriptor of it is open. */
struct block {
	struct block *next_named;
	uint64_t name; /* 0: never named */
	uint64_t bytes;
	uint32_t card;
	uint32_t holds; /* of clients, and of exports */
	bool parked;    /* its only holder is checkpointed: not on the card */
};

/* A client's hold on a block; its number is the client's name for it. */
struct hold {
	struct hold *next, *prev; /* of the client */
	struct client *client;
	struct block *block;
	uint32_t id;
	uint64_t since; /* order of all holds and exports */
	bool counted;   /* NVML lists it as this client's */
	bool hidden;    /* never */
	bool context;
	bool managed;
};

/* The read end of a pipe whose write end is the exported descriptor: hung up when all are gone. */
struct export
{
	struct export *next;
	struct block *block;
	int fd;
	uint64_t inode;
	uint64_t since;
};

struct waiter {
	struct waiter *next, *prev; /* of the client; prev is unused by event waiters */
	struct client *client;
	uint32_t req;
	uint32_t left; /* marks that are still to come */
	bool failed;
};

struct event {
	struct engine_event engine; /* first: the engine's hooks get it back */
	struct waiter *waiters;     /* SIM_EVENT_SYNC */
	struct event *next_named, *next_watched;
	uint64_t name;
	uint32_t holds; /* clients that may name it */
};

/* Small numbers chosen by the client, mapped to pointers. */
struct id_map {
	void **items;
	uint32_t size;
};

struct client {
	struct client *next;
	int fd;
	enum sim_client_kind kind; /* 0 before SIM_HELLO */
	uint64_t group;            /* the MPS server that works for it; 0: none */
	pid_t pid;
	uid_t uid;
	enum sim_process process;
	struct sim_gate *gate; /* NULL: of a client that is no program's */
	/* It is being locked, or checkpointed, when its work is done: who asked for that; NULL: nobody. */
	struct client *asker;
	uint32_t asker_req;
	bool asked_to_lock;
	uint64_t lock_until_ns;
	bool gone;      /* to be freed at the end of the round */
	bool clock_off; /* its clock is not ours (another time namespace): its stamps mean nothing */
	bool listens;   /* to Xid notes */
	uint32_t broken; /* bit i: card i was lost under it */
	struct engine_proc *procs[SIM_MAX_CARDS];
	uint64_t held_bytes[SIM_MAX_CARDS];
	struct hold *holds;
	struct id_map streams, events;
	struct waiter *waiters;
	uint32_t room_req;
	uint64_t completed_before; /* launches of procs that are gone */
	unsigned char in[16384];
	size_t in_at, in_end;
	unsigned char *out;
	size_t out_at, out_end, out_size;
	int fds[16]; /* received, not yet asked for */
	unsigned int fds_n;
};

struct server {
	struct spec spec;
	struct engine engine;
	int epoll_fd, listen_fd, timer_fd;
	uint64_t linger_ns; /* 0: for ever */
	uint64_t empty_since_ns;
	bool had_client;
	uint32_t lost; /* bit i: card i */
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
	uint64_t turns; /* holds and exports so far */
};

/* Listens on path. -errno, and a line in error. */
int server_open(struct server *server, const char *path, char *error, size_t error_size);
/* Until the last client has been gone for linger_ns. -errno when the loop itself fails. */
int server_run(struct server *server);
void server_close(struct server *server);

/* Answers one request; payload may be NULL. */
void server_reply(struct server *server, struct client *client, uint32_t req, int status,
		  const uint64_t val[5], const void *payload, size_t payload_bytes);
void server_note(struct server *server, struct client *client, uint32_t type, uint64_t a,
		 uint64_t b);
/* Takes the oldest descriptor that came with the client's requests: the caller's, or -1. */
int server_take_fd(struct client *client);

/* Handlers: each answers its requests, except one-way ones. False when the type is not its. */
bool blocks_handle(struct server *s, struct client *c, const struct sim_request_msg *m);
bool work_handle(struct server *s, struct client *c, const struct sim_request_msg *m);
bool observe_handle(struct server *s, struct client *c, const struct sim_request_msg *m);
bool checkpoint_handle(struct server *s, struct client *c, const struct sim_request_msg *m);

/* checkpoint.c: whether this request is to wait until its client is on the card again ... */
bool checkpoint_holds(const struct client *c, uint32_t type);
/* ... who waits to be locked, as of now; when that is to be looked at again; and an end. */
void checkpoint_look(struct server *s, uint64_t now_ns);
uint64_t checkpoint_next_due(const struct server *s);
void checkpoint_client_gone(struct server *s, struct client *c);

/*
 * All that the client holds leaves its cards (false: some of it is managed, or known to others, and
 * nothing has left), or comes back (false: there is no room).
 */
bool blocks_park(struct server *s, struct client *c);
bool blocks_unpark(struct server *s, struct client *c);

/* Has the client no work on any card? */
bool work_is_done(const struct client *c);
/* The next moment at which that may change. */
uint64_t work_next_end(const struct server *s, const struct client *c);

/* What a client held, when it is gone. */
void blocks_client_gone(struct server *s, struct client *c);
void work_client_gone(struct server *s, struct client *c);

/* The write ends of an export are closed. */
void blocks_export_closed(struct server *s, struct export *export);
/* Launches of the client that are queued and done. */
uint64_t work_completed(const struct client *c);
/* Replies that wait for room in a launch queue. */
void work_check_room(struct server *s);
/* When something that somebody waits for can happen at the earliest. */
uint64_t work_next_due(const struct server *s);
void work_op_notice(void *arg, struct engine_stream *stream, struct engine_op *op, bool failed);
void work_event_done(void *arg, struct engine_event *event);
