"""TensorFlow's way of calling the driver: the primary context, streams and events from pools,
pinned host memory, and GPU memory in its three ways: most of the card at once, regions that double
(allow_growth), and a pool of its own (cuda_malloc_async)."""

import ctypes

import protocol
from driver import OutOfMemory, call, cuda, open_primary

MIB = 1 << 20
NATIVE_MOST = 16384 * MIB
RESERVE = 1800 * MIB        # what TensorFlow leaves to the system on a large card
FIRST_REGION = 2 * MIB
BACKPEDAL = 0.9             # a refused region is asked for again, so much smaller
BLOCK = 64 * MIB


class Executor:
    """The streams of one device, and its pools of events and of pinned host memory."""

    def __init__(self):
        self.device, self.context = open_primary()
        least, greatest = call("cuCtxGetStreamPriorityRange")
        flag = cuda.CUstream_flags.CU_STREAM_NON_BLOCKING
        self.compute = call("cuStreamCreateWithPriority", flag, greatest)
        self.copies = [call("cuStreamCreateWithPriority", flag, least) for _ in range(4)]
        self.events = [call("cuEventCreate", cuda.CUevent_flags.CU_EVENT_DISABLE_TIMING)
                       for _ in range(32)]
        self.staging = call("cuMemHostAlloc", BLOCK, cuda.CU_MEMHOSTALLOC_PORTABLE)
        self.results = []

    def _after(self, earlier, later, event):
        call("cuEventRecord", event, earlier)
        call("cuStreamWaitEvent", later, event, 0)

    def use(self, address, bytes_, seed):
        """Fills a block, passes it on between streams, and keeps what came back to the host."""
        count = min(bytes_, BLOCK)
        host = (ctypes.c_uint8 * count).from_address(int(self.staging))
        ctypes.memset(host, seed % 251, count)
        copy, event = self.copies[seed % 4], self.events[seed % 32]
        call("cuMemcpyHtoDAsync", address, self.staging, count, copy)
        self._after(copy, self.compute, event)
        call("cuMemsetD8Async", address, (seed + 7) % 251, count // 2, self.compute)
        self._after(self.compute, copy, event)
        call("cuMemcpyDtoHAsync", self.staging, address, count, copy)
        call("cuStreamSynchronize", copy)
        self.results.append(protocol.digest(bytes(host)).encode())

    def close(self):
        call("cuMemFreeHost", self.staging)
        for event in self.events:
            call("cuEventDestroy", event)
        for stream in (self.compute, *self.copies):
            call("cuStreamDestroy", stream)
        call("cuDevicePrimaryCtxRelease", self.device)


def too_much(quota, name, attempt):
    if quota is not None:
        protocol.ask_too_much(attempt, OutOfMemory, name)


def take_most(executor, quota):
    """One region of what is free, less the reserve. The native run need not fill a large card."""
    free, total = call("cuMemGetInfo")
    if quota is not None and total > quota:
        raise SystemExit(f"the card seems to have {total} bytes, the quota is {quota}")
    region = min(free - RESERVE, NATIVE_MOST)
    address = call("cuMemAlloc", region)
    for seed in range(8):
        executor.use(int(address) + region // 8 * seed, region // 8, seed)
    protocol.hold("one region")
    too_much(quota, "a second region", lambda: call("cuMemAlloc", quota))
    executor.use(int(address), BLOCK, 100)
    call("cuMemFree", address)


def grow(executor, quota):
    """Doubles until 1 GiB is had; a quota is then tried by going on, smaller after each refusal,
    until even the smallest region is refused."""
    regions, size = [], FIRST_REGION
    while sum(bytes_ for _, bytes_ in regions) < 1024 * MIB:
        regions.append((call("cuMemAlloc", size), size))
        executor.use(*regions[-1], len(regions))
        size *= 2
    protocol.hold("regions")

    def go_on():
        size = regions[-1][1]
        while sum(bytes_ for _, bytes_ in regions) <= quota:
            try:
                regions.append((call("cuMemAlloc", size), size))
            except OutOfMemory:
                size = int(size * BACKPEDAL) // 256 * 256
                if size < FIRST_REGION:
                    raise

    too_much(quota, "regions without an end", go_on)
    if quota is not None:
        protocol.hold("regions up to the quota")
    executor.use(*regions[0], 200)
    for address, _ in regions:
        call("cuMemFree", address)


def own_pool(executor, quota):
    """Filled once, so that it stays reserved, as TensorFlow does; then used block by block."""
    properties = cuda.CUmemPoolProps()
    properties.allocType = cuda.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = 0
    pool = call("cuMemPoolCreate", properties)
    size = 2048 * MIB
    call("cuMemPoolSetAttribute", pool, cuda.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
         cuda.cuuint64_t(size))
    whole = call("cuMemAllocFromPoolAsync", size, pool, executor.compute)
    call("cuMemFreeAsync", whole, executor.compute)
    call("cuStreamSynchronize", executor.compute)
    protocol.hold("a pool that keeps what was freed")
    blocks = [call("cuMemAllocFromPoolAsync", BLOCK, pool, executor.compute) for _ in range(16)]
    call("cuStreamSynchronize", executor.compute)
    for seed, block in enumerate(blocks):
        executor.use(block, BLOCK, seed + 300)
    too_much(quota, "from the pool",
             lambda: call("cuMemAllocFromPoolAsync", 2 * quota, pool, executor.compute))
    executor.use(blocks[0], BLOCK, 400)
    for block in blocks:
        call("cuMemFreeAsync", block, executor.compute)
    call("cuStreamSynchronize", executor.compute)
    call("cuMemPoolDestroy", pool)


def main():
    options = protocol.arguments(__doc__)
    executor = Executor()
    for way in (take_most, grow, own_pool):
        way(executor, options.quota)
    results = executor.results
    executor.close()
    protocol.end(*results)


main()
