/*
 * Decides whether a library may be put into containers: its SHA-256 must be in a manifest (setting library_manifest) that one
 * of the operator's keys (setting library_keys) has signed in <manifest>.sig. Files are read again when they change, so all
 * can be replaced without a restart. A container that already has a library keeps it.
 *
 * A NULL trust accepts every library. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define TRUST_LIBRARY "liballot.so" /* name in the manifest; the file's own name may differ */

struct config;
struct trust;

/* Returns -EINVAL if the settings contradict each other. Pure. */
int trust_check_settings(const struct config *config, struct error *err);

/* *ret is NULL if library_keys is "none". Copies what it needs of `config`. Returns 0 or -ENOMEM. */
int trust_open(const struct config *config, struct trust **ret, struct error *err);
struct trust *trust_free(struct trust *trust); /* returns NULL */

/*
 * Returns 0 if the manifest has the file's hash and a key has signed the manifest, -EKEYREJECTED if not, another -errno if
 * a file is unreadable or invalid. Refusals are counted, and logged if the reason is new.
 */
int trust_check(struct trust *trust, const char *path, struct error *err);

/* Like trust_check(), but without counting or logging. For a caller that can try another file. */
bool trust_is_good(struct trust *trust, const char *path);
/*
 * Counts a refusal that the caller has decided, and logs it if the reason (in *err) is new. Does neither if `trust` is NULL.
 * Returns -err->code.
 */
int trust_refuse(struct trust *trust, struct error *err);

/* 0 if `trust` is NULL */
uint64_t trust_refused(const struct trust *trust);
