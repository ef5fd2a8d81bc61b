/*
 * Certificate and key of an HTTP server, and the certificates that vouch for its clients: PEM files that may be replaced
 * while it runs. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "base/error.h"

#define TLS_FILE_MAX 65536
#define TLS_FILES 3

struct tls {
	const char *certificate_file, *key_file; /* the caller's; NULL: no TLS */
	const char *client_ca_file; /* the same; NULL: clients are not asked for theirs */
	/* As read last; NULL: not yet. */
	char *certificate, *key, *client_ca;
	struct stat seen[TLS_FILES]; /* when they were read last, or tried */
};

/* Reads all that are named. On failure it has the texts that it had; -errno with the path and what is wrong. */
int tls_read(struct tls *tls, struct error *err);
/* Whether a file is another one, or was written, since then. */
bool tls_is_changed(const struct tls *tls);
void tls_free(struct tls *tls);
