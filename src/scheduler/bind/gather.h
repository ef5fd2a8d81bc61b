/*
 * Bindings of gangs' pods that wait for each other: they begin when as many as the gang's size are asked for, all at once. While
 * one waits, kube-scheduler keeps for its pod what it gives out, such as the machine's memory; so by then there is all that each
 * of them needs. Whoever waits for too long is told to ask again; its room is kept on. Pods in no gang do not wait. One thread.
 */
#pragma once

#include "scheduler/bind/bind.h"
#include "scheduler/bind/decision.h"
#include "scheduler/model/model.h"

struct gather;

struct gather_terms {
	struct model *model; /* must be there, longer than this */
	uint64_t wait_ns;    /* so long at most */
	/* Begins one. 0: `done` is called once, later; else it is not. */
	int (*start)(void *data, const struct decision *decision, bind_done done, void *of);
	void *data;
};

/* -ENOMEM. */
int gather_new(const struct gather_terms *terms, struct gather **ret);
/* Nobody is told. NULL is fine; returns NULL. */
struct gather *gather_free(struct gather *gather);

/*
 * A binding that was decided upon (extender_decide): it begins, or waits for others; and those that have waited for this one
 * begin. Of the decision a copy is made. `done` is called once, later: as bind_start() does, or with EAGAIN where it waited in
 * vain, ECANCELED where the same pod was asked for again. What start() returned, or -ENOMEM.
 */
int gather_bind(struct gather *gather, const struct decision *decision, uint64_t now_ns,
		bind_done done, void *data);

/* It is so late now: who waits for too long, or has no room any more, is told. To be called each second or so. */
void gather_advance(struct gather *gather, uint64_t now_ns);
/* Somebody else may be the leader: all are told, with ECANCELED. */
void gather_cancel(struct gather *gather);

size_t gather_count(const struct gather *gather);
