/*
 * What the tests of launch-ahead share: a program whose calls go the way that wrap.c and thunk.c send them,
 * and a driver that notes what reaches it, in order, and ends all work at once.
 */
#ifndef ALLOT_TESTS_UNIT_INTERPOSE_QUEUEING_H
#define ALLOT_TESTS_UNIT_INTERPOSE_QUEUEING_H

#include "launching.h"

#include "interpose/ahead.h"
#include "interpose/thunk.h"

/* Under a lease of one's own, with nothing proved and nothing queued; STOP: as before, and not one's turn. */
#define queueing_test(name) cmocka_unit_test_setup_teardown(name, queueing_start, queueing_end)
int queueing_start(void **state);
int queueing_end(void **state);

enum noted_kind {
	NOTED_KERNEL = 1,
	NOTED_SET,
	NOTED_COPY,
	NOTED_RECORD,
	NOTED_WAIT,
	NOTED_END,
	NOTED_ATTRIBUTE,
	NOTED_SYNC
};

struct noted {
	enum noted_kind kind;
	CUstream stream;
	CUcontext context; /* current in the thread that called the driver */
	uint64_t what;     /* the kernel's second parameter, the value set, the event */
	uint32_t who;      /* the kernel's first */
	bool is_whole;     /* the kernel's parameters are as they were at its call */
};

#define NOTED_MAX (1U << 18)
/* What reached the driver since the start, and how many. */
extern struct noted noted[NOTED_MAX];
uint32_t noted_count(void);

/* The kernel's parameters: 4 bytes at 0, 8 at 8, PATTERN_BYTES at 16. */
#define PATTERN_BYTES 40
CUresult call_kernel(CUstream stream, uint32_t who, uint64_t what);
CUresult call_kernel_packed(CUstream stream, uint32_t who, uint64_t what);     /* by `extra` */
CUresult call_kernel_configured(CUstream stream, uint32_t who, uint64_t what); /* cuLaunchKernelEx */
/* The same with this many blocks, and a stream's meaning. */
CUresult call_kernel_of(unsigned int blocks, enum stream_meaning streams, CUstream stream,
			uint32_t who, uint64_t what);

/* Within the memory that the driver knows, and beyond it. */
#define KNOWN_MEMORY ((CUdeviceptr)0x700000000)
#define KNOWN_BYTES ((size_t)1 << 20)
CUresult call_set(CUstream stream, CUdeviceptr dst, uint32_t value, size_t count);
CUresult call_copy(CUstream stream, CUdeviceptr dst, CUdeviceptr src, size_t bytes);

#define EVENTS 16
CUevent event_of(unsigned int i);
/* These come by call_create(), and are not proved. */
#define CREATED 4
CUresult call_create(CUevent *event, unsigned int flags);
CUresult call_destroy(CUevent event);
CUresult call_record(CUevent event, CUstream stream);
CUresult call_wait(CUstream stream, CUevent event);
CUresult call_query(CUevent event);
CUresult call_event_synchronize(CUevent event);
CUresult call_elapsed(CUevent start, CUevent end);
CUresult call_stream_query(CUstream stream);
CUresult call_stream_synchronize(CUstream stream);
CUresult call_synchronize(void); /* a passed function that is not quiet */

/* How much dynamic shared memory the kernels may have; at the start 48 KiB. */
CUresult call_set_shared(int value);
CUresult call_get_shared(int *value);
/* An attribute that launches may fail by. */
CUresult call_set_clusters(int value);

/* So that kernels, memsets and events on these streams may be queued. */
void prove(CUstream stream);

/* What the next call of the driver's launch ends with, once. */
extern _Atomic uint32_t next_launch_fails;

/* What reached the driver as the at-th. */
void assert_noted(uint32_t at, enum noted_kind kind, uint64_t what);

/* A call in a thread of its own: does it return while the lease stays as it is? */
struct caller {
	pthread_t thread;
	void (*call)(void);
	_Atomic uint32_t has_returned;
};

void start_caller(struct caller *c, void (*does)(void));
bool is_held(struct caller *c);
/* The lease comes; what was held, and is the last of all, has come by then. */
void end_caller(struct caller *c);

/* The context of the calling thread. */
void use_context(CUcontext context);

/* The setting of the environment; before a test's first call. */
extern bool environment_allows;

#endif
