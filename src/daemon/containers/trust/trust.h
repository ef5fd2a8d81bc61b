/*
 * Decides whether a library may be put into containers: its SHA-256 must be in a manifest (setting library_manifest) that is
 * signed by one of the operator's keys (setting library_keys). The signature is in <manifest>.sig. Changed files are read
 * again, so keys, manifest and library can be replaced without a restart of the daemon. A container that has a library already
 * keeps it.
 *
 * If the struct trust is NULL, every library is accepted. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define TRUST_LIBRARY "liballot.so" /* name in the manifest, independent of the file's name */

struct config;
struct trust;

/* Returns -EINVAL if the settings contradict each other. Pure. */
int trust_check_settings(const struct config *config, struct error *err);

/*
 * Makes the struct trust; *ret is NULL if library_keys is "none". The needed settings are copied from `config`. Returns 0 or
 * -ENOMEM.
 */
int trust_open(const struct config *config, struct trust **ret, struct error *err);
struct trust *trust_free(struct trust *trust); /* returns NULL */

/*
 * Checks that the file's hash is in the manifest, and that one of the keys has signed the manifest. Returns 0 if so. Returns
 * -EKEYREJECTED if no key has signed the manifest, or the manifest lacks the file. Returns another -errno if a file is
 * unreadable or invalid. Every refusal is counted, and logged if its reason differs from the last one.
 */
int trust_check(struct trust *trust, const char *path, struct error *err);

/*
 * Like trust_check(), but does not count or log a refusal; for a caller that has another file to
 * try. True if `trust` is NULL.
 */
bool trust_is_good(struct trust *trust, const char *path);
/*
 * Counts and logs a refusal that the caller itself has decided on; `err` has the reason. Returns
 * -err->code.
 */
int trust_refuse(struct trust *trust, struct error *err);

/* Returns the number of refusals so far; 0 if `trust` is NULL. */
uint64_t trust_refused(const struct trust *trust);
