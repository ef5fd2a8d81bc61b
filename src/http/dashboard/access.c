#include "http/dashboard/access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "http/bearer_token.h"

#define HOST_MAX 128

static bool is_none(const char *file)
{
	return !file || !strcmp(file, "none");
}

static int check_token_file(const char *key, const char *file, struct error *err)
{
	return is_none(file) || *file == '/'
		       ? 0
		       : error_set(err, EINVAL, "%s: '%.100s': must be a full path, or none", key,
				   file);
}

int access_check(const struct access_settings *settings, struct error *err)
{
	struct address address;
	int r = check_token_file("web_token_file", settings->web_token_file, err);
	if (r >= 0)
		r = check_token_file("web_change_token_file", settings->web_change_token_file, err);
	if (r < 0)
		return r;
	bool has_certificate = !is_none(settings->web_tls_certificate);
	bool has_key = !is_none(settings->web_tls_key);
	if (has_certificate != has_key)
		return error_set(err, EINVAL, "%s: must be set too, since %s is set",
				 has_key ? "web_tls_certificate" : "web_tls_key",
				 has_key ? "web_tls_key" : "web_tls_certificate");
	r = address_parse(settings->web_listen, &address, err);
	if (r < 0)
		return error_add(err, r, "web_listen");
	if (is_none(settings->web_token_file) && !address_is_local(&address))
		return error_set(err, EACCES,
				 "web_listen: '%s' can be reached from other machines: name a "
				 "web_token_file",
				 settings->web_listen);
	return 0;
}

int access_check_private(const struct access_settings *settings, const struct address *address,
			 bool is_private, struct error *err)
{
	if (!is_private || address->storage.ss_family == AF_UNIX ||
	    !is_none(settings->web_token_file))
		return 0;
	return error_set(err, EACCES,
			 "web_listen: '%s' can be reached by every user of this machine, but only "
			 "you may see the tenants of your private daemon: set web_token_file, or "
			 "web_listen = unix:/path",
			 settings->web_listen);
}

bool access_is_plain_host(const char *host)
{
	char name[HOST_MAX];
	unsigned char address[16];
	if (!host || strlen(host) >= sizeof(name))
		return false;
	strcpy(name, host);
	if (*name == '[') {
		char *end = strchr(name, ']');
		if (!end || (end[1] && end[1] != ':'))
			return false;
		*end = '\0';
		return inet_pton(AF_INET6, name + 1, address) == 1;
	}
	char *port = strchr(name, ':');
	if (port)
		*port = '\0';
	return !strcasecmp(name, "localhost") || inet_pton(AF_INET, name, address) == 1;
}

bool access_is_own_origin(const char *origin, const char *host)
{
	const char *after = origin ? strstr(origin, "://") : NULL;
	return !origin || (after && host && !strcasecmp(after + strlen("://"), host));
}

static enum access_verdict names_token(const char *key, const char *file, const char *authorization,
				       struct error *err)
{
	char token[TOKEN_MAX + 1];
	int r = token_read(file, token, err);
	if (r < 0) {
		error_add(err, r, "%s", key);
		return ACCESS_UNREADABLE;
	}
	return token_is_named(token, authorization) ? ACCESS_GRANTED : ACCESS_NEEDS_TOKEN;
}

static enum access_verdict names_change_token(const struct access_terms *terms,
					      const struct access_request *request,
					      struct error *err)
{
	if (is_none(terms->change_token_file))
		return ACCESS_NO_CHANGES;
	return names_token("web_change_token_file", terms->change_token_file,
			   request->authorization, err);
}

enum access_verdict access_may_read(const struct access_terms *terms,
				    const struct access_request *request, struct error *err)
{
	if (is_none(terms->token_file))
		return terms->is_unix || access_is_plain_host(request->host) ? ACCESS_GRANTED
									     : ACCESS_WRONG_HOST;
	enum access_verdict verdict = names_token("web_token_file", terms->token_file,
						  request->authorization, err);
	/* A client that may change may also read. */
	if (verdict != ACCESS_GRANTED) {
		struct error other = { 0 };
		if (names_change_token(terms, request, &other) == ACCESS_GRANTED)
			return ACCESS_GRANTED;
	}
	return verdict;
}

enum access_verdict access_may_change(const struct access_terms *terms,
				      const struct access_request *request, struct error *err)
{
	if (!access_is_own_origin(request->origin, request->host))
		return ACCESS_WRONG_ORIGIN;
	return names_change_token(terms, request, err);
}
