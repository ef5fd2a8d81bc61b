/*
 * Writes claims to rows of the store's tables (store.h), and reads them back. Checks each value that it reads, since the file
 * may have been edited by hand.
 */
#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "daemon/containers/claims/store.h"
#include "daemon/containers/claims/store_inside.h"

/* Earlier versions of allotd accepted priorities up to this value, so the store may have them. */
#define PRIORITY_STORED_MOST 1000

/* Binds the values of one statement in order. Texts must stay valid until the statement has run. */
struct binding {
	sqlite3_stmt *statement;
	int next, rc;
};

static struct binding binding_of(struct store *store, enum statement which)
{
	return (struct binding){ .statement = store->statement[which], .next = 1, .rc = SQLITE_OK };
}

static void bind_text(struct binding *b, const char *text)
{
	b->rc |= sqlite3_bind_text(b->statement, b->next++, text, -1, SQLITE_STATIC);
}

static void bind_int(struct binding *b, int64_t value)
{
	b->rc |= sqlite3_bind_int64(b->statement, b->next++, value);
}

static void bind_real(struct binding *b, double value)
{
	b->rc |= sqlite3_bind_double(b->statement, b->next++, value);
}

static void bind_null(struct binding *b)
{
	b->rc |= sqlite3_bind_null(b->statement, b->next++);
}

static int run_bound(struct store *store, enum statement which, const struct binding *b,
		     struct error *err)
{
	return b->rc == SQLITE_OK ? store_run(store, which, err)
				  : store_fail(store, SQLITE_NOMEM, err);
}

static int add_slots(struct store *store, int64_t row, const char *uuid, const struct slots *slots,
		     struct error *err)
{
	int r = 0;
	for (unsigned i = 0; r >= 0 && i < SLOTS_MAX; i++) {
		if (!slots_has(slots, i))
			continue;
		struct binding b = binding_of(store, SQL_ADD_SLOT);
		bind_text(&b, uuid);
		bind_int(&b, i);
		bind_int(&b, row);
		r = run_bound(store, SQL_ADD_SLOT, &b, err);
		if (r == -EEXIST)
			return error_set(
				err, EEXIST,
				"device %s-%u is already recorded for another claim: this is a fault of allotd: please report it",
				uuid, i);
	}
	return r;
}

static void bind_promise(struct binding *b, const struct promise *p)
{
	if (p->memory_given)
		bind_int(b, (int64_t)p->quota_bytes);
	else
		bind_null(b);
	bind_int(b, (int64_t)p->reserve_bytes);
	bind_real(b, p->cores_pct);
	if (p->limit_given)
		bind_real(b, p->limit_pct);
	else
		bind_null(b);
}

static int add_device(struct store *store, int64_t row, const struct store_claim *claim,
		      unsigned place, struct error *err)
{
	struct binding b = binding_of(store, SQL_ADD_DEVICE);
	bind_int(&b, row);
	bind_int(&b, place);
	bind_text(&b, claim->uuid[place]);
	bind_promise(&b, &claim->terms.device[place].promise);
	return run_bound(store, SQL_ADD_DEVICE, &b, err);
}

static int add_devices(struct store *store, int64_t row, const struct store_claim *claim,
		       struct error *err)
{
	int r = 0;
	for (unsigned i = 0; r >= 0 && i < claim->terms.device_count; i++)
		r = add_device(store, row, claim, i, err);
	return r;
}

static int add_original(struct store *store, int64_t row, const struct store_claim *claim,
			struct error *err)
{
	int r = 0;
	for (unsigned i = 0; r >= 0 && i < claim->original_count; i++) {
		struct binding b = binding_of(store, SQL_ADD_ORIGINAL);
		bind_int(&b, row);
		bind_int(&b, i);
		bind_text(&b, on_full_name(claim->original.on_full));
		bind_promise(&b, &claim->original.promise[i]);
		bind_int(&b, claim->original.priority);
		r = run_bound(store, SQL_ADD_ORIGINAL, &b, err);
	}
	return r;
}

