/*
 * Hashes and Ed25519 signatures by GnuTLS, loaded when the first is wanted: most daemons check none, and it costs a few
 * MiB. Thread safe after signature_load().
 */
#ifndef ALLOT_DAEMON_CONTAINERS_TRUST_SIGNATURE_H
#define ALLOT_DAEMON_CONTAINERS_TRUST_SIGNATURE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "daemon/containers/trust/manifest.h"

#define SIGNATURE_BYTES 64

/* -ENOENT with what is missing. It stays loaded. */
int signature_load(struct error *err);

/* -EIO. */
int signature_sha256(const void *bytes, size_t size, uint8_t ret[SHA256_BYTES], struct error *err);

/*
 * 0: one of the public keys (`pem`, one after another, NUL behind them) has signed it. -EKEYREJECTED: none did; -EINVAL: the
 * PEM text has no key, or one that is not Ed25519.
 */
int signature_verify(const char *pem, const void *bytes, size_t size,
		     const uint8_t signature[SIGNATURE_BYTES], struct error *err);

#endif
