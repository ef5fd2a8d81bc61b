/*
 * The stage of a stress test: a simulated card and a daemon of its own in a private directory, tenants,
 * their processes, and eyes on all of it. The tests' programs play the tenants' processes themselves:
 * a stage starts /proc/self/exe again, preloaded with the library.
 *
 * What goes wrong with the stage itself ends the program with 2. Nothing outlives the program: every
 * child is killed with it. One thread uses a stage.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi/shm/region.h"
#include "client/client.h"
#include "sim/client/server_link.h"

#define STAGE_MAX_TENANTS 8
#define KIB (1ULL << 10)
#define MIB (1ULL << 20)
#define GIB (1ULL << 30)

struct stage_tenant {
	char name[32], id[16], socket[128];
	/* Our own process joins it and sees the region so; see stage_watch(). */
	const struct region_control *control;
	struct region_report *report;
	uint32_t own_slot;
};

struct stage {
	char dir[64], sim_socket[96];
	pid_t sim, daemon;
	struct client *client;
	struct link link;
	unsigned tenant_count;
	struct stage_tenant tenant[STAGE_MAX_TENANTS];
};

/*
 * Starts card and daemon. `card`: the keys of one [gpu] section, `config`: the daemon's settings;
 * both may be "". A context is charged 64 MiB until it has been measured.
 */
void stage_start(struct stage *s, const char *card, const char *config);
void stage_stop(struct stage *s);

/* The daemon alone: as kill -9 does, and back. stage_start_daemon returns when it answers. */
void stage_kill_daemon(struct stage *s);
void stage_start_daemon(struct stage *s);

/* A tenant that lives as long as the stage. cores 0: no guarantee and no cap. */
struct stage_tenant *stage_add_tenant(struct stage *s, const char *name, uint64_t memory_bytes,
				      double cores_pct, double limit_pct);

/* Holds all tenants again, with a restarted daemon. */
void stage_attach(struct stage *s);

/* Joins the tenant and maps its region; with a restarted daemon, anew. */
void stage_watch(struct stage_tenant *tenant);

/*
 * This program again as a process of the tenant (NULL: of none, without the library), with these
 * arguments (NULL-terminated).
 */
pid_t stage_spawn(const struct stage *s, const struct stage_tenant *tenant, char *const argv[]);

/* The daemon's answer to `list`; the caller's to release. */
json_t *stage_list(struct stage *s);
/* Of such a list: the tenant, or its one device. Borrowed. */
json_t *stage_find(json_t *list, const char *name);
json_t *stage_find_device(json_t *list, const char *name);

/* The card's truth, of one moment: what it holds for `pid` (0: for all). */
uint64_t stage_card_used(struct stage *s, pid_t pid);
/* Nanoseconds that the card worked for the process so far. */
uint64_t stage_card_busy_ns(struct stage *s, pid_t pid);

/*
 * Sum of used_bytes over the tenant's slots: read until twice the same, so that it is of one moment;
 * UINT64_MAX when the slots never stood still.
 */
uint64_t stage_slots_used(const struct stage_tenant *tenant);
/* The live slot of a process, or -1. */
int stage_slot_of(const struct stage_tenant *tenant, pid_t pid);

/* ---- results ---- */

/* One line "PASS name: ..." or "FAIL name: ..."; returns is_met. */
bool bar(const char *name, bool is_met, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * The same for what may take `most_ns`, which is more by what the machine itself stood still in its worst
 * second (stillness.h).
 */
bool bar_time(const char *name, uint64_t took_ns, uint64_t most_ns, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* 0 when every bar was met, else 1. */
int bar_status(void);
/*
 * Bars for the shares of `count` tenants that are capped at what they were promised and always want more:
 * nobody has 1.5 points more, nor less than three quarters. How near it comes to what was promised is
 * the machine's doing here, whose few cores run the card as well and may have other things to do: the
 * same processes with 5 others beside them had 36.6 to 42.6 of 45 %. tests/unit/policy/lease and bench/ hold
 * shares to half a point. `still_pct`: of the time in which they were got the machine stood still for that part
 * (stillness.h), in which nobody gets anything.
 */
void bar_shares(const char *name, unsigned count, const struct stage_tenant *const tenant[],
		const double promised_pct[], const double got_pct[], double still_pct);

/* ---- odds and ends ---- */

uint64_t now_ns(void);
void sleep_ms(unsigned ms);
uint64_t random_of(uint64_t *state); /* never with *state == 0 */
/* Ends the program with 2. */
void give_up(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* Memory for parent and processes alike: pass the descriptor's number to the processes. */
void *shared_board(size_t size, int *ret_fd);
void *open_board(const char *fd_text, size_t size);
void kill_and_wait(pid_t pid);
