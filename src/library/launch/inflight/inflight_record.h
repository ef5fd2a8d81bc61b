/*
 * The records of in-flight work: one for each stream, and the totals of each device. inflight.h uses them, and defines the
 * nouns.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "abi/cuda_abi.h"
#include "abi/shm/region.h"
#include "library/launch/inflight/estimate.h"
#include "library/sys/sys.h"

#define INFLIGHT_RING 32
#define INFLIGHT_SAMPLES 16 /* of a stream, at once */
#define INFLIGHT_NO_SAMPLE (-1)
/* A power of two, so that a record is found in few bytes of code: fast_path.h. */
#define INFLIGHT_STREAM_SIZE 1024

struct inflight_mark {
	CUevent event; /* this place's own, untimed, made on first use */
	int sample;    /* the timed pair that is what to query; INFLIGHT_NO_SAMPLE: the event is */
	uint32_t launches;
	uint64_t ns; /* added to the device's inflight_ns */
};

struct inflight_stream {
	/* The fields that a launch reads share a cache line; see fast_path.h. */
	_Alignas(INFLIGHT_STREAM_SIZE) _Atomic uintptr_t
		fast_path_key;             /* the handle; 0: a default stream, or not in use */
	_Atomic uint32_t fast_path_device; /* its bit; 0: what has such a key takes the gate */
	uint32_t lease_at;                 /* offset of its device's lease word in a control page */
	_Atomic uint32_t launched;         /* ever */
	_Atomic uint32_t unmarked;         /* launches behind the last mark */
	_Atomic uint32_t unmarked_counted; /* of these, in the device's inflight already */
	_Atomic uint64_t unmarked_ns;      /* of these, in the device's inflight_ns already */
	_Atomic uint64_t average_ns;       /* a launch, by completions seen; 0: not known */
	_Atomic uint32_t mark_every;       /* free run: launches to a mark */
	int device;
	bool is_marked_by_launch; /* each launch, by its thread: a thread's default stream, the overflow record */
	_Atomic bool in_use;
	bool is_listed;          /* was ever used */
	_Atomic uint32_t synced; /* of `launched`, at the last sync point */
	_Atomic uint32_t
		ended; /* of `launched`, when all of it had ended for certain; see inflight_note_end() */

	/* identity: handle, and for the default streams the context or thread they belong to */
	CUstream handle;
	uint64_t owner;
	CUcontext context;

	struct sys_lock lock; /* the rest */
	uint32_t head, tail;  /* marks [tail, head) are in flight, indices modulo INFLIGHT_RING */
	struct inflight_mark ring[INFLIGHT_RING];
	uint32_t seen_launched;          /* helper: at its last look */
	uint64_t progress_ns;            /* helper: time of the last completion, while busy since */
	_Atomic uint32_t samples_taken;  /* bits: of its inflight_samples, which are under way */
	_Atomic uint32_t overflow_marks; /* of an overflow record: in flight; written under `lock` */
};

_Static_assert(sizeof(struct inflight_stream) == INFLIGHT_STREAM_SIZE, "one step of the alignment");
_Static_assert(offsetof(struct inflight_stream, in_use) < 64,
	       "what a launch looks at is one line of the cache");

/* One device's totals in this process. */
struct inflight_device {
	_Alignas(64) _Atomic int64_t inflight_ns; /* predicted */
	_Atomic int32_t inflight;                 /* launches that a mark or count stands for */
	_Atomic uint64_t completed;               /* launches seen to end */
	_Atomic uint64_t launched_before;         /* on streams that are gone */
	_Atomic uint64_t busy_since_ns;           /* when it last became busy */
	_Atomic uint64_t stalled_at;              /* completed + 1 when a wait gave up; 0: none */
	_Atomic int64_t stalled_ns;               /* of inflight_ns, what the gate does not count */
	_Atomic uint32_t progress;                /* futex: counts completions while waited for */
	_Atomic uint32_t waiters;
	_Atomic bool shows_busy;        /* as the slot says it, which is further away */
	_Atomic uint64_t idle_since_ns; /* when it was last seen to have become so */
	_Atomic uint64_t held_since_ns; /* a launch of an idle one is held up since then; 0: none is */
	_Atomic uint64_t pause_end_ns; /* the launch came that ended the last pause: step.h */
};

SYS_DATA struct inflight_device inflight_devices[REGION_MAX_DEVICES];

#define INFLIGHT_STREAMS 1024 /* a power of two */
/* Behind the table stands each device's overflow record: inflight_overflow.h. */
#define INFLIGHT_RECORDS (INFLIGHT_STREAMS + REGION_MAX_DEVICES)
SYS_DATA struct inflight_stream inflight_streams[INFLIGHT_RECORDS];

/* Indices of the records that were ever used: the table itself is far longer. */
SYS_DATA uint16_t inflight_used[INFLIGHT_RECORDS];
SYS_DATA _Atomic uint32_t inflight_used_count;

static inline struct inflight_stream *inflight_used_stream(uint32_t i)
{
	return &inflight_streams[inflight_used[i]];
}

static inline bool inflight_is_overflow(const struct inflight_stream *s)
{
	return s >= &inflight_streams[INFLIGHT_STREAMS];
}

/* Where a stream's record is, or one of the places behind: below INFLIGHT_STREAMS. */
static inline uint32_t inflight_hash(CUstream handle, uint64_t owner)
{
	uint64_t h = ((uint64_t)(uintptr_t)handle ^ owner * 31) * 0x9e3779b97f4a7c15ULL;
	return (uint32_t)(h >> 54);
}

static inline struct inflight_stream *inflight_place(uint32_t hash)
{
	return &inflight_streams[hash % INFLIGHT_STREAMS];
}
