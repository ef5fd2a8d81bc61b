/*
 * Who may see the page's state, and who may change something: as the command line has it, with the means that HTTP has.
 * Pure, but for the token's file; main thread only.
 *
 * Of allotd: `allot ps` shows all tenants to whoever may open the control socket: of the system's daemon everyone on the machine, of
 * a private one its user. A connection by TCP does not tell who it is. So reading needs the token of web_token_file, but where
 * that is none, the page can be reached from this machine alone and the daemon is the system's, or where the unix
 * socket's mode tells. Changing needs the token of web_change_token_file, always: whoever names it is as a member of group allot.
 *
 * What a browser was made to send by another site has no token: it is in a header that only the page's own script
 * writes, never in a cookie. Where reading needs none, another site could point a name of its own at this
 * machine; so then the Host header must be an address or "localhost".
 *
 * Of allot-scheduler, whose page changes nothing, reading alone: whoever is on its machine, or its pod, may, else who names the token.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "http/address.h"

/* Of a page, by the names that both programs have for them. Texts are the caller's; "none", "off": not. */
struct access_settings {
	const char *web_listen, *web_token_file, *web_tls_certificate, *web_tls_key;
	const char *web_change_token_file; /* NULL: there is no such setting */
};

struct access_terms {
	const char *token_file, *change_token_file; /* "none", NULL: none */
	bool is_unix;                               /* who may connect is the socket's to say */
};

struct access_request {
	const char *authorization, *host, *origin; /* NULL: there is none */
};

enum access_verdict {
	ACCESS_GRANTED,
	ACCESS_NEEDS_TOKEN,
	ACCESS_WRONG_HOST,   /* a name, where an address or localhost is right */
	ACCESS_WRONG_ORIGIN, /* another site's */
	ACCESS_NO_CHANGES,   /* nobody may change anything */
	ACCESS_UNREADABLE,   /* a token's file; *err says why */
};

/* What settings must not be: -EINVAL, -EACCES. Pure. `is_private`: the daemon is one user's. */
int access_check(const struct access_settings *settings, struct error *err);
int access_check_private(const struct access_settings *settings, const struct address *address,
			 bool is_private, struct error *err);

enum access_verdict access_may_read(const struct access_terms *terms,
				    const struct access_request *request, struct error *err);
enum access_verdict access_may_change(const struct access_terms *terms,
				      const struct access_request *request, struct error *err);

/* Whether a Host header (NULL: there is none) is an address in numbers or "localhost", with a port or without. */
bool access_is_plain_host(const char *host);
/* Whether an Origin header (NULL: there is none, which is fine) is of the site that Host names. */
bool access_is_own_origin(const char *origin, const char *host);
