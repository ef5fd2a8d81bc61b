/*
 * The queue of launch-ahead: calls as records of their own length in a ring, in the order they were made.
 *
 *     ring:  | ... free ... | head: being handed over | ... | tail: next free | ... |
 *
 * Producers hold the lock; the one consumer (the feeder) reads the record at the head without it, as nobody
 * writes there before it is popped. Kept apart from what is queued and how it is handed over.
 */
#ifndef ALLOT_INTERPOSE_AHEAD_QUEUE_H
#define ALLOT_INTERPOSE_AHEAD_QUEUE_H

#include "interpose/ahead.h"
#include "interpose/sys.h"

enum ahead_kind {
	AHEAD_KERNEL, /* parameters by pointers */
	AHEAD_SET,
	AHEAD_COPY,
	AHEAD_RECORD,
	AHEAD_WAIT,
	AHEAD_END,  /* of an event */
	AHEAD_SKIP, /* up to the ring's end */
};

#define AHEAD_PARAMS_MAX 48         /* of a kernel */
#define AHEAD_PARAM_BYTES_MAX 32768 /* what a kernel may have */
#define AHEAD_ATTRIBUTES_MAX 8
/* CUlaunchAttribute: its number, and 64 bytes of its value from the eighth on. */
#define AHEAD_ATTRIBUTE_BYTES 72
#define AHEAD_ATTRIBUTE_VALUE 8

/* Where a kernel's parameters lie in the buffer that holds all of them. */
struct ahead_layout {
	uint16_t count, bytes;
	uint16_t offset[AHEAD_PARAMS_MAX], size[AHEAD_PARAMS_MAX];
};

struct ahead_record {
	_Alignas(16) uint32_t bytes; /* of the whole record, a multiple of 16 */
	enum ahead_kind kind;
	CUcontext context;
	CUstream stream;
	uint64_t ns; /* predicted */
	struct work work;
	union {
		struct {
			CUfunction function;
			unsigned int grid[3], block[3], shared_bytes;
			uint16_t params_count, params_bytes, attributes;
			bool is_config; /* by cuLaunchKernelEx */
			bool has_params, has_extra;
			uint16_t offset[AHEAD_PARAMS_MAX];
		} kernel; /* behind it: attributes, then the parameters, each from a multiple of 16 */
		struct {
			CUdeviceptr dst;
			uint32_t value, element_bytes;
			size_t count;
		} set;
		struct {
			CUdeviceptr dst, src;
			size_t bytes;
		} copy;
		CUevent event;
	};
};

static inline unsigned char *ahead_record_data(struct ahead_record *r)
{
	return (unsigned char *)(r + 1);
}

/* All of it under the lock, but what is said to be atomic. */
struct ahead_queue {
	struct sys_lock lock;
	unsigned char *ring; /* AHEAD_BYTES; NULL: not made yet */
	uint32_t head, tail, used_bytes;
	uint64_t ns;     /* predicted, of all in it */
	uint64_t pushed; /* records ever */
	uint64_t handed;
	uint64_t wake_at; /* somebody waits until so many are handed over; UINT64_MAX: nobody */
	_Atomic uint32_t moved;    /* futex: counts up when wake_at is reached */
	_Atomic uint32_t filled;   /* futex: counts up when the feeder has something to do */
	_Atomic bool is_fed;       /* the feeder is awake */
	_Atomic bool feeder_locks; /* it waits for the lock: others that can wait do */
	_Atomic bool is_off;       /* for good, also in forked children; without the lock */
};

SYS_DATA struct ahead_queue ahead_queue;

/* Makes the ring if there is none; false: no memory. */
bool ahead_queue_prepare(void);

/* In a forked child: empty. */
void ahead_queue_reset(void);

/* Is there room for a record of so many bytes? */
bool ahead_queue_has_bytes(uint32_t bytes);

/* A place for a record of so many bytes; it is filled in, and then pushed. There is room. */
struct ahead_record *ahead_queue_reserve(uint32_t bytes);
void ahead_queue_push(struct ahead_record *record);

/* The oldest; NULL: empty. */
struct ahead_record *ahead_queue_head(void);
void ahead_queue_pop(struct ahead_record *record);

/* Is a record of that event in it? Anything on that stream? */
bool ahead_queue_records(CUevent event);
bool ahead_queue_uses(CUstream stream, CUcontext context);

/* May anything of that event be in it? Without a search: another event's may be taken for it. */
bool ahead_queue_may_know(CUevent event);

#endif
