#include "daemon/containers/trust/trust.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/paths.h"
#include "base/symbols.h"
#include "daemon/config/config.h"
#include "daemon/util/whole_file.h"
#include "daemon/containers/trust/manifest.h"

#define SIGNATURE_BYTES 64
#define TEXT_MAX_BYTES (64 << 10)
#define LIBRARY_MAX_BYTES (64 << 20)
#define SIGNATURE_SUFFIX ".sig"
#define SETTLED_S 2

#define GNUTLS "libgnutls.so.30"
#define BEGIN "-----BEGIN PUBLIC KEY-----"
#define END "-----END PUBLIC KEY-----"

#define FUNCTIONS(X) \
	X(hash_fast) \
	X(pubkey_init) \
	X(pubkey_deinit) \
	X(pubkey_import) \
	X(pubkey_get_pk_algorithm) \
	X(pubkey_verify_data2) \
	X(strerror)

#define MEMBER(name) __typeof__(gnutls_##name) *name;
static struct tls_library {
	FUNCTIONS(MEMBER)
} tls;

#define ROW(name) SYMBOL_ROW(struct tls_library, gnutls_, name)
static const struct symbol_row rows[] = { FUNCTIONS(ROW) };

/* Loads GnuTLS when a signature is to be checked: most daemons check none, and the library takes a few MiB. */
static int load_gnutls(struct error *err)
{
	struct tls_library loaded;
	int r = tls.strerror ? 0
			     : symbols_load(GNUTLS, NULL, rows, sizeof(rows) / sizeof(rows[0]),
					    &loaded, "checking signatures needs GnuTLS", err);
	if (r >= 0 && !tls.strerror)
		tls = loaded;
	return r;
}

static int hash_bytes(const void *bytes, size_t size, uint8_t ret[SHA256_BYTES], struct error *err)
{
	int r = tls.hash_fast(GNUTLS_DIG_SHA256, bytes, size, ret);
	return r < 0 ? error_set(err, EIO, "SHA-256: %s", tls.strerror(r)) : 0;
}

/* Returns 0 if the key in `pem` has signed the data, -EKEYREJECTED if not, -EINVAL if it is no Ed25519 key, or -ENOMEM. */
static int verify_by(const gnutls_datum_t *pem, const gnutls_datum_t *data,
		     const gnutls_datum_t *signature, struct error *err)
{
	gnutls_pubkey_t key;
	int r = tls.pubkey_init(&key);
	if (r < 0)
		return error_set(err, ENOMEM, "public key: %s", tls.strerror(r));
	r = tls.pubkey_import(key, pem, GNUTLS_X509_FMT_PEM);
	if (r < 0)
		r = error_set(err, EINVAL, "public key: %s", tls.strerror(r));
	else if (tls.pubkey_get_pk_algorithm(key, NULL) != GNUTLS_PK_EDDSA_ED25519)
		r = error_set(err, EINVAL,
			      "public key: must be an Ed25519 key: sign-manifest --new-key "
			      "makes one");
	else if (tls.pubkey_verify_data2(key, GNUTLS_SIGN_EDDSA_ED25519, 0, data, signature) < 0)
		r = error_set(err, EKEYREJECTED, "none of the keys has signed the manifest");
	tls.pubkey_deinit(key);
	return r;
}

/* Returns 0 if one of the keys in `pem` has signed the data; -EINVAL if there is no key; else as verify_by(). */
static int verify(const char *pem, const void *bytes, size_t size,
		  const uint8_t signature[SIGNATURE_BYTES], struct error *err)
{
	const gnutls_datum_t data = { (unsigned char *)bytes, (unsigned)size };
	const gnutls_datum_t signed_by = { (unsigned char *)signature, SIGNATURE_BYTES };
	int r = error_set(err, EINVAL, "has no '" BEGIN "': must be a PEM file of public keys");
	for (const char *at = pem; (at = strstr(at, BEGIN));) {
		const char *end = strstr(at, END);
		if (!end)
			return error_set(err, EINVAL, "a public key in this file has no '" END "'");
		end += strlen(END);
		const gnutls_datum_t one = { (unsigned char *)at, (unsigned)(end - at) };
		r = verify_by(&one, &data, &signed_by, err);
		if (r != -EKEYREJECTED)
			return r;
		at = end;
	}
	return r;
}

