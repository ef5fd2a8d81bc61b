/*
 * A certificate that nobody but allot vouches for: enough for a quick start, as the API server is told of it by the
 * webhook's caBundle. By GnuTLS, which libmicrohttpd needs anyway.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define ISSUER_CERTIFICATE "tls.crt"
#define ISSUER_KEY "tls.key" /* the names that a Secret of type kubernetes.io/tls has */
#define ISSUER_DAYS 3650

/*
 * Makes both files in the directory, which is made where it is missing. `names`: by which the server is asked for, DNS names
 * and addresses, by commas; the first is the certificate's name, too. -EEXIST: one of the files is there already; it
 * is left as it is.
 */
int issuer_make(const char *dir, const char *names, struct error *err);

/* When the first certificate of a file, whoever made it, ends: in seconds since 1970. -errno with the path. */
int issuer_expiry(const char *file, int64_t *ret_s, struct error *err);

/* A file of certificates as caBundle has it: in base64. To be freed. */
int issuer_bundle(const char *file, char **ret, struct error *err);
