#include "scheduler/service/issuer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd/write_all.h"
#include "kube/util/base64.h"

#define NAME_MAX_BYTES 254
#define SERIAL_BYTES 16
#define SKEW_S 3600 /* a certificate's validity begins this long ago, because clocks differ */
#define DAY_S 86400
#define BUNDLE_MAX 65536

struct generated_certificate {
	gnutls_x509_privkey_t key;
	gnutls_x509_crt_t certificate;
};

static void generated_certificate_free(struct generated_certificate *m)
{
	gnutls_x509_crt_deinit(m->certificate);
	gnutls_x509_privkey_deinit(m->key);
}

static int tls_error(struct error *err, const char *what, int code)
{
	return error_set(err, EIO, "%s: %s", what, gnutls_strerror(code));
}

static int add_name(gnutls_x509_crt_t certificate, const char *name, struct error *err)
{
	unsigned char address[16];
	int r;
	if (inet_pton(AF_INET, name, address) == 1)
		r = gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_IPADDRESS, address,
							 4, GNUTLS_FSAN_APPEND);
	else if (inet_pton(AF_INET6, name, address) == 1)
		r = gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_IPADDRESS, address,
							 16, GNUTLS_FSAN_APPEND);
	else
		r = gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_DNSNAME, name,
							 (unsigned)strlen(name), GNUTLS_FSAN_APPEND);
	return r < 0 ? tls_error(err, name, r) : 0;
}

static int check_name(const char *name, struct error *err)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.:*";
	if (!*name || name[strspn(name, letters)])
		return error_set(
			err, EINVAL,
			"--names: '%.100s': must be DNS names or addresses separated by commas, such as allot-scheduler.kube-system.svc,127.0.0.1",
			name);
	return 0;
}

static int add_names(gnutls_x509_crt_t certificate, const char *names, struct error *err)
{
	for (const char *at = names;; at++) {
		char name[NAME_MAX_BYTES];
		size_t length = strcspn(at, ",");
		if (length >= sizeof(name))
			return error_set(
				err, EINVAL,
				"--names: '%.60s...': a name must have at most %zu bytes; commas separate names",
				at, sizeof(name) - 1);
		memcpy(name, at, length);
		name[length] = '\0';
		int r = check_name(name, err);
		if (r >= 0)
			r = add_name(certificate, name, err);
		/* The first name is also the subject. Clients check only the alternative names, which add_name() adds. */
		if (r >= 0 && at == names)
			gnutls_x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0,
						      name, (unsigned)(length < 64 ? length : 64));
		if (r < 0)
			return r;
		at += length;
		if (!*at)
			return 0;
	}
}

static int set_serial(gnutls_x509_crt_t certificate)
{
	unsigned char serial[SERIAL_BYTES];
	if (getrandom(serial, sizeof(serial), 0) != (ssize_t)sizeof(serial))
		return GNUTLS_E_RANDOM_FAILED;
	serial[0] = (unsigned char)((serial[0] & 0x7f) | 0x40); /* a serial number is positive */
	return gnutls_x509_crt_set_serial(certificate, serial, sizeof(serial));
}

static int set_key_id(gnutls_x509_crt_t certificate)
{
	unsigned char id[64];
	size_t size = sizeof(id);
	int r = gnutls_x509_crt_get_key_id(certificate, 0, id, &size);
	return r < 0 ? r : gnutls_x509_crt_set_subject_key_id(certificate, id, size);
}

static int fill(struct generated_certificate *m)
{
	time_t now = time(NULL);
	gnutls_x509_crt_t c = m->certificate;
	int r = gnutls_x509_crt_set_version(c, 3);
	if (r >= 0)
		r = set_serial(c);
	if (r >= 0)
		r = gnutls_x509_crt_set_activation_time(c, now - SKEW_S);
	if (r >= 0)
		r = gnutls_x509_crt_set_expiration_time(c, now + (time_t)ISSUER_DAYS * DAY_S);
	if (r >= 0)
		r = gnutls_x509_crt_set_key(c, m->key);
	if (r >= 0)
		r = gnutls_x509_crt_set_basic_constraints(c, 0, -1);
	if (r >= 0)
		r = gnutls_x509_crt_set_key_usage(c, GNUTLS_KEY_DIGITAL_SIGNATURE);
	if (r >= 0)
		r = gnutls_x509_crt_set_key_purpose_oid(c, GNUTLS_KP_TLS_WWW_SERVER, 0);
	if (r >= 0)
		r = set_key_id(c);
	if (r >= 0)
		r = gnutls_x509_crt_sign2(c, c, m->key, GNUTLS_DIG_SHA256, 0);
	return r;
}

