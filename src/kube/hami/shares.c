#include "kube/hami/shares.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "kube/util/sanitize.h"

#define SHARES_MAX 4096 /* most shares, and most containers */
#define BORROWED_MOST_PCT 100
#define SHARE_TEXT_MAX (KUBE_ID_MAX + SHARE_KIND_MAX + 48)

void shares_free(struct kube_shares *shares)
{
	free(shares->share);
	*shares = (struct kube_shares){ 0 };
}

static int read_text(const char *what, const char *from, char *to, size_t size, struct error *err)
{
	if (!*from || strlen(from) >= size)
		return error_set(err, EINVAL, "%s: '%.40s': must be 1 to %zu bytes", what, from,
				 size - 1);
	strcpy(to, from);
	return 0;
}

static int read_number(const char *what, const char *from, uint64_t *ret, struct error *err)
{
	int64_t number;
	int r = parse_int(from, 0, INT32_MAX, &number, err);
	if (r < 0)
		return error_add(err, r, "%s", what);
	*ret = (uint64_t)number;
	return 0;
}

/* Parses "UUID,NVIDIA,<MiB>,<cores>" in place. Ignores further fields, as HAMi does. -ENODATA for ",,0,0": no GPU. */
static int parse_share(char *text, struct kube_share *share, struct error *err)
{
	char *field[4];
	uint64_t cores = 0;
	unsigned count = 0;
	for (char *part; (part = strsep(&text, ",")); count++)
		if (count < 4)
			field[count] = part;
	if (count < 4)
		return error_set(err, EINVAL, "%u fields: must be UUID,KIND,MEMORY,CORES", count);
	if (!*field[0] && !strcmp(field[2], "0"))
		return -ENODATA;
	int r = read_text("UUID", field[0], share->card, sizeof(share->card), err);
	if (r >= 0)
		r = read_text("kind", field[1], share->kind, sizeof(share->kind), err);
	if (r >= 0)
		r = read_number("memory", field[2], &share->memory_mib, err);
	if (r >= 0)
		r = read_number("cores", field[3], &cores, err);
	if (r < 0)
		return r;
	share->cores_pct = (unsigned)cores;
	return 0;
}

/* `text` has no ';'. The last ':' may be missing. Skips shares that stand for no GPU. */
static int parse_container(char *text, struct kube_shares *shares, struct error *err)
{
	size_t n = 0;
	for (char *part; (part = strsep(&text, ":")); n++) {
		if (!*part)
			continue;
		struct kube_share *share = &shares->share[shares->count];
		share->container = shares->containers;
		int r = parse_share(part, share, err);
		if (r == -ENODATA)
			continue;
		if (r < 0)
			return error_add(err, r, "container %zu: share %zu", shares->containers, n);
		shares->count++;
	}
	return 0;
}

/* *ret_shares is an upper bound of the number of shares. */
static int measure(const char *text, size_t *ret_shares, struct error *err)
{
	size_t containers = 0, shares = 0, length = strlen(text);
	for (const char *c = text; *c; c++) {
		containers += *c == ';';
		shares += *c == ';' || *c == ':';
	}
	/* The last ';' may be missing. */
	if (length && text[length - 1] != ';') {
		containers++;
		shares++;
	}
	if (containers > SHARES_MAX || shares > SHARES_MAX)
		return error_set(err, EINVAL,
				 "%zu containers and %zu GPU shares: must be at most %d of each",
				 containers, shares, SHARES_MAX);
	*ret_shares = shares;
	return 0;
}

static int parse(const char *text, struct kube_shares *shares, struct error *err)
{
	size_t most = 0;
	int r = measure(text, &most, err);
	if (r < 0)
		return r;
	cleanup_free char *copy = strdup(text);
	shares->share = calloc(most ? most : 1, sizeof(*shares->share));
	if (!copy || !shares->share)
		return error_set_errno(err, ENOMEM, "shares");
	char *rest = copy;
	for (char *part; r >= 0 && (part = strsep(&rest, ";")) && (rest || *part);
	     shares->containers++)
		r = parse_container(part, shares, err);
	return r;
}

int shares_parse(const char *text, struct kube_shares *ret, struct error *err)
{
	struct kube_shares shares = { 0 };
	int r = parse(text, &shares, err);
	if (r < 0) {
		shares_free(&shares);
		return error_sanitize(err, r);
	}
	*ret = shares;
	return 0;
}

int shares_parse_of(const char *text, size_t init, size_t containers, struct kube_shares *ret,
		    struct error *err)
{
	struct kube_shares shares;
	int r = shares_parse(text, &shares, err);
	if (r < 0)
		return r;
	if (init && shares.containers + init == containers) {
		shares.containers = containers;
		for (size_t i = 0; i < shares.count; i++)
			shares.share[i].container += init;
	}
	*ret = shares;
	return 0;
}

static char *format(const struct kube_shares *shares, bool is_borrowed)
{
	size_t size = shares->count * SHARE_TEXT_MAX + shares->containers + 1, at = 0, next = 0;
	char *text = malloc(size);
	if (!text)
		return NULL;
	for (size_t i = 0; i < shares->containers; i++) {
		for (; next < shares->count && shares->share[next].container == i; next++) {
			const struct kube_share *s = &shares->share[next];
			at += (size_t)snprintf(text + at, size - at,
					       "%s,%s,%" PRIu64 ",%u:", s->card, s->kind,
					       s->memory_mib,
					       is_borrowed ? s->borrowed_pct : s->cores_pct);
		}
		text[at++] = ';';
	}
	text[at] = '\0';
	return text;
}

char *shares_format(const struct kube_shares *shares)
{
	return format(shares, false);
}

char *shares_format_borrowed(const struct kube_shares *shares)
{
	return format(shares, true);
}

bool shares_have_borrowed(const struct kube_shares *shares)
{
	for (size_t i = 0; i < shares->count; i++)
		if (shares->share[i].borrowed_pct)
			return true;
	return false;
}

unsigned shares_borrowed(const struct kube_shares *borrowed, const struct kube_share *share)
{
	size_t count;
	const struct kube_share *one = shares_of(borrowed, share->container, &count);
	for (; !share->cores_pct && count; one++, count--)
		if (!strcmp(one->card, share->card) && one->memory_mib == share->memory_mib)
			return one->cores_pct < BORROWED_MOST_PCT ? one->cores_pct
								  : BORROWED_MOST_PCT;
	return 0;
}

const struct kube_share *shares_of(const struct kube_shares *shares, size_t container,
				   size_t *ret_count)
{
	size_t from = 0;
	while (from < shares->count && shares->share[from].container < container)
		from++;
	size_t to = from;
	while (to < shares->count && shares->share[to].container == container)
		to++;
	*ret_count = to - from;
	return shares->share + from;
}

void shares_erase(struct kube_shares *shares, size_t container)
{
	size_t kept = 0;
	for (size_t i = 0; i < shares->count; i++)
		if (shares->share[i].container != container)
			shares->share[kept++] = shares->share[i];
	shares->count = kept;
}

bool shares_equal(const struct kube_share *a, size_t a_count, const struct kube_share *b,
		  size_t b_count)
{
	bool is_equal = a_count == b_count;
	for (size_t i = 0; is_equal && i < a_count; i++)
		is_equal = !strcmp(a[i].card, b[i].card) && !strcmp(a[i].kind, b[i].kind) &&
			   a[i].memory_mib == b[i].memory_mib && a[i].cores_pct == b[i].cores_pct;
	return is_equal;
}
