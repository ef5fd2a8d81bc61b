/*
 * Who is at the other end of a TLS connection, by the certificate that it showed. libmicrohttpd asks for it and takes whatever
 * comes; what that is worth is found out here, when somebody asks for what not everybody may. Thread safe for different
 * sessions.
 */
#ifndef ALLOT_SCHED_PEER_H
#define ALLOT_SCHED_PEER_H

#include "base/error.h"

/*
 * `session`: its gnutls_session_t; NULL: there is no TLS. `names`: patterns of fnmatch(3), by commas, of which the
 * certificate's common name, or one of its DNS names, URIs or mail addresses, must fit one.
 * -ENOTCONN: there is no TLS; -ENODATA: no certificate was shown; -EKEYREJECTED: one that the issuers do not vouch for, that
 * has expired, is not for clients; -EACCES: another's. Each with what would be right.
 */
int peer_check(void *session, const char *names, struct error *err);

#endif