static int make(struct generated_certificate *m, const char *names, struct error *err)
{
	int r = gnutls_x509_privkey_init(&m->key);
	if (r >= 0)
		r = gnutls_x509_crt_init(&m->certificate);
	if (r >= 0)
		r = gnutls_x509_privkey_generate(m->key, GNUTLS_PK_ECDSA,
						 GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1),
						 0);
	if (r < 0)
		return tls_error(err, "can't make a private key", r);
	r = add_names(m->certificate, names, err);
	if (r < 0)
		return r;
	r = fill(m);
	return r < 0 ? tls_error(err, "can't make a certificate", r) : 0;
}

static int write_file(const char *path, mode_t mode, const gnutls_datum_t *text, struct error *err)
{
	cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return error_set_errno(err, errno, "%s", path);
	int r = write_all(fd, text->data, text->size);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r == 0)
		return 0;
	unlink(path);
	return error_set_errno(err, -r, "%s", path);
}

static int write_both(const struct generated_certificate *m, const char *dir, struct error *err)
{
	char key_path[PATH_MAX], path[PATH_MAX];
	gnutls_datum_t key = { 0 }, certificate = { 0 };
	if (snprintf(key_path, sizeof(key_path), "%s/" ISSUER_KEY, dir) >= (int)sizeof(key_path))
		return error_set_errno(err, ENAMETOOLONG, "%s", dir);
	snprintf(path, sizeof(path), "%s/" ISSUER_CERTIFICATE, dir);
	int r = gnutls_x509_privkey_export2_pkcs8(m->key, GNUTLS_X509_FMT_PEM, NULL,
						  GNUTLS_PKCS_PLAIN, &key);
	if (r >= 0)
		r = gnutls_x509_crt_export2(m->certificate, GNUTLS_X509_FMT_PEM, &certificate);
	if (r < 0) {
		r = tls_error(err, dir, r);
	} else {
		r = write_file(path, 0644, &certificate, err);
		if (r >= 0) {
			r = write_file(key_path, 0600, &key, err);
			/* The certificate is useless without its key. */
			if (r < 0)
				unlink(path);
		}
	}
	if (key.data)
		gnutls_memset(key.data, 0, key.size);
	gnutls_free(key.data);
	gnutls_free(certificate.data);
	return r;
}

int issuer_make(const char *dir, const char *names, struct error *err)
{
	struct generated_certificate m = { 0 };
	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return error_set_errno(err, errno, "%s", dir);
	int r = make(&m, names, err);
	if (r >= 0)
		r = write_both(&m, dir, err);
	generated_certificate_free(&m);
	return r;
}

static int read_file(const char *file, char text[BUNDLE_MAX], struct error *err)
{
	cleanup_file FILE *f = fopen(file, "re");
	if (!f)
		return error_set_errno(err, errno, "%s", file);
	size_t n = fread(text, 1, BUNDLE_MAX - 1, f);
	text[n] = '\0';
	if (!feof(f) && n == BUNDLE_MAX - 1)
		return error_set(err, EFBIG, "%s: longer than %d bytes", file, BUNDLE_MAX - 1);
	if (!strstr(text, "-----BEGIN CERTIFICATE-----"))
		return error_set(err, EINVAL, "%s: must be a PEM file with a certificate", file);
	return 0;
}

int issuer_expiry(const char *file, int64_t *ret_s, struct error *err)
{
	char text[BUNDLE_MAX];
	gnutls_x509_crt_t certificate;
	int r = read_file(file, text, err);
	if (r < 0)
		return r;
	const gnutls_datum_t pem = { (unsigned char *)text, (unsigned)strlen(text) };
	r = gnutls_x509_crt_init(&certificate);
	if (r < 0)
		return tls_error(err, file, r);
	r = gnutls_x509_crt_import(certificate, &pem, GNUTLS_X509_FMT_PEM);
	if (r >= 0)
		*ret_s = gnutls_x509_crt_get_expiration_time(certificate);
	gnutls_x509_crt_deinit(certificate);
	return r < 0 ? tls_error(err, file, r) : 0;
}

int issuer_bundle(const char *file, char **ret, struct error *err)
{
	char text[BUNDLE_MAX];
	int r = read_file(file, text, err);
	if (r < 0)
		return r;
	/* The result goes into the webhook's configuration, which many can read, so refuse a private key. */
	if (strstr(text, "PRIVATE KEY"))
		return error_set(
			err, EINVAL,
			"%s: contains a private key; name a file that has only certificates", file);
	*ret = base64_encode(text);
	return *ret ? 0 : error_set_errno(err, ENOMEM, "%s", file);
}
