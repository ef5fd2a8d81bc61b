/*
 * Decides who may read a web page and who may change something: as far as HTTP can tell, the same people as on the command
 * line. Pure, except for reading the token's file; main thread only.
 *
 * In allotd, `allot ps` shows all tenants to everyone who may open the control socket: for the system daemon everyone on the
 * machine, for a private daemon its user. A TCP connection does not show the user. So if web_token_file is set, reading needs
 * its token. It may be unset only for a unix socket, whose mode decides who may connect, and for a page of the system daemon
 * at an address that only this machine can reach. Changing always needs the token of web_change_token_file, which gives the
 * rights of a member of group "allot".
 *
 * A browser's request on behalf of another web site has no token: only the page's own script sends the token, in a header and
 * never in a cookie. If reading needs no token, another site could point its own host name at this machine and read the page
 * (DNS rebinding). So the Host header must then be an IP address or "localhost".
 *
 * In allot-scheduler, whose page changes nothing, web_token_file may be unset if only its own machine or pod can reach the
 * page.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "http/address.h"

/* The settings of a page, as allotd and allot-scheduler name them. "none" and "off" mean unset. */
struct access_settings {
	const char *web_listen, *web_token_file, *web_tls_certificate, *web_tls_key;
	const char *web_change_token_file; /* NULL if the program has no such setting */
};

struct access_terms {
	const char *token_file, *change_token_file; /* "none" or NULL if there is none */
	bool is_unix; /* the page is at a unix socket, whose mode decides who may connect */
};

struct access_request {
	const char *authorization, *host, *origin; /* NULL if missing */
};

enum access_verdict {
	ACCESS_GRANTED,
	ACCESS_NEEDS_TOKEN,
	ACCESS_WRONG_HOST,   /* a host name where an IP address or "localhost" is required */
	ACCESS_WRONG_ORIGIN, /* the origin is another site */
	ACCESS_NO_CHANGES,
	ACCESS_UNREADABLE, /* a token's file can't be read; *err says why */
};

/*
 * access_check() returns -EINVAL if a setting is malformed or lacks another setting that it needs. access_check_private() is
 * for a page that listens at `address`; `is_private`: the daemon belongs to one user. Both return -EACCES if too many people
 * could read the page without web_token_file. Pure.
 */
int access_check(const struct access_settings *settings, struct error *err);
int access_check_private(const struct access_settings *settings, const struct address *address,
			 bool is_private, struct error *err);

enum access_verdict access_may_read(const struct access_terms *terms,
				    const struct access_request *request, struct error *err);
enum access_verdict access_may_change(const struct access_terms *terms,
				      const struct access_request *request, struct error *err);

/* Whether the Host header (NULL: false) is a numeric IP address or "localhost", with or without a port. */
bool access_is_plain_host(const char *host);
/*
 * Whether the Origin header (NULL: true) names the same host and port as the Host header. Schemes may differ, because a proxy
 * may end TLS. A page of the other scheme gains nothing by that: browsers store the page's token separately for each scheme.
 */
bool access_is_own_origin(const char *origin, const char *host);
