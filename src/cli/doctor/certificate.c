#include "cli/doctor/certificate.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "libgnutls.so.30"

/* Every function of it that is used. */
#define FUNCTIONS(X) \
	X(x509_crt_init) \
	X(x509_crt_deinit) \
	X(x509_crt_import) \
	X(x509_crt_get_activation_time) \
	X(x509_crt_get_expiration_time) \
	X(x509_crt_get_subject_alt_name) \
	X(strerror)

#define MEMBER(name) __typeof__(gnutls_##name) *name;
struct tls_library {
	FUNCTIONS(MEMBER)
};

#define ROW(name) { "gnutls_" #name, offsetof(struct tls_library, name) },
static const struct {
	const char *symbol;
	size_t offset;
} rows[] = { FUNCTIONS(ROW) };

static int load(struct tls_library *ret, struct error *err)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return error_set(err, ENOENT, "reading it needs GnuTLS: %s", dlerror());
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *function = dlsym(library, rows[i].symbol);
		if (!function)
			return error_set(err, ENOENT, LIBRARY " lacks %s", rows[i].symbol);
		memcpy((char *)ret + rows[i].offset, &function, sizeof(function));
	}
	return 0;
}

static void add_name(char *names, size_t size, const char *name)
{
	size_t have = strlen(names);
	snprintf(names + have, size - have, "%s%s", have ? " " : "", name);
}

static void read_names(const struct tls_library *tls, gnutls_x509_crt_t certificate, char *names,
		       size_t size)
{
	for (unsigned i = 0;; i++) {
		char name[256], address[INET6_ADDRSTRLEN];
		size_t length = sizeof(name) - 1;
		int r = tls->x509_crt_get_subject_alt_name(certificate, i, name, &length, NULL);
		if (r == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE || r == GNUTLS_E_SHORT_MEMORY_BUFFER)
			return;
		name[r >= 0 ? length : 0] = '\0';
		if (r == GNUTLS_SAN_DNSNAME)
			add_name(names, size, name);
		else if (r == GNUTLS_SAN_IPADDRESS && inet_ntop(length == 4 ? AF_INET : AF_INET6,
								name, address, sizeof(address)))
			add_name(names, size, address);
	}
}

int certificate_read(const char *pem, size_t size, int64_t *ret_from_s, int64_t *ret_until_s,
		     char *ret_names, size_t names_size, struct error *err)
{
	const gnutls_datum_t data = { (unsigned char *)pem, (unsigned)size };
	gnutls_x509_crt_t certificate;
	struct tls_library tls;
	int r = load(&tls, err);
	if (r < 0)
		return r;
	r = tls.x509_crt_init(&certificate);
	if (r < 0)
		return error_set(err, ENOMEM, "%s", tls.strerror(r));
	r = tls.x509_crt_import(certificate, &data, GNUTLS_X509_FMT_PEM);
	ret_names[0] = '\0';
	if (r >= 0) {
		*ret_from_s = tls.x509_crt_get_activation_time(certificate);
		*ret_until_s = tls.x509_crt_get_expiration_time(certificate);
		read_names(&tls, certificate, ret_names, names_size);
	}
	tls.x509_crt_deinit(certificate);
	return r < 0 ? error_set(err, EINVAL, "is no PEM file with a certificate (%s)",
				 tls.strerror(r))
		     : 0;
}
