#include "http/tls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define BEGIN "-----BEGIN "
#define BEGIN_CERTIFICATE BEGIN "CERTIFICATE-----"

static int read_pem(const char *path, const char *begin, char **ret, struct error *err)
{
	cleanup_file FILE *file = fopen(path, "re");
	if (!file)
		return error_set_errno(err, errno, "%s", path);
	cleanup_free char *text = calloc(1, TLS_FILE_MAX + 2);
	if (!text)
		return error_set_errno(err, ENOMEM, "%s", path);
	size_t n = fread(text, 1, TLS_FILE_MAX + 1, file);
	if (ferror(file))
		return error_set_errno(err, EIO, "%s", path);
	if (n > TLS_FILE_MAX)
		return error_set(err, EFBIG, "%s: longer than %d bytes", path, TLS_FILE_MAX);
	if (!strstr(text, begin))
		return error_set(err, EINVAL, "%s: must be a PEM file: it has no '%s'", path, begin);
	*ret = steal_pointer(&text);
	return 0;
}

int tls_read(struct tls *tls, struct error *err)
{
	const char *const files[TLS_FILES] = { tls->certificate_file, tls->key_file,
					       tls->client_ca_file };
	char **const texts[TLS_FILES] = { &tls->certificate, &tls->key, &tls->client_ca };
	char *fresh[TLS_FILES] = { NULL };
	/* libmicrohttpd would accept a client_ca_file without certificates, with which no client could be verified. */
	static const char *const begin[TLS_FILES] = { BEGIN, BEGIN, BEGIN_CERTIFICATE };
	int r = 0;
	/* First get the files' state, so that a replacement while reading counts as a change. */
	for (int i = 0; i < TLS_FILES; i++)
		if (files[i] && stat(files[i], &tls->seen[i]) < 0)
			memset(&tls->seen[i], 0, sizeof(tls->seen[i]));
	for (int i = 0; r >= 0 && i < TLS_FILES; i++)
		r = files[i] ? read_pem(files[i], begin[i], &fresh[i], err) : 0;
	for (int i = 0; i < TLS_FILES; i++) {
		free(r >= 0 ? *texts[i] : fresh[i]);
		if (r >= 0)
			*texts[i] = fresh[i];
	}
	return r;
}

bool tls_is_changed(const struct tls *tls)
{
	const char *const files[TLS_FILES] = { tls->certificate_file, tls->key_file,
					       tls->client_ca_file };
	for (int i = 0; i < TLS_FILES; i++) {
		const struct stat *seen = &tls->seen[i];
		struct stat now;
		/* A missing file does not count as changed, because a new one is probably about to appear. */
		if (files[i] && stat(files[i], &now) == 0 &&
		    (now.st_ino != seen->st_ino || now.st_dev != seen->st_dev ||
		     now.st_size != seen->st_size || now.st_mtim.tv_sec != seen->st_mtim.tv_sec ||
		     now.st_mtim.tv_nsec != seen->st_mtim.tv_nsec))
			return true;
	}
	return false;
}

void tls_free(struct tls *tls)
{
	free(tls->certificate);
	free(tls->key);
	free(tls->client_ca);
	tls->certificate = tls->key = tls->client_ca = NULL;
}
