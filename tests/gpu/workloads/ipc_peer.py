"""Opens a memory handle of another process, given in hexadecimal on stdin, writes to the memory,
says so, and lets go at the next line."""

import sys

from driver import call, cuda, open_primary

open_primary()
handle = cuda.CUipcMemHandle()
handle.reserved = bytes.fromhex(sys.stdin.readline().strip())
address = call("cuIpcOpenMemHandle", handle,
               cuda.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.value)
call("cuMemsetD8", address, 0x5A, 1 << 20)
call("cuCtxSynchronize")
print("written", flush=True)
sys.stdin.readline()
call("cuIpcCloseMemHandle", address)
