#include "daemon/space/programs.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/util/procfs.h"
#include "daemon/util/state_file.h"

#define FILE_VERSION 1
#define MOST_BYTES (1 << 20)
#define SAVE_DELAY_NS (10 * NSEC_PER_SEC)
#define MOST_S 1e9 /* of any sum: what is more was not written by us */

struct program {
	char key[PROGRAM_KEY_MAX];
	struct gain_record record;
	int64_t seen_s; /* wall clock */
};

struct programs {
	struct program list[PROGRAMS_MAX];
	unsigned count;
	struct loop_source *save_timer;
	bool unsaved, save_failed;
};

/* ---- names ---- */

static bool is_of(const char *text, size_t length, const char *letters)
{
	for (size_t i = 0; i < length; i++)
		if (!memchr(letters, text[i], strlen(letters)))
			return false;
	return true;
}

/* What is made up for a pod: of letters that make no words, 5 for each, up to 10 for a Deployment's template. */
static bool is_made_up(const char *suffix, size_t length)
{
	static const char letters[] = "bcdfghjklmnpqrstvwxz2456789", hex[] = "0123456789abcdef";
	if (length == 5 || (length >= 8 && length <= 10))
		if (is_of(suffix, length, letters))
			return true;
	/* An id that was added to a name that another has. */
	return length == 8 && is_of(suffix, length, hex);
}

/* The length of `name`, `length` long, without suffixes that were made up. */
static size_t base_length(const char *name, size_t length)
{
	for (size_t i = length; i > 1; i--)
		if (name[i - 1] == '-') {
			if (!is_made_up(name + i, length - i))
				break;
			length = i - 1;
		}
	return length;
}

/* "default.web-7d9f4c8b5-x2x7k.main": "default.web.main". */
static void name_base(const char *name, char *ret, size_t size)
{
	size_t n = 0;
	for (const char *part = name; *part && n + 1 < size;) {
		size_t length = strcspn(part, "."), base = base_length(part, length);
		n += (size_t)snprintf(ret + n, size - n, "%s%.*s", part > name ? "." : "",
				      (int)base, part);
		part += length + (part[length] == '.');
	}
	ret[n < size ? n : size - 1] = '\0';
}

