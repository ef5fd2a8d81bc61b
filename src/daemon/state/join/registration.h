/*
 * A tenant's socket, where its processes register (abi/shm/registration.h): who the process is, a slot
 * for it, the region's descriptors. No client can hold the loop up: sockets never block, an exchange
 * has REGISTRATION_DEADLINE_NS, and a tenant has REGISTRATION_MAX_PENDING of them at a time.
 */
#pragma once

#include "base/error.h"

#define REGISTRATION_DEADLINE_NS UINT64_C(5000000000)
#define REGISTRATION_MAX_PENDING 64

struct tenant;
struct registration;

/*
 * Listens on <tenant's directory>/allot.sock, which only the tenant's uid (and root) may open; of a claim's tenant
 * whoever may enter the directory.
 */
int registration_open(struct tenant *tenant, struct registration **ret, struct error *err);
/* Closes it and every exchange under way; the file stays. NULL is fine; returns NULL. */
struct registration *registration_close(struct registration *registration);
