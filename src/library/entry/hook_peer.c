/*
 * For memory of cuMemAlloc, peer access is a property of two contexts. Memory that swap can move off the GPU (swap_backing.h)
 * has access rights per address range instead. The library sets these rights when peer access changes, and whenever the range
 * is mapped again.
 */
#include "library/entry/hooks.h"
#include "library/loader/real.h"
#include "library/memory/swap_hold.h"
#include "library/swap/swap_backing.h"
#include "library/swap/swap_peers.h"
#include "library/sys/log.h"

DEFINE_HOOK(hook_ctx_enable_peer, enable, (CUcontext peer, unsigned int flags))
{
	CUdevice device;

	if (!swap_is_on())
		return enable(peer, flags);
	WITH_MEMORY_STILL();
	CUresult result = enable(peer, flags);
	if (result != CUDA_SUCCESS || real.cuCtxGetDevice(&device) != CUDA_SUCCESS)
		return result;
	if (swap_peers_enable(real_current_context(), device, peer))
		swap_backing_set_peer_access(peer, device, true);
	else
		log_write("swap: this context can't access its peer's swappable memory: at most 1024 "
			  "pairs of contexts can have peer access");
	return result;
}

DEFINE_HOOK(hook_ctx_disable_peer, disable, (CUcontext peer))
{
	CUdevice device;

	if (!swap_is_on())
		return disable(peer);
	WITH_MEMORY_STILL();
	CUresult result = disable(peer);
	if (result == CUDA_SUCCESS && real.cuCtxGetDevice(&device) == CUDA_SUCCESS &&
	    swap_peers_disable(real_current_context(), device, peer))
		swap_backing_set_peer_access(peer, device, false);
	return result;
}
