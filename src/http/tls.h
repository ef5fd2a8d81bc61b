/*
 * Reads the certificate and key of an HTTP server, and the CA certificates for its clients. These PEM files may be replaced
 * while the server runs. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "base/error.h"

#define TLS_FILE_MAX 65536
#define TLS_FILES 3

struct tls {
	const char *certificate_file, *key_file; /* owned by the caller; NULL: no TLS */
	const char *client_ca_file; /* owned by the caller; NULL: no certificate is asked for */
	/* Contents as last read; NULL if not read yet. */
	char *certificate, *key, *client_ca;
	struct stat seen[TLS_FILES]; /* at the last attempt to read the files */
};

/* Reads all files that are set. On -errno, the error names the path, and the old contents stay. */
int tls_read(struct tls *tls, struct error *err);
bool tls_is_changed(const struct tls *tls);
void tls_free(struct tls *tls);