int store_add(struct store *store, const struct store_claim *claim, int64_t *ret_row,
	      struct error *err)
{
	const struct tenant_terms *t = &claim->terms;
	struct binding b = binding_of(store, SQL_ADD_CLAIM);
	bind_text(&b, t->claim.key);
	bind_text(&b, t->id);
	bind_text(&b, t->name);
	bind_int(&b, (int64_t)claim->made_s);
	bind_int(&b, t->uid);
	bind_int(&b, t->claim.while_wanted);
	bind_int(&b, t->claim.is_uncontrolled);
	bind_int(&b, t->priority);
	bind_text(&b, on_full_name(t->on_full));
	bind_int(&b, (int64_t)t->swap_arena_bytes);
	bind_int(&b, t->elastic);
	bind_text(&b, t->sharing.group);
	int r = run_bound(store, SQL_ADD_CLAIM, &b, err);
	if (r == -EEXIST)
		return error_set(err, EEXIST, "claim '%s', or its tenant '%s' (%s), already exists",
				 t->claim.key, t->name, t->id);
	int64_t row = sqlite3_last_insert_rowid(store->db);
	if (r >= 0)
		r = add_devices(store, row, claim, err);
	for (unsigned i = 0; r >= 0 && i < t->device_count; i++)
		r = add_slots(store, row, claim->uuid[i], &t->device[i].slots, err);
	if (r >= 0)
		r = add_original(store, row, claim, err);
	if (r >= 0)
		*ret_row = row;
	return r;
}

static int remove_parts(struct store *store, enum statement which, int64_t row, struct error *err)
{
	struct binding b = binding_of(store, which);
	bind_int(&b, row);
	return run_bound(store, which, &b, err);
}

int store_change(struct store *store, int64_t row, const struct store_claim *claim,
		 struct error *err)
{
	struct binding b = binding_of(store, SQL_CHANGE_CLAIM);
	bind_text(&b, claim->terms.claim.key);
	bind_text(&b, claim->terms.name);
	bind_int(&b, claim->terms.priority);
	bind_int(&b, claim->terms.elastic);
	bind_text(&b, on_full_name(claim->terms.on_full));
	bind_int(&b, row);
	int r = run_bound(store, SQL_CHANGE_CLAIM, &b, err);
	if (r >= 0)
		r = remove_parts(store, SQL_REMOVE_DEVICES, row, err);
	if (r >= 0)
		r = remove_parts(store, SQL_REMOVE_ORIGINAL, row, err);
	if (r >= 0)
		r = add_devices(store, row, claim, err);
	return r < 0 ? r : add_original(store, row, claim, err);
}

int store_remove(struct store *store, int64_t row, struct error *err)
{
	return remove_parts(store, SQL_REMOVE_CLAIM, row, err);
}

static int fail_corrupt(struct store *store, int64_t row, const char *what, struct error *err)
{
	return error_set(
		err, EBADMSG,
		"%s: claim in row %lld: %s: missing or out of range, so the file was changed or "
		"damaged",
		store->path, (long long)row, what);
}

static bool read_text(sqlite3_stmt *s, int column, char *ret, size_t size)
{
	const char *text = (const char *)sqlite3_column_text(s, column);
	size_t length = text ? strlen(text) : 0;
	if (!length || length >= size || length != (size_t)sqlite3_column_bytes(s, column))
		return false;
	memcpy(ret, text, length + 1);
	return true;
}

static bool read_int(sqlite3_stmt *s, int column, int64_t min, int64_t max, int64_t *ret)
{
	*ret = sqlite3_column_int64(s, column);
	return *ret >= min && *ret <= max;
}