static uint64_t hash_command(int pid)
{
	char text[4096];
	uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
	ssize_t n = procfs_read(pid, "cmdline", text, sizeof(text));
	for (ssize_t i = 0; i < n; i++)
		hash = (hash ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
	return hash;
}

void program_key(const char *namespace_name, uid_t uid, const char *name, int pid,
		 char ret[PROGRAM_KEY_MAX])
{
	char base[SPACE_NAME_MAX];
	if (*namespace_name) {
		name_base(name, base, sizeof(base));
		snprintf(ret, PROGRAM_KEY_MAX, "namespace/%.64s/%s", namespace_name, base);
	} else if (pid) {
		snprintf(ret, PROGRAM_KEY_MAX, "user/%u/command/%016llx", (unsigned)uid,
			 (unsigned long long)hash_command(pid));
	} else {
		snprintf(ret, PROGRAM_KEY_MAX, "user/%u/%.63s", (unsigned)uid, name);
	}
}

/* ---- the list ---- */

static struct program *find(struct programs *p, const char *key)
{
	for (unsigned i = 0; p && i < p->count; i++)
		if (!strcmp(p->list[i].key, key))
			return &p->list[i];
	return NULL;
}

const struct gain_record *programs_find(const struct node *node, const char *key)
{
	const struct program *found = find(node->programs, key);
	return found ? &found->record : NULL;
}

static struct program *take_place(struct programs *p)
{
	struct program *oldest = &p->list[0];
	if (p->count < PROGRAMS_MAX)
		return &p->list[p->count++];
	for (unsigned i = 1; i < p->count; i++)
		if (p->list[i].seen_s < oldest->seen_s)
			oldest = &p->list[i];
	return oldest;
}

struct gain_record *programs_record(struct node *node, const char *key)
{
	struct program *found = find(node->programs, key);
	if (!found) {
		found = take_place(node->programs);
		*found = (struct program){ 0 };
		snprintf(found->key, sizeof(found->key), "%s", key);
	}
	found->seen_s = (int64_t)time(NULL);
	return &found->record;
}

/* ---- the file ---- */

static void find_path(const struct node *node, char path[NODE_PATH_MAX])
{
	snprintf(path, NODE_PATH_MAX, "%s/programs.json", node->run_dir);
}

static json_t *program_to_json(const struct program *p)
{
	const struct gain_record *r = &p->record;
	return json_pack("{s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:I, s:b}", "key", p->key,
			 "seen_at_s", (json_int_t)p->seen_s, "busy_s", r->busy_s, "pause_s",
			 r->pause_s, "filled_s", r->filled_s, "done_s", r->done_s, "turns_s",
			 r->turns_s, "measured_at_s", (json_int_t)r->measured_at_s, "takes_turns",
			 r->takes_turns);
}

static int save(struct node *node, struct error *err)
{
	char path[NODE_PATH_MAX];
	json_t *list = json_array();
	for (unsigned i = 0; i < node->programs->count; i++)
		json_array_append_new(list, program_to_json(&node->programs->list[i]));
	cleanup_json json_t *json = json_pack("{s:i, s:o}", "version", FILE_VERSION, "programs",
					      list);
	find_path(node, path);
	/* Not synced: after a crash of the machine the programs are measured anew. */
	return state_file_write(path, json, JSON_COMPACT, MOST_BYTES, false, err);
}

static void save_due(void *data, uint32_t events)
{
	struct node *node = data;
	struct programs *p = node->programs;
	struct error err = { 0 };
	p->unsaved = false;
	int r = save(node, &err);
	if (r < 0 && !p->save_failed)
		log_error("%s (what is known of programs is kept in memory; trying on)", err.text);
	p->save_failed = r < 0;
	if (r < 0)
		programs_changed(node);
}

void programs_changed(struct node *node)
{
	if (!node->programs->unsaved && node->programs->save_timer)
		loop_arm(node->programs->save_timer, SAVE_DELAY_NS, 0);
	node->programs->unsaved = true;
}

static int read_sum(const json_t *json, const char *key, double *ret, struct error *err)
{
	if (json_read_number(json, key, ret, err) > 0 && *ret >= 0 && *ret <= MOST_S)
		return 0;
	return error_set(err, EINVAL, "%s: missing or wrong", key);
}

static int program_from_json(const json_t *json, struct program *ret, struct error *err)
{
	struct program p = { 0 };
	struct gain_record *r = &p.record;
	const struct {
		const char *key;
		double *value;
	} sums[] = { { "busy_s", &r->busy_s },
		     { "pause_s", &r->pause_s },
		     { "filled_s", &r->filled_s },
		     { "done_s", &r->done_s },
		     { "turns_s", &r->turns_s } };
	const char *key = NULL;
	if (json_read_string(json, "key", &key, err) <= 0 || strlen(key) >= sizeof(p.key) ||
	    json_read_int(json, "seen_at_s", 0, INT64_MAX / 2, &p.seen_s, err) <= 0 ||
	    json_read_int(json, "measured_at_s", 0, INT64_MAX / 2, &r->measured_at_s, err) <= 0 ||
	    json_read_bool(json, "takes_turns", &r->takes_turns, err) <= 0)
		return error_set(err, EINVAL, "a value is missing or wrong");
	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
		int e = read_sum(json, sums[i].key, sums[i].value, err);
		if (e < 0)
			return e;
	}
	strcpy(p.key, key);
	*ret = p;
	return 0;
}

static int from_json(struct programs *p, const json_t *root, struct error *err)
{
	json_t *list = NULL;
	int64_t version = 0;
	int r = json_read_int(root, "version", FILE_VERSION, FILE_VERSION, &version, err);
	if (r <= 0 || json_read_array(root, "programs", &list, err) <= 0)
		return error_set(err, EINVAL, "version or programs: missing or wrong");
	for (size_t i = 0; i < json_array_size(list) && i < PROGRAMS_MAX; i++) {
		r = program_from_json(json_array_get(list, i), &p->list[i], err);
		if (r < 0)
			return error_add(err, r, "programs[%zu]", i);
		p->count = (unsigned)i + 1;
	}
	return 0;
}

static void load(struct node *node)
{
	char path[NODE_PATH_MAX];
	struct error err = { 0 };
	cleanup_json json_t *root = NULL;
	find_path(node, path);
	int r = state_file_read(path, MOST_BYTES, &root, &err);
	if (r == -ENOENT)
		return;
	if (r >= 0) {
		r = from_json(node->programs, root, &err);
		if (r < 0)
			error_add(&err, r, "%s", path);
	}
	if (r >= 0)
		return;
	node->programs->count = 0;
	int moved = state_file_set_aside(path);
	log_warning("%s; it is set aside as programs.json.bad%s%s: programs are measured anew",
		    err.text, moved < 0 ? ", which failed: " : "",
		    moved < 0 ? strerror(-moved) : "");
}

/* ---- its life ---- */

int programs_open(struct node *node, struct error *err)
{
	struct programs *p = node->programs = calloc(1, sizeof(*p));
	if (!p)
		return error_set_errno(err, ENOMEM, "programs");
	load(node);
	int r = loop_add_timer(node->loop, save_due, node, &p->save_timer);
	return r < 0 ? error_set_errno(err, -r, "timer") : 0;
}

void programs_close(struct node *node)
{
	struct programs *p = node->programs;
	struct error err = { 0 };
	if (!p)
		return;
	if (p->unsaved && save(node, &err) < 0)
		log_warning("%s", err.text);
	loop_remove(p->save_timer);
	free(p);
	node->programs = NULL;
}
