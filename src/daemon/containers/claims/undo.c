/*
 * Takes back claims that were made but not yet reported to their requesters. Each claim ends at once; if the store cannot be
 * written, the next transaction that succeeds deletes the claim's row.
 */
#include <stdlib.h>

#include "base/log.h"
#include "daemon/containers/claims/claims.h"
#include "daemon/containers/claims/claims_inside.h"

static void keep_row(struct claims *claims, int64_t row)
{
	int64_t *grown = realloc(claims->undone, (claims->undone_count + 1) * sizeof(*grown));
	if (!grown) {
		log_error(
			"claims: out of memory: an ended claim (row %lld of claims.db) can't be deleted: a "
			"restarted allotd restores it; allot cdi remove removes a claim of allot cdi",
			(long long)row);
		return;
	}
	grown[claims->undone_count++] = row;
	claims->undone = grown;
}

void claims_undo(struct claims *claims, const char *key, const char *why)
{
	struct error err = { 0 };
	struct claim *claim = claims_find(claims, key);
	if (!claim || claims_release(claims, key, why, &err) >= 0)
		return;
	log_warning("%s; the claim ends all the same, and allotd deletes it from the file as soon "
		    "as it can write there again",
		    err.text);
	if (claim->row >= 0)
		keep_row(claims, claim->row);
	claims->counts.released++;
	claims_end(claim, why);
}

bool claims_is_undone(const struct claims *claims, int64_t row)
{
	for (size_t i = 0; i < claims->undone_count; i++)
		if (claims->undone[i] == row)
			return true;
	return false;
}

int claims_begin(struct claims *claims, struct error *err)
{
	int r = store_begin(claims->store, err);
	for (size_t i = 0; r >= 0 && i < claims->undone_count; i++)
		r = store_remove(claims->store, claims->undone[i], err);
	return r;
}

void claims_delete_undone(struct claims *claims)
{
	struct error err = { 0 };
	if (!claims->undone_count || !claims->store)
		return;
	if (claims_commit(claims, claims_begin(claims, &err), &err) < 0)
		log_debug("claims: %s", err.text);
}