/* The promise is in four columns, from `first`. */
static int read_promise(struct store *store, sqlite3_stmt *s, int first, int64_t row,
			struct promise *p, struct error *err)
{
	int64_t memory = 0, reserve;
	p->memory_given = sqlite3_column_type(s, first) != SQLITE_NULL;
	if (p->memory_given && !read_int(s, first, 1, INT64_MAX, &memory))
		return fail_corrupt(store, row, "device: memory_bytes", err);
	if (!read_int(s, first + 1, 0, INT64_MAX, &reserve))
		return fail_corrupt(store, row, "device: reserve_bytes", err);
	p->quota_bytes = (uint64_t)memory;
	p->reserve_bytes = (uint64_t)reserve;
	p->cores_pct = sqlite3_column_double(s, first + 2);
	p->limit_given = sqlite3_column_type(s, first + 3) != SQLITE_NULL;
	p->limit_pct = p->limit_given     ? sqlite3_column_double(s, first + 3)
		       : p->cores_pct > 0 ? p->cores_pct
					  : 100;
	if (!(p->cores_pct >= 0 && p->limit_pct >= p->cores_pct && p->limit_pct > 0 &&
	      p->limit_pct <= 100))
		return fail_corrupt(store, row, "device: shares", err);
	return 0;
}

static int read_device(struct store *store, sqlite3_stmt *s, struct store_claim *claim,
		       struct error *err)
{
	struct tenant_terms *t = &claim->terms;
	unsigned i = t->device_count;
	int64_t place;
	if (!read_int(s, 0, i, i, &place) || i >= REGION_MAX_DEVICES)
		return fail_corrupt(store, claim->row, "device: place", err);
	if (!read_text(s, 1, claim->uuid[i], sizeof(claim->uuid[i])))
		return fail_corrupt(store, claim->row, "device: GPU", err);
	int r = read_promise(store, s, 2, claim->row, &t->device[i].promise, err);
	if (r >= 0)
		t->device_count++;
	return r;
}

static int read_original(struct store *store, sqlite3_stmt *s, struct store_claim *claim,
			 struct error *err)
{
	unsigned i = claim->original_count;
	int64_t place, priority;
	char on_full[16];
	if (!read_int(s, 0, i, i, &place) || i >= claim->terms.device_count)
		return fail_corrupt(store, claim->row, "asked: place", err);
	if (!read_text(s, 1, on_full, sizeof(on_full)) ||
	    on_full_parse(on_full, &claim->original.on_full) < 0)
		return fail_corrupt(store, claim->row, "asked: on_full", err);
	if (!read_int(s, 6, -PRIORITY_STORED_MOST, PRIORITY_STORED_MOST, &priority))
		return fail_corrupt(store, claim->row, "asked: priority", err);
	claim->original.priority = (int)priority;
	int r = read_promise(store, s, 2, claim->row, &claim->original.promise[i], err);
	if (r >= 0)
		claim->original_count++;
	return r;
}

static int read_slot(struct store *store, sqlite3_stmt *s, struct store_claim *claim,
		     struct error *err)
{
	char uuid[GPU_UUID_TEXT_MAX];
	int64_t slot;
	if (!read_text(s, 0, uuid, sizeof(uuid)) || !read_int(s, 1, 0, SLOTS_MAX - 1, &slot))
		return fail_corrupt(store, claim->row, "slot", err);
	for (unsigned i = 0; i < claim->terms.device_count; i++)
		if (!strcmp(claim->uuid[i], uuid)) {
			slots_add(&claim->terms.device[i].slots, (unsigned)slot);
			return 0;
		}
	return fail_corrupt(store, claim->row, "slot: GPU", err);
}

static int read_parts(struct store *store, enum statement which, struct store_claim *claim,
		      int (*read_one)(struct store *, sqlite3_stmt *, struct store_claim *,
				      struct error *),
		      struct error *err)
{
	sqlite3_stmt *s = store->statement[which];
	int r = 0, rc;
	sqlite3_bind_int64(s, 1, claim->row);
	while ((rc = sqlite3_step(s)) == SQLITE_ROW && r >= 0)
		r = read_one(store, s, claim, err);
	if (r >= 0 && rc != SQLITE_DONE)
		r = store_fail(store, rc, err);
	sqlite3_reset(s);
	return r;
}

