/* Where a container finds what is allot's. */
#pragma once

#define INJECTION_SOCKET_DIR "/run/allot/tenant" /* the tenant's directory: allot.sock */
#define INJECTION_LIBRARY_DIR "/run/allot/lib"   /* <version>-<hash>/liballot.so */
#define INJECTION_PIPE_DIR "/run/allot/mps"      /* where the group's MPS listens */
#define INJECTION_PRELOAD "/etc/ld.so.preload"
#define INJECTION_MIRROR_DIR "/usr/local/nvidia"
