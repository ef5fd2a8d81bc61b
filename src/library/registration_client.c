#include "library/registration_client.h"

#include <string.h>
#include <sys/mman.h>

#include "abi/shm/registration.h"
#include "library/sys/exchange.h"
#include "library/sys/sys.h"

enum { FD_CONTROL, FD_REPORT, FD_ARENA, FD_COUNT };

_Static_assert(FD_COUNT <= EXCHANGE_FDS_MAX, "they all fit");

void registration_unmap(const struct region_control *control, struct region_report *report)
{
	if (control)
		munmap((void *)(uintptr_t)control, sizeof(*control));
	if (report)
		munmap(report, sizeof(*report));
}

/* NULL if there is no swap arena or it cannot be mapped: memory is then never moved. Core files leave out the arena. */
static void *map_arena(int fd, uint64_t bytes)
{
	void *arena = fd < 0 || !bytes
			      ? MAP_FAILED
			      : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (arena == MAP_FAILED)
		return NULL;
	madvise(arena, bytes, MADV_DONTDUMP);
	madvise(arena, bytes, MADV_DONTFORK);
	return arena;
}

static int map_files(const int fds[FD_COUNT], bool is_again, struct registration *r)
{
	void *control = mmap(NULL, sizeof(*r->control), PROT_READ, MAP_SHARED, fds[FD_CONTROL], 0);
	void *report = mmap(NULL, sizeof(*r->report), PROT_READ | PROT_WRITE, MAP_SHARED,
			    fds[FD_REPORT], 0);

	r->control = control == MAP_FAILED ? NULL : control;
	r->report = report == MAP_FAILED ? NULL : report;
	if (r->control && r->report && region_control_is_valid(r->control) &&
	    region_report_is_valid(r->report) && r->slot < REGION_MAX_SLOTS &&
	    (fds[FD_ARENA] >= 0) == (r->control->arena_bytes > 0)) {
		/* A process that joins again has the arena already, and may have memory in it. */
		if (!is_again)
			r->arena = map_arena(fds[FD_ARENA], r->control->arena_bytes);
		return 0;
	}
	int error = r->control && r->report ? -EPROTO : -ENOMEM;
	registration_unmap(r->control, r->report);
	r->control = NULL;
	r->report = NULL;
	return error;
}

static int send_request(const char *path, uint64_t previous_epoch, uint64_t patience_ns,
			struct registration *ret)
{
	struct registration_request request = {
		.magic = REGISTRATION_MAGIC,
		.version = REGISTRATION_VERSION,
		.pid = (int32_t)syscall(SYS_getpid),
		.library_version = ALLOT_VERSION_NUMBER,
		.previous_epoch = previous_epoch,
	};
	struct registration_reply reply;
	int fds[EXCHANGE_FDS_MAX];
	int error = exchange(path, patience_ns, &request, sizeof(request), -1, &reply,
			     sizeof(reply), fds);

	if (!error && (reply.magic != REGISTRATION_MAGIC || reply.version != REGISTRATION_VERSION))
		error = -EPROTO;
	if (!error && reply.status) {
		reply.message[sizeof(reply.message) - 1] = '\0';
		memcpy(ret->message, reply.message, sizeof(ret->message));
		error = -reply.status;
	}
	if (!error && (fds[FD_CONTROL] < 0 || fds[FD_REPORT] < 0))
		error = -EPROTO;
	if (!error) {
		ret->slot = reply.slot;
		error = map_files(fds, previous_epoch != 0, ret);
	}
	for (int i = 0; i < EXCHANGE_FDS_MAX; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return error;
}

int registration_ask(const char *path, uint64_t previous_epoch, uint64_t patience_ns,
		     struct registration *ret)
{
	memset(ret, 0, sizeof(*ret));
	struct exchange_saved saved = exchange_begin();
	int error = send_request(path, previous_epoch, patience_ns, ret);
	exchange_end(saved);
	return error;
}
