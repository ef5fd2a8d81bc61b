/* Which library is trusted: keys, manifest and library as files that change under the daemon. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/config/config.h"
#include "daemon/containers/trust/manifest.h"
#include "daemon/containers/trust/trust.h"

static char dir[] = "/tmp/allot-trust-XXXXXX";
static gnutls_privkey_t keys[2];
static struct config config;
static struct trust *trust;
static char library[64];

static const char *at(const char *leaf)
{
	static char path[4][96];
	static unsigned next;
	char *p = path[next++ % 4];
	snprintf(p, sizeof(path[0]), "%s/%s", dir, leaf);
	return p;
}

/* As tools do: another file under the same name. */
static void write_bytes(const char *leaf, const void *bytes, size_t size)
{
	char fresh[128];
	snprintf(fresh, sizeof(fresh), "%s/.new", dir);
	FILE *file = fopen(fresh, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	fclose(file);
	assert_int_equal(rename(fresh, at(leaf)), 0);
}

static void write_keys(unsigned first, unsigned count)
{
	char text[1024] = "# of the operator\n";
	for (unsigned i = first; i < first + count; i++) {
		gnutls_pubkey_t public;
		gnutls_datum_t pem;
		assert_int_equal(gnutls_pubkey_init(&public), 0);
		assert_int_equal(gnutls_pubkey_import_privkey(public, keys[i], 0, 0), 0);
		assert_int_equal(gnutls_pubkey_export2(public, GNUTLS_X509_FMT_PEM, &pem), 0);
		strncat(text, (const char *)pem.data, pem.size);
		gnutls_free(pem.data);
		gnutls_pubkey_deinit(public);
	}
	write_bytes("keys", text, strlen(text));
}

static void sign(unsigned key, const char *text)
{
	const gnutls_datum_t data = { (unsigned char *)text, (unsigned)strlen(text) };
	gnutls_datum_t signature;
	assert_int_equal(gnutls_privkey_sign_data2(keys[key], GNUTLS_SIGN_EDDSA_ED25519, 0, &data,
						   &signature),
			 0);
	assert_int_equal(signature.size, 64);
	write_bytes("manifest", text, strlen(text));
	write_bytes("manifest.sig", signature.data, signature.size);
	gnutls_free(signature.data);
}

/* Of a library with these bytes, by this key. */
static void sign_for(unsigned key, const char *bytes)
{
	uint8_t hash[SHA256_BYTES];
	char digits[2 * SHA256_BYTES + 1], text[256];
	assert_int_equal(gnutls_hash_fast(GNUTLS_DIG_SHA256, bytes, strlen(bytes), hash), 0);
	manifest_format(hash, digits);
	snprintf(text, sizeof(text), "allot-manifest 1\n%s  liballot.so\n", digits);
	sign(key, text);
}

static int setup(void **state)
{
	struct error err;
	log_set_level(0);
	config_default(&config);
	strcpy(config.library_keys, at("keys"));
	strcpy(config.library_manifest, at("manifest"));
	strcpy(library, at("library"));
	write_bytes("library", "code", 4);
	write_keys(0, 1);
	sign_for(0, "code");
	return trust_open(&config, &trust, &err);
}

static int teardown(void **state)
{
	static const char *const leaves[] = { "keys", "manifest", "manifest.sig", "library" };
	for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++)
		unlink(at(leaves[i]));
	trust = trust_free(trust);
	return 0;
}

static void assert_refused(int code, const char *word)
{
	struct error err = { 0 };
	uint64_t before = trust_refused(trust);
	assert_int_equal(trust_check(trust, library, &err), -code);
	if (!strstr(err.text, word))
		fail_msg("%s", err.text);
	assert_ptr_equal(strchr(err.text, '\n'), NULL);
	assert_int_equal(trust_refused(trust), before + 1);
	assert_false(trust_is_good(trust, library));
}

static void assert_good(void)
{
	struct error err = { 0 };
	if (trust_check(trust, library, &err) < 0)
		fail_msg("%s", err.text);
	/* And again, when nothing has changed. */
	assert_int_equal(trust_check(trust, library, &err), 0);
	assert_true(trust_is_good(trust, library));
}

static void test_off(void **state)
{
	struct config off;
	struct trust *none;
	struct error err;
	config_default(&off);
	assert_int_equal(trust_check_settings(&off, &err), 0);
	assert_int_equal(trust_open(&off, &none, &err), 0);
	assert_null(none);
	assert_int_equal(trust_check(none, "/no/such", &err), 0);
	assert_int_equal(trust_refused(none), 0);
	strcpy(off.library_keys, "/k");
	assert_int_equal(trust_check_settings(&off, &err), -EINVAL);
	assert_non_null(strstr(err.text, "library_manifest is 'none', but library_keys is not"));
	strcpy(off.library_manifest, "/m");
	assert_int_equal(trust_check_settings(&off, &err), 0);
}

