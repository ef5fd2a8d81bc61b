#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "abi/cuda_abi.h"
#include "abi/shm/region.h"
#include "library/launch/inflight/estimate.h"
#include "library/sys/sys.h"

#define INFLIGHT_RING 32
#define INFLIGHT_SAMPLES 16
#define INFLIGHT_NO_SAMPLE (-1)
/* Bytes of struct inflight_stream: a power of two, so that a shift finds a record's address (fast_path.h). */
#define INFLIGHT_STREAM_SIZE 1024

struct inflight_mark {
	CUevent event; /* untimed; made on first use */
	/* Unless INFLIGHT_NO_SAMPLE, query the end of this timed sample instead of `event`. */
	int sample;
	uint32_t launches;
	uint64_t ns; /* what this mark added to inflight_device.inflight_ns */
};

struct inflight_stream {
	/* Up to in_use, a launch reads these fields, which share a cache line (fast_path.h). */
	/* The stream's handle; 0 for a default stream, or if the record is not in use. */
	_Alignas(INFLIGHT_STREAM_SIZE) _Atomic uintptr_t fast_path_key;
	/* The device's bit in fast_path.open; 0 if launches into this stream must not use the fast path. */
	_Atomic uint32_t fast_path_device;
	uint32_t lease_at;         /* offset of the device's lease word in struct region_control */
	_Atomic uint32_t launched; /* launches so far; may wrap */
	_Atomic uint32_t unmarked; /* launches since the last mark */
	/* The part of `unmarked` that the device's totals include. */
	_Atomic uint32_t unmarked_counted;
	/* Predicted length of unmarked_counted. */
	_Atomic uint64_t unmarked_ns;
	_Atomic uint64_t average_ns; /* mean length of a launch; 0 if unknown */
	_Atomic uint32_t mark_every; /* launches per mark in free run */
	int device;
	/* The launching thread marks each launch: in a thread's own default stream, and in an overflow record. */
	bool marks_each_launch;
	_Atomic bool in_use;
	bool is_in_used;
	_Atomic uint32_t synced; /* value of `launched` at the last sync point */
	/* Number of launches that have certainly ended (inflight_settle.h). */
	_Atomic uint32_t ended;

	/* Together identify the stream. `owner` stands for the context (and thread) of a default stream; 0 for others. */
	CUstream handle;
	uint64_t owner;
	CUcontext context;

	struct sys_lock lock; /* guards the fields below */
	uint32_t head, tail;  /* marks [tail, head) are in flight; indices modulo INFLIGHT_RING */
	struct inflight_mark ring[INFLIGHT_RING];
	uint32_t seen_launched; /* value of `launched` at the helper thread's last poll */
	/* When the helper thread last saw work end, or first saw work in flight. 0 while none is in flight. */
	uint64_t progress_ns;
	_Atomic uint32_t samples_taken; /* bits: samples in progress */
	/* For an overflow record: marks in flight, written under `lock`. */
	_Atomic uint32_t overflow_marks;
};

_Static_assert(sizeof(struct inflight_stream) == INFLIGHT_STREAM_SIZE, "one step of the alignment");
_Static_assert(offsetof(struct inflight_stream, in_use) < 64,
	       "the fields that a launch reads share one cache line");

struct inflight_device {
	_Alignas(64) _Atomic int64_t inflight_ns; /* predicted length of the work in flight */
	/* Launches that have not ended: all that were made under a lease, and in free run those with a mark behind them. */
	_Atomic int32_t inflight;
	_Atomic uint64_t completed;       /* launches that were seen to end */
	_Atomic uint64_t launched_before; /* launches into streams that are gone */
	_Atomic uint64_t busy_since_ns;   /* when work last began on the idle device */
	/* 1 + `completed` when the gate last gave up a wait for in-flight work; 0 if never. */
	_Atomic uint64_t stalled_at;
	/* Part of inflight_ns that the gate ignores (inflight_ignore_stalled()). */
	_Atomic int64_t stalled_ns;
	_Atomic uint32_t progress; /* futex word: incremented at each poll while threads wait */
	_Atomic uint32_t waiters;  /* threads that wait for in-flight work to end */
	_Atomic bool shows_busy;   /* copy of the slot's `busy` in a nearer cache line */
	_Atomic bool has_synced;   /* no launch since the last sync point */
	_Atomic uint64_t idle_since_ns; /* when shows_busy was last cleared */
	/* While the device is idle: since when a launch waits at the gate; 0 if none. */
	_Atomic uint64_t launch_waiting_since_ns;
	/* When a launch last came to the gate after at least STEP_PAUSE_NS without work in flight (step.h). */
	_Atomic uint64_t pause_end_ns;
};

SYS_DATA struct inflight_device inflight_devices[REGION_MAX_DEVICES];

#define INFLIGHT_STREAMS 1024 /* a power of two */
#define INFLIGHT_RECORDS (INFLIGHT_STREAMS + REGION_MAX_DEVICES)
SYS_DATA struct inflight_stream inflight_streams[INFLIGHT_RECORDS];

/* Indices of all records that were ever used, so that loops need not read the whole table. */
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

/* The first place, below INFLIGHT_STREAMS, where a stream's record may be. */
static inline uint32_t inflight_hash(CUstream handle, uint64_t owner)
{
	uint64_t h = ((uint64_t)(uintptr_t)handle ^ owner * 31) * 0x9e3779b97f4a7c15ULL;
	return (uint32_t)(h >> 54);
}

static inline struct inflight_stream *inflight_place(uint32_t hash)
{
	return &inflight_streams[hash % INFLIGHT_STREAMS];
}

/* CU_STREAM_LEGACY is 1 and means the same as NULL; no other handle is odd. */
static inline uintptr_t inflight_fast_path_key(CUstream handle)
{
	return (uintptr_t)handle & ~(uintptr_t)CU_STREAM_LEGACY;
}

/* The only record where the fast path looks for a stream with this key. */
static inline struct inflight_stream *inflight_fast_path_place(uintptr_t key)
{
	return inflight_place(inflight_hash((CUstream)key, 0));
}
