#!/usr/bin/env python3
"""past_library.py COMMAND...: registers this process with its tenant, as the library would, and then becomes the command, without
the library. So the command works on the GPU in a registered process that reports nothing.

It speaks the protocol of src/abi/shm/registration.h, to the socket that allot run names in ALLOT_SOCKET."""

import os
import socket
import struct
import sys

MAGIC, VERSION = 0x676C6C61, 1
REQUEST, STATUS = struct.Struct("=IIiIQ"), struct.Struct("=IIi")
REPLY_BYTES, MOST_FDS = 1024, 4


def register():
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(30)
        s.connect(os.environ["ALLOT_SOCKET"])
        s.sendall(REQUEST.pack(MAGIC, VERSION, os.getpid(), 0, 0))
        reply, fds, _, _ = socket.recv_fds(s, REPLY_BYTES, MOST_FDS)
    for fd in fds:
        os.close(fd)
    _, _, status = STATUS.unpack_from(reply)
    if status:
        sys.exit(f"past_library.py: refused: {os.strerror(status)}")


if len(sys.argv) < 2:
    sys.exit("usage: past_library.py COMMAND...")
register()
os.environ.pop("LD_PRELOAD", None)
os.execv(sys.argv[1], sys.argv[1:])
