/*
 * A tenant's socket, where its processes register (abi/shm/registration.h). The daemon identifies
 * the process, gives it a slot and sends the region's descriptors. No client can block the event
 * loop: sockets are non-blocking, an exchange has the deadline REGISTRATION_DEADLINE_NS, and a
 * tenant has at most REGISTRATION_MAX_PENDING exchanges.
 */
#pragma once

#include "base/error.h"

#define REGISTRATION_DEADLINE_NS UINT64_C(5000000000)
#define REGISTRATION_MAX_PENDING 64

struct tenant;
struct registration;

/*
 * Listens on <tenant's directory>/allot.sock. Only the tenant's uid and root may open it. A claim's
 * socket may be opened by any process that can enter its directory.
 */
int registration_open(struct tenant *tenant, struct registration **ret, struct error *err);
/*
 * Closes the socket and every exchange in progress; the file stays. NULL is allowed; returns NULL.
 */
struct registration *registration_close(struct registration *registration);