enum { FILE_KEYS, FILE_MANIFEST, FILE_SIGNATURE, FILE_LIBRARY, FILES };

struct trust {
	char path[FILES][PATHS_MAX];
	/*
	 * is_good: the last check succeeded, and the files' times would show a later change (are_settled()). seen: the files'
	 * states at that check; while they are unchanged, no file is read again.
	 */
	bool is_good;
	struct stat seen[FILES];
	uint64_t refused;
	/* the text that was logged last: a refusal, or an accepted library's path */
	char logged_text[PATHS_MAX > ERROR_TEXT_MAX ? PATHS_MAX : ERROR_TEXT_MAX];
};

int trust_check_settings(const struct config *config, struct error *err)
{
	bool has_keys = strcmp(config->library_keys, "none") != 0;
	bool has_manifest = strcmp(config->library_manifest, "none") != 0;
	if (has_keys == has_manifest)
		return 0;
	return error_set(err, EINVAL, "%s is 'none', but %s is not: set both, or neither",
			 has_keys ? "library_manifest" : "library_keys",
			 has_keys ? "library_keys" : "library_manifest");
}

int trust_open(const struct config *config, struct trust **ret, struct error *err)
{
	*ret = NULL;
	if (!strcmp(config->library_keys, "none"))
		return 0;
	struct trust *trust = calloc(1, sizeof(*trust));
	if (!trust)
		return error_set_errno(err, ENOMEM, "library_keys");
	snprintf(trust->path[FILE_KEYS], PATHS_MAX, "%s", config->library_keys);
	snprintf(trust->path[FILE_MANIFEST], PATHS_MAX, "%s", config->library_manifest);
	snprintf(trust->path[FILE_SIGNATURE], PATHS_MAX, "%s" SIGNATURE_SUFFIX,
		 config->library_manifest);
	*ret = trust;
	return 0;
}

struct trust *trust_free(struct trust *trust)
{
	free(trust);
	return NULL;
}

/* Any write changes the ctime, which no program can set. */
static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mode == b->st_mode && a->st_uid == b->st_uid &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static bool is_unchanged(const struct trust *trust, const char *path)
{
	struct stat now;
	if (!trust->is_good || strcmp(path, trust->path[FILE_LIBRARY]) != 0)
		return false;
	for (unsigned i = 0; i < FILES; i++)
		if (stat(trust->path[i], &now) < 0 || !is_same(&now, &trust->seen[i]))
			return false;
	return true;
}

/* Two writes within one tick of the kernel's clock get the same times, so a file that was just changed must be read again. */
static bool are_settled(const struct trust *trust)
{
	time_t now = time(NULL);
	for (unsigned i = 0; i < FILES; i++)
		if (trust->seen[i].st_ctim.tv_sec > now - SETTLED_S)
			return false;
	return true;
}

/* A user who can write the file of keys decides what is trusted, so only root or the daemon's user may own it. */
static int check_owner(const char *path, const struct stat *st, struct error *err)
{
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return error_set(
			err, EPERM,
			"library_keys: %s: belongs to uid %u: must belong to root or to allotd's user (uid %u)",
			path, (unsigned)st->st_uid, (unsigned)geteuid());
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return error_set(
			err, EPERM,
			"library_keys: %s: others may write to this file: run chmod go-w on it",
			path);
	return 0;
}

static int read_signature(struct trust *trust, uint8_t ret[SIGNATURE_BYTES], struct error *err)
{
	cleanup_free char *bytes = NULL;
	size_t size;
	const char *path = trust->path[FILE_SIGNATURE];
	int r = whole_file_read_foreign(path, TEXT_MAX_BYTES, &bytes, &size,
					&trust->seen[FILE_SIGNATURE], err);
	if (r < 0)
		return error_add(err, r, "the manifest's signature");
	if (size != SIGNATURE_BYTES)
		return error_set(
			err, EINVAL,
			"%s: has %zu bytes: must be an Ed25519 signature, of %d bytes: sign the "
			"manifest again",
			path, size, SIGNATURE_BYTES);
	memcpy(ret, bytes, SIGNATURE_BYTES);
	return 0;
}

