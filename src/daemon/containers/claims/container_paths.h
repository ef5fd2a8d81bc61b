/* Paths of allot's files inside a container. */
#pragma once

#define INJECTION_SOCKET_DIR "/run/allot/tenant" /* the tenant's directory, with allot.sock */
#define INJECTION_LIBRARY_DIR "/run/allot/lib"   /* has <version>-<hash>/liballot.so */
/* for a tenant that shares its card by space: pipe directory of its group's MPS server (space_groups.h) */
#define INJECTION_PIPE_DIR "/run/allot/mps"
#define INJECTION_PRELOAD "/etc/ld.so.preload"
#define INJECTION_MIRROR_DIR "/usr/local/nvidia"
