#include "daemon/containers/trust/signature.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <string.h>

#define LIBRARY "libgnutls.so.30"
#define BEGIN "-----BEGIN PUBLIC KEY-----"
#define END "-----END PUBLIC KEY-----"

/* Every function of it that is used. */
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

#define ROW(name) { "gnutls_" #name, offsetof(struct tls_library, name) },
static const struct {
	const char *symbol;
	size_t offset;
} rows[] = { FUNCTIONS(ROW) };

int signature_load(struct error *err)
{
	struct tls_library loaded;
	if (tls.strerror)
		return 0;
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return error_set(err, ENOENT, "checking signatures needs GnuTLS: %s", dlerror());
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *function = dlsym(library, rows[i].symbol);
		if (!function)
			return error_set(err, ENOENT, LIBRARY " lacks %s", rows[i].symbol);
		memcpy((char *)&loaded + rows[i].offset, &function, sizeof(function));
	}
	tls = loaded;
	return 0;
}

int signature_sha256(const void *bytes, size_t size, uint8_t ret[SHA256_BYTES], struct error *err)
{
	int r = tls.hash_fast(GNUTLS_DIG_SHA256, bytes, size, ret);
	return r < 0 ? error_set(err, EIO, "SHA-256: %s", tls.strerror(r)) : 0;
}

/* One key: "BEGIN ... END". 0: it has signed. */
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
			      "public key: must be an Ed25519 one, as "
			      "sign-manifest --new-key makes it");
	else if (tls.pubkey_verify_data2(key, GNUTLS_SIGN_EDDSA_ED25519, 0, data, signature) < 0)
		r = error_set(err, EKEYREJECTED, "no key of those has signed it");
	tls.pubkey_deinit(key);
	return r;
}

int signature_verify(const char *pem, const void *bytes, size_t size,
		     const uint8_t signature[SIGNATURE_BYTES], struct error *err)
{
	const gnutls_datum_t data = { (unsigned char *)bytes, (unsigned)size };
	const gnutls_datum_t signed_by = { (unsigned char *)signature, SIGNATURE_BYTES };
	int r = error_set(err, EINVAL, "has no '" BEGIN "': must be a PEM file of public keys");
	for (const char *at = pem; (at = strstr(at, BEGIN));) {
		const char *end = strstr(at, END);
		if (!end)
			return error_set(err, EINVAL, "a public key in it has no '" END "'");
		end += strlen(END);
		const gnutls_datum_t one = { (unsigned char *)at, (unsigned)(end - at) };
		r = verify_by(&one, &data, &signed_by, err);
		if (r != -EKEYREJECTED)
			return r;
		at = end;
	}
	return r;
}
