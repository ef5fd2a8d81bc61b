/*
 * Whether a library may be put into containers: its SHA-256 stands in a manifest (library_manifest) that one of the
 * operator's keys (library_keys) has signed; the signature lies beside it, <manifest>.sig. Files that change are read again,
 * so that keys, manifest and library are replaced without a restart. What was put into containers before stays there.
 *
 * NULL is a trust that asks for nothing. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define TRUST_LIBRARY "liballot.so" /* its name in the manifest, whatever the file is called */

struct config;
struct trust;

/* What the settings together must not be: -EINVAL. Pure. */
int trust_check_settings(const struct config *config, struct error *err);

/* *ret is NULL where library_keys is none. `config` stays the caller's. -ENOMEM. */
int trust_open(const struct config *config, struct trust **ret, struct error *err);
struct trust *trust_free(struct trust *trust); /* returns NULL */

/*
 * 0: the file is as signed. -EKEYREJECTED: no key of those has signed the manifest, or it does not name the file; others:
 * a file can't be read, or is no such file. Each refusal is counted, and said in the log when it is another than before.
 */
int trust_check(struct trust *trust, const char *path, struct error *err);

/* The same without a word: for who has another file to try. True where nothing is asked for. */
bool trust_is_good(struct trust *trust, const char *path);
/* A file was refused for another reason: counted and said as well. Returns -err->code. */
int trust_refuse(struct trust *trust, struct error *err);

uint64_t trust_refused(const struct trust *trust);
