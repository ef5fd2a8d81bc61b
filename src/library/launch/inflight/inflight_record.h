/*
 * The records of in-flight work: one per stream, and the totals of each device. inflight.h uses them and defines
 * the nouns.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "abi/cuda_abi.h"
#include "abi/shm/region.h"
#include "library/launch/inflight/estimate.h"
#include "library/sys/sys.h"

#define INFLIGHT_RING 32
#define INFLIGHT_SAMPLES 16 /* samples of one stream that may be in progress at the same time */
#define INFLIGHT_NO_SAMPLE (-1)
/* The size of a record: a power of two, so that little code finds a record (fast_path.h). */
#define INFLIGHT_STREAM_SIZE 1024

struct inflight_mark {
	CUevent event; /* belongs to this place; untimed; made on first use */
	/* If not INFLIGHT_NO_SAMPLE, query the end of this timed pair instead of `event`. */
	int sample;
	uint32_t launches;
	uint64_t ns; /* what this mark added to the device's inflight_ns */
};

struct inflight_stream {
	/* The fields that a launch reads share a cache line; see fast_path.h. */
	/* The handle; 0 for a default stream, or if the record is not in use. */
	_Alignas(INFLIGHT_STREAM_SIZE) _Atomic uintptr_t fast_path_key;
	/* The device's bit; if 0, launches that find this key take the gate. */
	_Atomic uint32_t fast_path_device;
	uint32_t lease_at;         /* offset of the device's lease word in a control page */
	_Atomic uint32_t launched; /* number of launches so far */
	_Atomic uint32_t unmarked; /* launches since the last mark */
	/* part of `unmarked` that the device's `inflight` includes */
	_Atomic uint32_t unmarked_counted;
	/* what unmarked_counted added to the device's inflight_ns */
	_Atomic uint64_t unmarked_ns;
	_Atomic uint64_t average_ns; /* per launch, from observed ends; 0 if unknown */
	_Atomic uint32_t mark_every; /* free run: launches per mark */
	int device;
	/* True for a thread's own default stream and for an overflow record: each launch is marked by its own thread. */
	bool is_marked_by_launch;
	_Atomic bool in_use;
	bool is_listed;          /* the record is in inflight_used */
	_Atomic uint32_t synced; /* value of `launched` at the last sync point */
	/* Value of `launched` when all launches up to then had certainly ended; see inflight_note_end(). */
	_Atomic uint32_t ended;

	/* Identity: the handle, and for default streams the context or thread to which they belong. */
	CUstream handle;
	uint64_t owner;
	CUcontext context;

	struct sys_lock lock; /* guards the fields below */
	uint32_t head, tail;  /* marks [tail, head) are in flight, indices modulo INFLIGHT_RING */
	struct inflight_mark ring[INFLIGHT_RING];
	uint32_t seen_launched;         /* helper: `launched` at the last poll */
	uint64_t progress_ns;           /* helper: time of the last end seen in this busy period */
	_Atomic uint32_t samples_taken; /* bits: which of the stream's samples are in progress */
	/* Number of marks in flight, for an overflow record; written under `lock`. */
	_Atomic uint32_t overflow_marks;
};

_Static_assert(sizeof(struct inflight_stream) == INFLIGHT_STREAM_SIZE, "one step of the alignment");
_Static_assert(offsetof(struct inflight_stream, in_use) < 64,
	       "what a launch looks at is one line of the cache");

/* One device's totals in this process. */
struct inflight_device {
	_Alignas(64) _Atomic int64_t inflight_ns; /* predicted length of the work in flight */
	_Atomic int32_t inflight;         /* launches counted or marked, and not yet ended */
	_Atomic uint64_t completed;       /* launches seen to end */
	_Atomic uint64_t launched_before; /* launches by streams that are gone */
	_Atomic uint64_t busy_since_ns;   /* when the device last became busy */
	_Atomic uint64_t stalled_at;      /* completed + 1 when a wait gave up; 0 if none */
	_Atomic int64_t stalled_ns;       /* part of inflight_ns that the gate ignores */
	_Atomic uint32_t progress; /* futex word: incremented at each poll while threads wait */
	_Atomic uint32_t waiters;
	_Atomic bool shows_busy;        /* copy of the slot's `busy`, in a nearer cache line */
	_Atomic uint64_t idle_since_ns; /* when the device was last seen to become idle */
	/* while the device is idle: since when a launch is held at the gate; 0 if none is */
	_Atomic uint64_t held_since_ns;
	/* When the launch that ended the last pause came to the gate: step.h. */
	_Atomic uint64_t pause_end_ns;
};

SYS_DATA struct inflight_device inflight_devices[REGION_MAX_DEVICES];

#define INFLIGHT_STREAMS 1024 /* a power of two */
/* The overflow records of the devices follow the table: inflight_overflow.h. */
#define INFLIGHT_RECORDS (INFLIGHT_STREAMS + REGION_MAX_DEVICES)
SYS_DATA struct inflight_stream inflight_streams[INFLIGHT_RECORDS];

/* Indices of the records that were ever used. Loops use this list, since the table itself is far longer. */
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

/* Returns the first place, below INFLIGHT_STREAMS, at which to search for a stream's record. */
static inline uint32_t inflight_hash(CUstream handle, uint64_t owner)
{
	uint64_t h = ((uint64_t)(uintptr_t)handle ^ owner * 31) * 0x9e3779b97f4a7c15ULL;
	return (uint32_t)(h >> 54);
}

static inline struct inflight_stream *inflight_place(uint32_t hash)
{
	return &inflight_streams[hash % INFLIGHT_STREAMS];
}