/* Fails unless one of the keys has signed the manifest. */
static int read_manifest(struct trust *trust, struct manifest *ret, struct error *err)
{
	const char *keys_path = trust->path[FILE_KEYS], *path = trust->path[FILE_MANIFEST];
	cleanup_free char *keys = NULL, *text = NULL;
	uint8_t signature[SIGNATURE_BYTES];
	size_t keys_size, size;
	int r = whole_file_read_foreign(keys_path, TEXT_MAX_BYTES, &keys, &keys_size,
					&trust->seen[FILE_KEYS], err);
	if (r < 0)
		return error_add(err, r, "library_keys");
	r = check_owner(keys_path, &trust->seen[FILE_KEYS], err);
	if (r < 0)
		return r;
	r = whole_file_read_foreign(path, TEXT_MAX_BYTES, &text, &size, &trust->seen[FILE_MANIFEST],
				    err);
	if (r < 0)
		return error_add(err, r, "library_manifest");
	r = read_signature(trust, signature, err);
	if (r < 0)
		return r;
	r = verify(keys, text, size, signature, err);
	if (r == -EKEYREJECTED)
		return error_set(
			err, EKEYREJECTED,
			"library_manifest: %s: not signed by a key in %s, or changed since: sign "
			"the manifest again, or add the key that signed it",
			path, keys_path);
	if (r < 0)
		return error_add(err, r, "library_keys: %s", keys_path);
	r = manifest_parse(text, size, ret, err);
	return r < 0 ? error_add(err, r, "library_manifest: %s", path) : 0;
}

static int check(struct trust *trust, const char *path, struct error *err)
{
	struct manifest manifest;
	cleanup_free char *bytes = NULL;
	uint8_t hash[SHA256_BYTES];
	char digits[2 * SHA256_BYTES + 1];
	size_t size;
	trust->is_good = false;
	int r = load_gnutls(err);
	if (r >= 0)
		r = read_manifest(trust, &manifest, err);
	if (r >= 0)
		r = whole_file_read_foreign(path, LIBRARY_MAX_BYTES, &bytes, &size,
					    &trust->seen[FILE_LIBRARY], err);
	if (r >= 0)
		r = hash_bytes(bytes, size, hash, err);
	if (r < 0)
		return r;
	manifest_format(hash, digits);
	if (!manifest_has(&manifest, TRUST_LIBRARY, hash))
		return error_set(
			err, EKEYREJECTED,
			"%s: is not the signed library: its SHA-256 %s is not listed for " TRUST_LIBRARY
			" in %s: install the signed library, or sign a manifest that lists this "
			"library",
			path, digits, trust->path[FILE_MANIFEST]);
	snprintf(trust->path[FILE_LIBRARY], PATHS_MAX, "%s", path);
	trust->is_good = are_settled(trust);
	return 0;
}

bool trust_is_good(struct trust *trust, const char *path)
{
	return !trust || is_unchanged(trust, path) || check(trust, path, NULL) >= 0;
}

int trust_refuse(struct trust *trust, struct error *err)
{
	if (!trust)
		return -err->code;
	trust->refused++;
	if (strcmp(trust->logged_text, err->text) != 0)
		log_error("library refused: no container gets liballot.so: %s", err->text);
	snprintf(trust->logged_text, sizeof(trust->logged_text), "%s", err->text);
	return error_add(err, -err->code, "library refused");
}

int trust_check(struct trust *trust, const char *path, struct error *err)
{
	struct error own = { 0 };
	if (!trust || is_unchanged(trust, path))
		return 0;
	int r = check(trust, path, &own);
	if (r < 0) {
		trust_refuse(trust, &own);
		return error_set(err, own.code, "%s", own.text);
	}
	if (strcmp(trust->logged_text, path) != 0)
		log_info("%s matches the signed manifest %s", path, trust->path[FILE_MANIFEST]);
	snprintf(trust->logged_text, sizeof(trust->logged_text), "%s", path);
	return 0;
}

uint64_t trust_refused(const struct trust *trust)
{
	return trust ? trust->refused : 0;
}
