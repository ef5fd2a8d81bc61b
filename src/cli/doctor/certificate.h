/*
 * What a certificate says, by GnuTLS, which is loaded for it: `allot` is started often and looks at certificates seldom. One
 * thread.
 */
#ifndef ALLOT_CLI_DOCTOR_CERTIFICATE_H
#define ALLOT_CLI_DOCTOR_CERTIFICATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Of the first certificate of a PEM text: when it begins and ends, since 1970, and its names (DNS names, addresses), by
 * spaces. -EINVAL: there is none; -ENOENT: GnuTLS is not installed.
 */
int certificate_read(const char *pem, size_t size, int64_t *ret_from_s, int64_t *ret_until_s,
		     char *ret_names, size_t names_size, struct error *err);

#endif
