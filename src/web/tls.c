#include "web/tls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define BEGIN "-----BEGIN "

static int read_pem(const char *path, char **ret, struct error *err)
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
	if (!strstr(text, BEGIN))
		return error_set(err, EINVAL, "%s: must be a PEM file: it has no '%s'", path, BEGIN);
	*ret = steal_pointer(&text);
	return 0;
}

int tls_read(struct tls *tls, struct error *err)
{
	const char *const files[] = { tls->certificate_file, tls->key_file };
	cleanup_free char *certificate = NULL;
	char *key;
	/* Before they are read: one that is replaced meanwhile is seen to be another. */
	for (int i = 0; i < 2; i++)
		if (stat(files[i], &tls->seen[i]) < 0)
			memset(&tls->seen[i], 0, sizeof(tls->seen[i]));
	int r = read_pem(tls->certificate_file, &certificate, err);
	if (r >= 0)
		r = read_pem(tls->key_file, &key, err);
	if (r < 0)
		return r;
	free(tls->certificate);
	free(tls->key);
	tls->certificate = steal_pointer(&certificate);
	tls->key = key;
	return 0;
}

bool tls_is_changed(const struct tls *tls)
{
	const char *const files[] = { tls->certificate_file, tls->key_file };
	for (int i = 0; i < 2; i++) {
		const struct stat *seen = &tls->seen[i];
		struct stat now;
		/* One that is away for a moment is about to be replaced. */
		if (stat(files[i], &now) == 0 &&
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
	tls->certificate = tls->key = NULL;
}
