/*
 * Certificate and key of an HTTP server, PEM files that may be replaced while it runs. Main thread only.
 */
#ifndef ALLOT_WEB_TLS_H
#define ALLOT_WEB_TLS_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/error.h"

#define TLS_FILE_MAX 65536

struct tls {
	const char *certificate_file, *key_file; /* the caller's; NULL: no TLS */
	/* As read last; NULL: not yet. */
	char *certificate, *key;
	struct stat seen[2]; /* when they were read last, or tried */
};

/* Reads both. On failure it has the texts that it had; -errno with the path and what is wrong. */
int tls_read(struct tls *tls, struct error *err);
/* Whether a file is another one, or was written, since then. */
bool tls_is_changed(const struct tls *tls);
void tls_free(struct tls *tls);

#endif
