/*
 * VMM memory of one process that others import, by a descriptor: as with ways_shared.c, charged to its
 * maker, and to one who has it still when the maker releases it first. Descriptors lie in a socket, from
 * which any process takes them. A descriptor holds on to the memory as well: nobody lets go of the last
 * handle while one is under way.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ways.h"

#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

union control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

/* False: the socket is full. */
static bool send_fd(int to, int fd, uint32_t parcel)
{
	union control control = { 0 };
	struct iovec data = { &parcel, sizeof(parcel) };
	struct msghdr m = { .msg_iov = &data,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&m);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	return sendmsg(to, &m, MSG_NOSIGNAL) == sizeof(parcel);
}

/* A descriptor and whose it is, or -1: there is none. */
static int receive_fd(struct ways_thread *t, struct parcel **ret_parcel)
{
	union control control = { 0 };
	uint32_t parcel;
	struct iovec data = { &parcel, sizeof(parcel) };
	struct msghdr m = { .msg_iov = &data,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	int fd;

	if (recvmsg(t->process->fd_in, &m, MSG_CMSG_CLOEXEC) != sizeof(parcel))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	*ret_parcel = &t->process->board->fd_parcel[parcel];
	return fd;
}

static void give(struct ways_thread *t, struct held *h)
{
	struct parcel *p = &t->process->board->fd_parcel[t->number];
	int fd;

	/* A thread gives one at a time. Its own other memory is not shared. */
	if (atomic_load(&p->offered) || atomic_load(&p->users))
		return;
	p->process = t->process->number;
	p->bytes = h->bytes;
	atomic_store(&p->offered, OFFER_OPEN);
	GPU_DO(cuMemExportToShareableHandle(&fd, h->handle, FD, 0));
	if (send_fd(t->process->fd_out, fd, t->number))
		h->parcel = p;
	else
		atomic_store(&p->offered, OFFER_NONE);
	close(fd);
}

static CUresult make(struct ways_thread *t, struct held *h)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = FD,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};

	h->bytes = h->physical_bytes = (1 + pick(t, 12)) * WAYS_PAGE;
	CUresult result = cuMemCreate(&h->handle, h->bytes, &prop, 0);
	if (result == CUDA_SUCCESS)
		give(t, h);
	return result;
}

/* Mapped, and half of the time the handle let go. Counted as nothing: it is its maker's. */
static CUresult import(struct ways_thread *t, struct held *h)
{
	struct parcel *p;
	int fd = receive_fd(t, &p);

	if (fd < 0)
		return CUDA_ERROR_NOT_READY;
	h->parcel = p;
	h->variant = 1;
	h->physical_bytes = p->bytes;
	atomic_fetch_add(&p->users, 1);
	CUresult result = cuMemImportFromShareableHandle(&h->handle, (void *)(intptr_t)fd, FD);
	close(fd);
	atomic_store(&p->offered, OFFER_MADE);
	if (result != CUDA_SUCCESS) {
		ways_leave(t, p);
		return result;
	}
	GPU_DO(cuMemAddressReserve(&h->ptr, h->physical_bytes, 0, 0, 0));
	GPU_DO(cuMemMap(h->ptr, h->physical_bytes, 0, h->handle, 0));
	if (pick(t, 2)) {
		GPU_DO(cuMemRelease(h->handle));
		h->handle = 0;
	}
	return result;
}

static void put_import(struct ways_thread *t, struct held *h)
{
	GPU_DO(cuMemUnmap(h->ptr, h->physical_bytes));
	GPU_DO(cuMemAddressFree(h->ptr, h->physical_bytes));
	if (h->handle)
		GPU_DO(cuMemRelease(h->handle));
	ways_leave(t, h->parcel);
}

CUresult get_fd(struct ways_thread *t, struct held *h)
{
	return pick(t, 2) ? import(t, h) : make(t, h);
}

/* What lies in the socket when nobody imports any more has to go as well. */
static bool is_under_way(struct ways_thread *t, const struct parcel *p)
{
	struct parcel *other;

	if (!p || atomic_load(&p->offered) != OFFER_OPEN)
		return false;
	int fd = receive_fd(t, &other);
	if (fd >= 0) {
		close(fd);
		atomic_store(&other->offered, OFFER_MADE);
	}
	return true;
}

bool put_fd(struct ways_thread *t, struct held *h)
{
	if (h->variant) {
		put_import(t, h);
		return true;
	}
	if (is_under_way(t, h->parcel) || (h->parcel && atomic_load(&h->parcel->users)))
		return false;
	GPU_DO(cuMemRelease(h->handle));
	if (h->parcel)
		atomic_store(&h->parcel->offered, OFFER_NONE);
	return true;
}

CUresult get_fd_orphan(struct ways_thread *t, struct held *h)
{
	return get_fd(t, h);
}

/* The maker does not wait for who has it. */
bool put_fd_orphan(struct ways_thread *t, struct held *h)
{
	struct parcel *p = h->parcel;

	if (h->variant || !p)
		return put_fd(t, h);
	if (is_under_way(t, p))
		return false;
	atomic_fetch_add(&p->users, 1); /* so that no other is the last one out */
	ways_late(t, (int64_t)p->bytes);
	atomic_store(&p->orphan, p->bytes);
	GPU_DO(cuMemRelease(h->handle));
	atomic_store(&p->offered, OFFER_NONE);
	ways_leave(t, p);
	return true;
}
