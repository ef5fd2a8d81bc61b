/* Makes a self-signed certificate, for a quick start: the API server accepts it if the webhook's caBundle has it. */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define ISSUER_CERTIFICATE "tls.crt"
#define ISSUER_KEY "tls.key" /* as in a Secret of type kubernetes.io/tls */
#define ISSUER_DAYS 3650

/*
 * Makes the certificate and the key in `dir`, which is created if missing. `names`: the server's DNS names and addresses,
 * separated by commas; the first is also the subject. Returns -EEXIST if one of the files exists; replaces no file.
 */
int issuer_make(const char *dir, const char *names, struct error *err);

/* Reads when a file's first certificate expires (seconds since 1970). Errors name the path. */
int issuer_expiry(const char *file, int64_t *ret_s, struct error *err);

/* Encodes a file of certificates in base64, for caBundle. The caller frees *ret. */
int issuer_bundle(const char *file, char **ret, struct error *err);