static int read_claim(struct store *store, sqlite3_stmt *s, struct store_claim *claim,
		      struct error *err)
{
	struct tenant_terms *t = &claim->terms;
	int64_t made, uid, wanted, uncontrolled, priority, arena, elastic;
	char on_full[16];
	claim->row = sqlite3_column_int64(s, 0);
	if (!read_text(s, 1, t->claim.key, sizeof(t->claim.key)))
		return fail_corrupt(store, claim->row, "key", err);
	if (!read_text(s, 2, t->id, sizeof(t->id)) || strlen(t->id) != TENANT_ID_MAX - 1 ||
	    strspn(t->id, "0123456789abcdef") != TENANT_ID_MAX - 1)
		return fail_corrupt(store, claim->row, "tenant", err);
	if (!read_text(s, 3, t->name, sizeof(t->name)) || parse_name(t->name, NULL) < 0)
		return fail_corrupt(store, claim->row, "name", err);
	if (!read_int(s, 4, 0, INT64_MAX, &made) || !read_int(s, 5, 0, UINT32_MAX - 1, &uid) ||
	    !read_int(s, 6, 0, 1, &wanted) || !read_int(s, 7, 0, 1, &uncontrolled) ||
	    !read_int(s, 8, -PRIORITY_STORED_MOST, PRIORITY_STORED_MOST, &priority) ||
	    !read_int(s, 10, 0, INT64_MAX, &arena) ||
	    !read_int(s, 11, ELASTIC_BY_SETTING, ELASTIC_CHOSEN_OFF, &elastic))
		return fail_corrupt(store, claim->row, "a number", err);
	if (!read_text(s, 9, on_full, sizeof(on_full)) || on_full_parse(on_full, &t->on_full) < 0)
		return fail_corrupt(store, claim->row, "on_full", err);
	/* A tenant with a group shares its card by space; other tenants take turns. */
	if (sqlite3_column_bytes(s, 12) > 0) {
		if (!read_text(s, 12, t->sharing.group, sizeof(t->sharing.group)))
			return fail_corrupt(store, claim->row, "space_group", err);
		t->sharing.way = SHARING_SPACE;
	}
	claim->made_s = (uint64_t)made;
	t->uid = (uid_t)uid;
	t->claim.while_wanted = wanted;
	t->claim.is_uncontrolled = uncontrolled;
	t->priority = (int)priority;
	t->swap_arena_bytes = (uint64_t)arena;
	t->elastic = (enum elastic_choice)elastic;
	int r = read_parts(store, SQL_READ_DEVICES, claim, read_device, err);
	if (r >= 0 && t->device_count == 0)
		r = fail_corrupt(store, claim->row, "device", err);
	if (r >= 0)
		r = read_parts(store, SQL_READ_SLOTS, claim, read_slot, err);
	if (r >= 0)
		r = read_parts(store, SQL_READ_ORIGINAL, claim, read_original, err);
	if (r >= 0 && claim->original_count && claim->original_count != t->device_count)
		r = fail_corrupt(store, claim->row, "asked: a device", err);
	return r;
}

int store_read(struct store *store, store_each each, void *data, struct error *err)
{
	sqlite3_stmt *s = store->statement[SQL_READ_CLAIMS];
	int r = 0, rc = SQLITE_DONE;
	while (r >= 0 && (rc = sqlite3_step(s)) == SQLITE_ROW) {
		struct store_claim claim = { 0 };
		r = read_claim(store, s, &claim, err);
		if (r >= 0)
			r = each(data, &claim, err);
	}
	if (r >= 0 && rc != SQLITE_DONE)
		r = store_fail(store, rc, err);
	sqlite3_reset(s);
	return r;
}
