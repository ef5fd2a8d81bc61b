#include "sched/door.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "sched/peer.h"
#include "web/token.h"

#define SAY_AGAIN_NS (10 * NSEC_PER_SEC)
#define KNOWN_NS (60 * NSEC_PER_SEC)

static const struct {
	const char *name;
	bool takes_token; /* people and Prometheus ask */
} verbs[DOOR_VERBS] = {
	[DOOR_WEBHOOK] = { "webhook", false },
	[DOOR_FILTER] = { "filter", false },
	[DOOR_PRIORITIZE] = { "prioritize", false },
	[DOOR_PREEMPT] = { "preempt", false },
	[DOOR_BIND] = { "bind", false },
	[DOOR_EXPLAIN] = { "explain", true },
	[DOOR_METRICS] = { "metrics", true },
};

static int parse_one(const char *word, size_t length, unsigned *verbs_so_far, struct error *err)
{
	for (unsigned i = 0; i < DOOR_VERBS; i++)
		if (strlen(verbs[i].name) == length && !strncmp(verbs[i].name, word, length)) {
			*verbs_so_far |= 1U << i;
			return 0;
		}
	return error_set(err, EINVAL,
			 "'%.*s': must be none, or of webhook, filter, prioritize, preempt, bind, "
			 "explain and metrics, by commas",
			 (int)(length < 40 ? length : 40), word);
}

int door_parse(const char *list, unsigned *ret_verbs, struct error *err)
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
				return error_set(err, EINVAL,
						 "'%.40s': must be separated by commas", list);
		}
	*ret_verbs = found;
	return 0;
}

/*
 * A certificate takes 0.3 ms to verify, and kube-scheduler keeps its connections: so it is looked at again after KNOWN_NS, by
 * when it may have expired.
 */
static int check_certificate(const struct door *door, const struct server_request *request,
			     struct error *err)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t *known_ns = request->known_ns;
	if (known_ns && *known_ns && now_ns - *known_ns < KNOWN_NS)
		return 0;
	int r = peer_check(request->tls, door->names, err);
	if (known_ns)
		*known_ns = r < 0 ? 0 : now_ns;
	return r;
}

/* 0, 401 or 503. */
static unsigned check_token(const struct door *door, const char *authorization, struct error *err)
{
	char token[TOKEN_MAX + 1];
	struct error why = { 0 };
	if (token_read(door->token_file, token, &why) < 0) {
		error_set(err, why.code, "the token can't be checked: %s", why.text);
		return 503;
	}
	if (token_is_named(token, authorization))
		return 0;
	error_set(err, EACCES, "the token of token_file is needed%s",
		  authorization ? ", and another was named" : "");
	return 401;
}

static unsigned check(const struct door *door, enum door_verb verb,
		      const struct server_request *request, struct error *err)
{
	bool takes_token = verbs[verb].takes_token && door->token_file;
	bool takes_certificate = door->verbs & (1U << verb);
	struct error by_token = { 0 };
	if ((!takes_token && !takes_certificate) || (!request->tls && door->is_local_trusted))
		return 0;
	unsigned status = takes_token ? check_token(door, request->authorization, &by_token) : 403;
	if (!status)
		return 0;
	if (takes_certificate && check_certificate(door, request, err) >= 0)
		return 0;
	/* Who has named a token, or could have, is told of that. */
	if (takes_token)
		*err = by_token;
	return status;
}

unsigned door_check(struct door *door, enum door_verb verb, const struct server_request *request,
		    struct error *err)
{
	struct error why = { 0 };
	if (verb == DOOR_OPEN)
		return 0;
	unsigned status = check(door, verb, request, &why);
	if (!status)
		return 0;
	/* kube-scheduler tells nobody what it was answered. Whoever asks without end is not to fill the log. */
	uint64_t now_ns = clock_now_ns();
	if (!door->said_ns || now_ns - door->said_ns >= SAY_AGAIN_NS) {
		log_warning("%s is refused: %s", verbs[verb].name, why.text);
		door->said_ns = now_ns;
	}
	error_set(err, why.code, "%s", why.text);
	return status;
}
