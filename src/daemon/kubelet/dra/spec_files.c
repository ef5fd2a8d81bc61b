#include "daemon/kubelet/dra/spec_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cdi/cdi_spec.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/containers/claims/claims.h"
#include "daemon/containers/claims/injection.h"
#include "daemon/kubelet/devices/dra_key.h"

#define BEFORE "allot.dev-claim_"
#define LEAF_MAX 128

void spec_file_id(const char *uid, char ret_id[DRA_CDI_ID_MAX])
{
	snprintf(ret_id, DRA_CDI_ID_MAX, DRA_CDI_KIND "=%s", uid);
}

static void make_leaf(const char *uid, char ret[LEAF_MAX])
{
	snprintf(ret, LEAF_MAX, BEFORE "%s.json", uid);
}

static int make_path(const char *dir, const char *uid, char ret_path[PATHS_MAX], struct error *err)
{
	char leaf[LEAF_MAX];
	make_leaf(uid, leaf);
	return paths_join(dir, leaf, ret_path, PATHS_MAX, err);
}

/* If the file has this spec, it is not written again, so that a full disk does not fail a claim that was prepared before. */
static bool is_written(const char *path, const json_t *spec)
{
	json_t *has = json_load_file(path, 0, NULL);
	bool is_same = has && json_equal(has, spec);
	json_decref(has);
	return is_same;
}

int spec_file_write(const char *dir, struct claims *claims, const struct claim *claim,
		    const char *uid, struct error *err)
{
	cleanup_injection struct injection injection = { 0 };
	cleanup_json json_t *spec = NULL, *inject = NULL;
	char path[PATHS_MAX];
	int r = make_path(dir, uid, path, err);
	if (r >= 0)
		r = injection_make(claims, claim, &injection, err);
	if (r < 0)
		return r;
	inject = injection_to_json(&injection);
	r = cdi_spec_make(DRA_CDI_KIND, uid, inject, &spec, err);
	return r < 0 || is_written(path, spec) ? r : cdi_spec_write(dir, path, spec, err);
}

int spec_file_remove(const char *dir, const char *uid, struct error *err)
{
	char path[PATHS_MAX];
	int r = make_path(dir, uid, path, err);
	if (r < 0)
		return r;
	if (unlink(path) < 0 && errno != ENOENT)
		return error_set_errno(err, errno, "%s", path);
	return 0;
}

static bool is_of_claim(struct claims *claims, const char *leaf)
{
	for (struct claim *c = claims_first(claims); c; c = claims_next(c)) {
		struct dra_key key;
		char own[LEAF_MAX];
		if (!dra_key_parse(claim_terms(c)->claim.key, &key))
			continue;
		make_leaf(key.name.uid, own);
		if (!strcmp(own, leaf))
			return true;
	}
	return false;
}

void spec_files_restore(const char *dir, struct claims *claims)
{
	for (struct claim *c = claims_first(claims); c; c = claims_next(c)) {
		struct dra_key key;
		struct error err = { 0 };
		if (c->tenant && dra_key_parse(claim_terms(c)->claim.key, &key) &&
		    spec_file_write(dir, claims, c, key.name.uid, &err) < 0)
			log_warning("DRA: tenant '%s': its CDI spec can't be written: %s; its "
				    "container can't start",
				    claim_terms(c)->name, err.text);
	}
}

void spec_files_sweep(const char *dir, struct claims *claims)
{
	cleanup_dir DIR *list = opendir(dir);
	for (struct dirent *e; list && (e = readdir(list));)
		if (!strncmp(e->d_name, BEFORE, strlen(BEFORE)) && !is_of_claim(claims, e->d_name) &&
		    unlinkat(dirfd(list), e->d_name, 0) < 0 && errno != ENOENT)
			log_warning("DRA: %s/%s can't be removed: %s; allotd knows no ResourceClaim for "
				    "this CDI spec",
				    dir, e->d_name, strerror(errno));
}
