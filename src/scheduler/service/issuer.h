/*
 * Makes a self-signed certificate with GnuTLS. It suffices for a quick start, because the API server trusts the certificate
 * in the webhook's caBundle.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define ISSUER_CERTIFICATE "tls.crt"
#define ISSUER_KEY "tls.key" /* file names as in a Secret of type kubernetes.io/tls */
#define ISSUER_DAYS 3650

/*
 * Makes both files in the directory, which is created if missing. `names` lists the DNS names and addresses of the server,
 * separated by commas; the first is also the subject of the certificate. Returns -EEXIST if one of the files exists; it is
 * left as it is.
 */
int issuer_make(const char *dir, const char *names, struct error *err);

/* Reads when the first certificate in a file expires, in seconds since 1970. Returns a negative error; err names the path. */
int issuer_expiry(const char *file, int64_t *ret_s, struct error *err);

/* Encodes a file of certificates in base64, as caBundle needs it. The caller frees *ret. */
int issuer_bundle(const char *file, char **ret, struct error *err);
