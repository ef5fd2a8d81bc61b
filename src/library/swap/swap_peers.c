#include "library/swap/swap_peers.h"

#include "library/sys/locks.h"

#define PAIRS_MAX 1024 /* context pairs; beyond this swap_peers_enable() fails */

struct pair {
	CUcontext from, owner;
	CUdevice device; /* of `from` */
};

static struct pair pairs[PAIRS_MAX];
static uint32_t count;
static _Atomic uint32_t changes;

bool swap_peers_enable(CUcontext from, CUdevice device, CUcontext owner)
{
	WITH_LOCK(&locks.swap_peers);
	if (count == PAIRS_MAX)
		return false;
	pairs[count++] = (struct pair){ from, owner, device };
	atomic_fetch_add(&changes, 1);
	return true;
}

bool swap_peers_disable(CUcontext from, CUdevice device, CUcontext owner)
{
	bool is_last = true;

	WITH_LOCK(&locks.swap_peers);
	for (uint32_t i = count; i-- > 0;) {
		if (pairs[i].from == from && pairs[i].owner == owner)
			pairs[i] = pairs[--count];
		else if (pairs[i].owner == owner && pairs[i].device == device)
			is_last = false;
	}
	atomic_fetch_add(&changes, 1);
	return is_last;
}

static bool is_among(const CUdevice *devices, size_t n, CUdevice device)
{
	for (size_t i = 0; i < n; i++)
		if (devices[i] == device)
			return true;
	return false;
}

size_t swap_peers_of(CUcontext owner, CUdevice ret[SWAP_PEERS_MAX])
{
	size_t n = 0;

	WITH_LOCK(&locks.swap_peers);
	for (uint32_t i = 0; i < count && n < SWAP_PEERS_MAX; i++)
		if (pairs[i].owner == owner && !is_among(ret, n, pairs[i].device))
			ret[n++] = pairs[i].device;
	return n;
}

uint32_t swap_peers_generation(void)
{
	return atomic_load(&changes);
}

void swap_peers_context_gone(CUcontext context)
{
	WITH_LOCK(&locks.swap_peers);
	for (uint32_t i = count; i-- > 0;)
		if (pairs[i].from == context || pairs[i].owner == context)
			pairs[i] = pairs[--count];
}

void swap_peers_reset(void)
{
	count = 0;
}
