/*
 * A tenant's socket, where its processes register (abi/shm/registration.h) and get a slot and the descriptors of the tenant's
 * shared memory. No client can block the loop: sockets do not block, each connection must finish within
 * REGISTRATION_DEADLINE_NS (a start of MPS not counted), and a tenant has at most REGISTRATION_MAX_PENDING connections.
 */
#pragma once

#include "base/error.h"

#define REGISTRATION_DEADLINE_NS UINT64_C(5000000000)
#define REGISTRATION_MAX_PENDING 64

struct tenant;
struct registration;

/*
 * Listens on <tenant's directory>/allot.sock. The tenant's uid and root may connect. If the tenant belongs to a claim, every
 * process that can enter the directory may connect.
 */
int registration_open(struct tenant *tenant, struct registration **ret, struct error *err);
/* Closes the socket and its open connections; the file stays. NULL is allowed; returns NULL. */
struct registration *registration_close(struct registration *registration);