static void test_changed_byte(void **state)
{
	assert_good();
	write_bytes("library", "cOde", 4);
	assert_refused(EKEYREJECTED, "is not the signed library: its SHA-256 ");
	write_bytes("library", "code", 4);
	assert_good();
	/* In place, too. */
	FILE *file = fopen(library, "r+");
	fputc('x', file);
	fclose(file);
	assert_refused(EKEYREJECTED, "is not the signed library");
}

static void test_wrong_key(void **state)
{
	sign_for(1, "code");
	assert_refused(EKEYREJECTED, "not signed by a key in ");
	sign_for(0, "code");
	assert_good();
	/* The right key's word on another text. */
	write_bytes("manifest", "allot-manifest 1\n", 17);
	assert_refused(EKEYREJECTED, "or changed since");
}

static void test_rotation(void **state)
{
	assert_good();
	/* The new key is made known, then signs, then the old one is taken out. */
	write_keys(0, 2);
	assert_good();
	sign_for(1, "code");
	assert_good();
	write_keys(1, 1);
	assert_good();
	sign_for(0, "code");
	assert_refused(EKEYREJECTED, "not signed by a key in ");
}

static void test_missing(void **state)
{
	unlink(at("manifest.sig"));
	assert_refused(ENOENT, "the manifest's signature: ");
	unlink(at("manifest"));
	assert_refused(ENOENT, "library_manifest: ");
	unlink(at("keys"));
	assert_refused(ENOENT, "library_keys: ");
	write_keys(0, 1);
	sign_for(0, "code");
	assert_good();
	unlink(library);
	assert_refused(ENOENT, "library: No such file");
}

static void test_what_is_none(void **state)
{
	write_bytes("manifest.sig", "short", 5);
	assert_refused(
		EINVAL,
		"has 5 bytes: must be an Ed25519 signature, of 64 bytes: sign the manifest again");
	sign(0, "allot-manifest 2\n");
	assert_refused(EINVAL, "line 1: must be 'allot-manifest 1'");
	sign_for(0, "code");
	write_bytes("keys", "none\n", 5);
	assert_refused(EINVAL, "must be a PEM file of public keys");
	write_bytes("keys", "-----BEGIN PUBLIC KEY-----\nabc", 30);
	assert_refused(EINVAL, "has no '-----END PUBLIC KEY-----'");
	write_bytes("keys", "-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----\n", 56);
	assert_refused(EINVAL, "public key: ");
}

static void test_another_kind_of_key(void **state)
{
	gnutls_privkey_t ed25519 = keys[0];
	assert_int_equal(gnutls_privkey_init(&keys[0]), 0);
	assert_int_equal(gnutls_privkey_generate(keys[0], GNUTLS_PK_ECDSA,
						 GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
			 0);
	write_keys(0, 1);
	gnutls_privkey_deinit(keys[0]);
	keys[0] = ed25519;
	assert_refused(EINVAL, "must be an Ed25519 key");
}

static void test_keys_that_others_may_write(void **state)
{
	assert_int_equal(chmod(at("keys"), 0664), 0);
	assert_refused(EPERM, "others may write to this file: run chmod go-w on it");
	assert_int_equal(chmod(at("keys"), 0644), 0);
	assert_good();
	if (geteuid() != 0)
		return;
	assert_int_equal(chown(at("keys"), 4711, (gid_t)-1), 0);
	assert_refused(EPERM, "belongs to uid 4711: must belong to root");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_off),
		cmocka_unit_test_setup_teardown(test_changed_byte, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrong_key, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rotation, setup, teardown),
		cmocka_unit_test_setup_teardown(test_missing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_none, setup, teardown),
		cmocka_unit_test_setup_teardown(test_another_kind_of_key, setup, teardown),
		cmocka_unit_test_setup_teardown(test_keys_that_others_may_write, setup, teardown),
	};
	for (unsigned i = 0; i < 2; i++)
		if (gnutls_privkey_init(&keys[i]) < 0 ||
		    gnutls_privkey_generate(keys[i], GNUTLS_PK_EDDSA_ED25519, 256, 0) < 0)
			return 1;
	if (!mkdtemp(dir))
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	for (unsigned i = 0; i < 2; i++)
		gnutls_privkey_deinit(keys[i]);
	rmdir(dir);
	return failed;
}
