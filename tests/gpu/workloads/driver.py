"""The CUDA driver API through cuda-bindings, for programs that call it as a framework does."""

from cuda.bindings import driver as cuda


class DriverError(Exception):
    def __init__(self, status, what):
        super().__init__(f"{what}: {status.name}")
        self.status = status


class OutOfMemory(DriverError):
    pass


def call(name, *arguments):
    """Calls a function of the driver; what it returns besides its status."""
    status, *results = getattr(cuda, name)(*arguments)
    if status == cuda.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
        raise OutOfMemory(status, name)
    if status != cuda.CUresult.CUDA_SUCCESS:
        raise DriverError(status, name)
    return results[0] if len(results) == 1 else tuple(results)


def open_primary(device=0):
    """(device, context), the device's primary context, made current."""
    call("cuInit", 0)
    device = call("cuDeviceGet", device)
    context = call("cuDevicePrimaryCtxRetain", device)
    call("cuCtxSetCurrent", context)
    return device, context


class Mapped:
    """Memory at an address that stays reserved while the memory comes and goes, as vLLM's
    CuMemAllocator and PyTorch's expandable segments have it."""

    def __init__(self, bytes_, device=0):
        place = cuda.CUmemLocation()
        place.type = cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        place.id = device
        self.properties = cuda.CUmemAllocationProp()
        self.properties.type = cuda.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        self.properties.location = place
        self.access = cuda.CUmemAccessDesc()
        self.access.location = place
        self.access.flags = cuda.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        step = call("cuMemGetAllocationGranularity", self.properties, cuda.
                    CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM)
        self.bytes = -(-bytes_ // step) * step
        self.address = call("cuMemAddressReserve", self.bytes, 0, 0, 0)
        self.handle = None
        try:
            self.map()
        except OutOfMemory:
            call("cuMemAddressFree", self.address, self.bytes)
            raise

    def map(self):
        handle = call("cuMemCreate", self.bytes, self.properties, 0)
        call("cuMemMap", self.address, self.bytes, 0, handle, 0)
        call("cuMemSetAccess", self.address, self.bytes, [self.access], 1)
        self.handle = handle

    def unmap(self):
        call("cuMemUnmap", self.address, self.bytes)
        call("cuMemRelease", self.handle)
        self.handle = None

    def free(self):
        if self.handle is not None:
            self.unmap()
        call("cuMemAddressFree", self.address, self.bytes)
