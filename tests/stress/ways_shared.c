/*
 * Memory of one process that others of its tenant open: charged to its maker, and to one who has it open
 * still when the maker frees it first. (NVIDIA leaves that order undefined; the memory stays, on a card
 * as here, and a quota must not lose it.)
 */
#include "ways.h"

static CUresult offer(struct ways_thread *t, struct held *h)
{
	struct parcel *p = &t->process->board->parcel[t->number];

	h->bytes = pick_bytes(t) + pick_bytes(t);
	CUresult result = cuMemAlloc_v2(&h->ptr, h->bytes);
	/* A thread offers one at a time. Its own other memory is not shared. */
	if (result != CUDA_SUCCESS || atomic_load(&p->offered) || atomic_load(&p->users))
		return result;
	p->process = t->process->number;
	p->bytes = (h->bytes + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
	GPU_DO(cuIpcGetMemHandle(&p->handle, h->ptr));
	h->parcel = p;
	atomic_store(&p->offered, OFFER_OPEN);
	return result;
}

void ways_leave(struct ways_thread *t, struct parcel *p)
{
	if (atomic_fetch_sub(&p->users, 1) == 1)
		ways_late(t, -(int64_t)atomic_exchange(&p->orphan, 0));
}

/* Counted as nothing: it is its maker's. */
static CUresult open_offer(struct ways_thread *t, struct held *h)
{
	struct parcel *p = &t->process->board->parcel[pick(t, WAYS_PARCELS)];

	atomic_fetch_add(&p->users, 1);
	if (atomic_load(&p->offered) != OFFER_OPEN || p->process == t->process->number) {
		ways_leave(t, p);
		return CUDA_ERROR_NOT_READY;
	}
	CUresult result = cuIpcOpenMemHandle_v2(&h->ptr, p->handle, 1);
	/* Its maker may be freeing it at this moment, if it is not one who waits. */
	if (result != CUDA_SUCCESS) {
		ways_leave(t, p);
		return result == CUDA_ERROR_OUT_OF_MEMORY ? result : CUDA_ERROR_NOT_READY;
	}
	h->parcel = p;
	h->variant = 1;
	return result;
}

static void close_offer(struct ways_thread *t, struct held *h)
{
	GPU_DO(cuIpcCloseMemHandle(h->ptr));
	ways_leave(t, h->parcel);
}

CUresult get_shared(struct ways_thread *t, struct held *h)
{
	return pick(t, 2) ? open_offer(t, h) : offer(t, h);
}

bool put_shared(struct ways_thread *t, struct held *h)
{
	if (h->variant) {
		close_offer(t, h);
		return true;
	}
	if (h->parcel) {
		atomic_store(&h->parcel->offered, OFFER_MADE);
		if (atomic_load(&h->parcel->users))
			return false;
		atomic_store(&h->parcel->offered, OFFER_NONE);
	}
	GPU_DO(cuMemFree_v2(h->ptr));
	return true;
}

CUresult get_orphan(struct ways_thread *t, struct held *h)
{
	return get_shared(t, h);
}

/* The maker does not wait for who has it open. */
bool put_orphan(struct ways_thread *t, struct held *h)
{
	struct parcel *p = h->parcel;

	if (h->variant || !p)
		return put_shared(t, h);
	atomic_fetch_add(&p->users, 1); /* so that no other is the last one out */
	atomic_store(&p->offered, OFFER_NONE);
	ways_late(t, (int64_t)p->bytes);
	atomic_store(&p->orphan, p->bytes);
	GPU_DO(cuMemFree_v2(h->ptr));
	ways_leave(t, p);
	return true;
}
