#include "scheduler/service/authorize.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/settings/settings.h"
#include "base/text.h"
#include "http/bearer_token.h"

#define SAY_AGAIN_NS (10 * NSEC_PER_SEC)
#define KNOWN_NS (60 * NSEC_PER_SEC)

/*
 * libmicrohttpd requests a client certificate but accepts any. So the functions up to peer_check() verify it when the client
 * uses a restricted verb.
 */

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
			"a client certificate signed by an authority in client_ca is required, but none was presented");
	int r = gnutls_certificate_verify_peers(session, &purpose, 1, &status);
	if (r >= 0 && !status)
		return 0;
	if (r >= 0)
		gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0);
	error_set(err, EKEYREJECTED, "the client certificate was not accepted: %s",
		  text.data ? (const char *)text.data : gnutls_strerror(r));
	gnutls_free(text.data);
	return -EKEYREJECTED;
}

/* A name that contains a NUL never matches. */
static bool fits(const char *names, const char *name, size_t size)
{
	return strlen(name) == size && settings_list_matches(names, name);
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
				   "no name of the client certificate (common name '%.64s') is in "
				   "client_names (%.120s): use another certificate, or add a name",
				   name, names);
}

/*
 * `session`: a gnutls_session_t; NULL without TLS. `names`: patterns (fnmatch(3)) separated by commas; one must match the
 * certificate's common name, or a DNS name, URI or mail address in it. err says what would be right.
 */
static int peer_check(void *session, const char *names, struct error *err)
{
	if (!session)
		return error_set(err, ENOTCONN,
				 "a client certificate is required, and certificates need TLS: "
				 "connect to https_listen");
	int r = check_trust(session, err);
	return r < 0 ? r : check_name(session, names, err);
}

static const struct {
	const char *name;
	bool takes_token; /* the token of token_file suffices */
} verbs[AUTHORIZE_VERBS] = {
	[AUTHORIZE_WEBHOOK] = { "webhook", false },
	[AUTHORIZE_FILTER] = { "filter", false },
	[AUTHORIZE_PRIORITIZE] = { "prioritize", false },
	[AUTHORIZE_PREEMPT] = { "preempt", false },
	[AUTHORIZE_BIND] = { "bind", false },
	[AUTHORIZE_EXPLAIN] = { "explain", true },
	[AUTHORIZE_METRICS] = { "metrics", true },
};

static int parse_one(const char *word, size_t length, unsigned *verbs_so_far, struct error *err)
{
	for (unsigned i = 0; i < AUTHORIZE_VERBS; i++)
		if (strlen(verbs[i].name) == length && !strncmp(verbs[i].name, word, length)) {
			*verbs_so_far |= 1U << i;
			return 0;
		}
	return error_set(
		err, EINVAL,
		"'%.*s': must be none, or a comma-separated list of webhook, filter, prioritize, preempt, bind, explain and metrics",
		(int)(length < 40 ? length : 40), word);
}

int authorize_parse(const char *list, unsigned *ret_verbs, struct error *err)
{
	unsigned found = 0;
	if (strcmp(list, "none") != 0)
		for (const char *at = list;; at++) {
			at += strspn(at, " ");
			size_t length = strcspn(at, ", ");
			int r = parse_one(at, length, &found, err);
			if (r < 0)
				return r;
			at += length + strspn(at + length, " ");
			if (!*at)
				break;
			if (*at != ',')
				return error_set(
					err, EINVAL,
					"'%.40s': must be names with commas between them, such as filter, bind",
					list);
		}
	*ret_verbs = found;
	return 0;
}

/*
 * A check is slow, and kube-scheduler keeps connections open. So a success counts for the connection's later requests, but only
 * for KNOWN_NS, because the certificate may expire.
 */
static int check_certificate(const struct authorizer *authorizer,
			     const struct server_request *request, struct error *err)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t *known_ns = request->authorized_ns;
	if (known_ns && *known_ns && now_ns - *known_ns < KNOWN_NS)
		return 0;
	int r = peer_check(request->tls, authorizer->names, err);
	if (known_ns)
		*known_ns = r < 0 ? 0 : now_ns;
	return r;
}

/* Returns 0, 401 if the token is missing or wrong, or 503 if token_file cannot be read. */
static unsigned check_token(const struct authorizer *authorizer, const char *authorization,
			    struct error *err)
{
	char token[TOKEN_MAX + 1];
	struct error why = { 0 };
	if (token_read(authorizer->token_file, token, &why) < 0) {
		error_set(err, why.code, "the token cannot be checked: %s", why.text);
		return 503;
	}
	if (token_is_named(token, authorization))
		return 0;
	error_set(err, EACCES, "the bearer token of token_file is required%s",
		  authorization ? ", but another one was sent" : "");
	return 401;
}

static unsigned check(const struct authorizer *authorizer, enum authorize_verb verb,
		      const struct server_request *request, struct error *err)
{
	bool takes_token = verbs[verb].takes_token && authorizer->token_file;
	bool takes_certificate = authorizer->verbs & (1U << verb);
	struct error by_token = { 0 };
	if ((!takes_token && !takes_certificate) || (!request->tls && authorizer->is_local_trusted))
		return 0;
	unsigned status = takes_token ? check_token(authorizer, request->authorization, &by_token)
				      : 403;
	if (!status)
		return 0;
	if (takes_certificate && check_certificate(authorizer, request, err) >= 0)
		return 0;
	/* The client can use a token for this verb, so report what is wrong with the token. */
	if (takes_token)
		*err = by_token;
	return status;
}

unsigned authorize(struct authorizer *authorizer, enum authorize_verb verb,
		   const struct server_request *request, struct error *err)
{
	struct error why = { 0 };
	if (verb == AUTHORIZE_OPEN)
		return 0;
	unsigned status = check(authorizer, verb, request, &why);
	if (!status)
		return 0;
	/* kube-scheduler does not show the answer, so log refusals, at a limited rate because a client may retry forever. */
	uint64_t now_ns = clock_now_ns();
	if (!authorizer->logged_ns || now_ns - authorizer->logged_ns >= SAY_AGAIN_NS) {
		log_warning("a request for /%s was refused: %s", verbs[verb].name, why.text);
		authorizer->logged_ns = now_ns;
	}
	error_set(err, why.code, "%s", why.text);
	return status;
}
