#include "sched/peer.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "sched/webhook_inside.h"

#define NAME_BYTES 256
#define ALTERNATIVES_MOST 64

static int check_trust(gnutls_session_t session, struct error *err)
{
	gnutls_typed_vdata_st purpose = {
		.type = GNUTLS_DT_KEY_PURPOSE_OID,
		.data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT
	};
	unsigned status = 0, count = 0;
	gnutls_datum_t text = { 0 };
	if (!gnutls_certificate_get_peers(session, &count) || !count)
		return error_set(
			err, ENODATA,
			"a certificate that client_ca vouches for is needed, and none was shown");
	int r = gnutls_certificate_verify_peers(session, &purpose, 1, &status);
	if (r >= 0 && !status)
		return 0;
	if (r >= 0)
		gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0);
	error_set(err, EKEYREJECTED, "the certificate that was shown does not count: %s",
		  text.data ? (const char *)text.data : gnutls_strerror(r));
	gnutls_free(text.data);
	return -EKEYREJECTED;
}

/* A name with a NUL inside is none. */
static bool fits(const char *names, const char *name, size_t size)
{
	return strlen(name) == size && webhook_is_listed(names, name);
}

static bool is_named(gnutls_x509_crt_t certificate, const char *names, char shown[NAME_BYTES])
{
	size_t size = NAME_BYTES;
	if (gnutls_x509_crt_get_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, 0, shown,
					  &size) < 0)
		*shown = '\0';
	else if (fits(names, shown, size))
		return true;
	for (unsigned i = 0; i < ALTERNATIVES_MOST; i++) {
		char name[NAME_BYTES];
		size = sizeof(name) - 1;
		int kind = gnutls_x509_crt_get_subject_alt_name(certificate, i, name, &size, NULL);
		if (kind == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
			return false;
		bool is_text = kind == GNUTLS_SAN_DNSNAME || kind == GNUTLS_SAN_URI ||
			       kind == GNUTLS_SAN_RFC822NAME;
		if (!is_text)
			continue;
		name[size] = '\0';
		if (fits(names, name, size))
			return true;
	}
	return false;
}

static int check_name(gnutls_session_t session, const char *names, struct error *err)
{
	unsigned count;
	const gnutls_datum_t *shown = gnutls_certificate_get_peers(session, &count);
	gnutls_x509_crt_t certificate;
	char name[NAME_BYTES] = "";
	if (gnutls_x509_crt_init(&certificate) < 0)
		return error_set_errno(err, ENOMEM, "a client's certificate");
	bool is_good = gnutls_x509_crt_import(certificate, shown, GNUTLS_X509_FMT_DER) >= 0 &&
		       is_named(certificate, names, name);
	gnutls_x509_crt_deinit(certificate);
	text_clean(name);
	return is_good ? 0
		       : error_set(err, EACCES,
				   "the certificate is of '%.64s': client_names lets in %.120s",
				   name, names);
}

int peer_check(void *session, const char *names, struct error *err)
{
	if (!session)
		return error_set(
			err, ENOTCONN,
			"a client's certificate is needed, which is shown by TLS alone: ask "
			"at https_listen");
	int r = check_trust(session, err);
	return r < 0 ? r : check_name(session, names, err);
}
