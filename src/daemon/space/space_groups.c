#include "daemon/space/space_groups.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "daemon/space/group.h"
#include "daemon/space/threads.h"

_Static_assert(SPACE_FAULT_KINDS == MPS_FAULTS, "space_groups.h has one count for each");

#define KNOWN_MAX 1024 /* most groups of a node; a tenant that needs a further group is refused */
#define MIB (UINT64_C(1) << 20)

struct space_groups {
	struct mps_group *groups;
	bool is_closing;
	uint64_t faults[MPS_FAULTS];
};

static struct space_groups *space_of(const struct node *node)
{
	return node->space;
}

static bool is_namespaces(const char *group)
{
	return !strncmp(group, "namespace/", strlen("namespace/"));
}

/* A client's fault concerns only that client's tenant. */
static bool concerns(const struct tenant *t, const struct mps_group *group, enum mps_fault fault,
		     int pid)
{
	if (t->space != group)
		return false;
	if (fault != MPS_FAULT_CLIENT || tenant_process_of(t, pid))
		return true;
	/* Look among ended processes too: most programs end at once when their work fails. */
	for (unsigned i = 0; i < SPACE_GONE_PIDS; i++)
		if (t->gone_pid[i] == pid)
			return true;
	return false;
}

void space_note_exited(struct tenant *t, int pid, unsigned slot)
{
	if (t->space)
		t->gone_pid[t->gone_count++ % SPACE_GONE_PIDS] = pid;
}

static void report_fault(struct mps_group *group, enum mps_fault fault, int pid, const char *what)
{
	struct node *node = group->node;
	struct tenant *t;
	space_of(node)->faults[fault]++;
	log_warning_of(group->record.uid, "GPU %u: group '%s' of uid %u: %s",
		       group->record.card->index, group->record.group, (unsigned)group->record.uid,
		       what);
	TAILQ_FOREACH(t, &node->tenants, link) {
		if (!concerns(t, group, fault, pid))
			continue;
		snprintf(t->space_fault, sizeof(t->space_fault), "%s", what);
		log_warning_of(tenant_log_key(&t->terms), "tenant '%s' (%s): %s", t->terms.name,
			       t->terms.id, what);
	}
}

static void ended(struct mps_group *group)
{
	struct mps_group **link = &space_of(group->node)->groups;
	while (*link != group)
		link = &(*link)->next;
	*link = group->next;
	mps_group_free(group);
}

static int add_group(struct node *node, const struct mps_record *record, struct mps_group **ret,
		     struct error *err)
{
	struct space_groups *space = space_of(node);
	int r = mps_group_new(node, record, is_namespaces(record->group), report_fault, ended, ret,
			      err);
	if (r < 0)
		return r;
	(*ret)->next = space->groups;
	space->groups = *ret;
	return 0;
}

static void group_loaded(void *data, const struct mps_record *record)
{
	struct error err = { 0 };
	struct mps_group *group;
	if (add_group(data, record, &group, &err) < 0)
		log_warning("MPS group '%s' of the previous daemon can't be continued: %s",
			    record->group, err.text);
}

int space_open(struct node *node, struct error *err)
{
	node->space = calloc(1, sizeof(*node->space));
	if (!node->space)
		return error_set_errno(err, ENOMEM,
				       "can't start the groups that share a GPU by MPS");
	int r = mps_make_root_dir(node, err);
	if (r >= 0)
		mps_load_all(node, group_loaded, node);
	return r;
}

void space_sweep(struct node *node)
{
	for (struct mps_group *g = space_of(node)->groups, *next; g; g = next) {
		next = g->next;
		if (!g->members)
			mps_group_end(g);
	}
}

void space_keep_groups_running(struct node *node)
{
	if (node->space)
		node->space->is_closing = true;
}

void space_close(struct node *node)
{
	while (node->space && node->space->groups) {
		struct mps_group *g = node->space->groups;
		node->space->groups = g->next;
		mps_group_free(g);
	}
	free(node->space);
	node->space = NULL;
}

/* Lists the groups for space_find(). Includes groups that are ending, which keep their number and name until their end. */
static size_t list_known(const struct node *node, struct space_known list[KNOWN_MAX])
{
	size_t count = 0;
	for (const struct mps_group *g = space_of(node)->groups; g && count < KNOWN_MAX; g = g->next)
		list[count++] = (struct space_known){ .key = { .card = g->record.card->index,
							       .uid = g->record.uid,
							       .group = g->record.group },
						      .number = g->record.number };
	return count;
}

static struct mps_group *nth(const struct node *node, int place)
{
	struct mps_group *g = space_of(node)->groups;
	for (int i = 0; i < place; i++)
		g = g->next;
	return g;
}

/* Finds the existing group for these terms. If there is none, *ret is NULL and *ret_number is a new group's number. */
static int find_group(const struct node *node, const struct tenant_terms *terms,
		      struct mps_group **ret, unsigned *ret_number, struct error *err)
{
	static struct space_known list[KNOWN_MAX]; /* static because it is large */
	size_t count = list_known(node, list);
	struct space_key key = { .card = terms->device[0].card->index,
				 .uid = terms->uid,
				 .group = terms->sharing.group };
	int place;
	int r = space_find(list, count, &key, &place, ret_number, err);
	if (r < 0)
		return r;
	if (place < 0 && count == KNOWN_MAX)
		return error_set(
			err, ENOSPC,
			"group: there are %d groups already, the most that a node may have: wait "
			"until one of them has ended",
			KNOWN_MAX);
	*ret = place < 0 ? NULL : nth(node, place);
	return 0;
}

static unsigned count_processes(const struct node *node, const struct mps_group *group)
{
	const struct tenant *t;
	unsigned count = 0;
	TAILQ_FOREACH(t, &node->tenants, link)
		count += t->space == group ? t->process_count : 0;
	return count;
}

static int check_full(const struct node *node, const struct mps_group *group, struct error *err)
{
	if (count_processes(node, group) < node->config.mps_clients)
		return 0;
	return error_set(err, ENOSPC,
			 "group: '%s' has %u processes on GPU %u, the most that one MPS server "
			 "takes (mps_clients): wait for one to end, or name another group",
			 group->record.group, node->config.mps_clients, group->record.card->index);
}

int space_read_request(const json_t *request, struct sharing_request *ret, struct error *err)
{
	struct sharing_request wanted = { 0 };
	const char *way = NULL, *group = NULL;
	bool is_space = false;
	int r = json_read_string(request, "sharing", &way, err);
	wanted.has_way = r > 0;
	if (r > 0 && parse_sharing(way, &is_space, err) < 0)
		return error_add(err, -EINVAL, "sharing");
	wanted.way = is_space ? SHARING_SPACE : SHARING_TIME;
	if (r >= 0)
		r = json_read_string(request, "group", &group, err);
	if (r < 0)
		return r;
	if (r > 0 && (!*group || strlen(group) >= sizeof(wanted.group)))
		return error_set(err, EINVAL, "group: '%.20s': must have 1 to %d characters", group,
				 SPACE_NAME_MAX - 1);
	if (r > 0)
		strcpy(wanted.group, group);
	*ret = wanted;
	return 0;
}

int space_choose(struct node *node, const struct sharing_request *wanted,
		 const char *namespace_name, struct tenant_terms *terms, struct error *err)
{
	char program[PATHS_MAX];
	struct error missing = { 0 };
	struct mps_group *group;
	unsigned number;
	const struct promise *p = &terms->device[0].promise;
	bool has_mps = mps_find_program(node->simulated, program, &missing) >= 0;
	struct sharing_facts facts = {
		.setting = node->config.sharing,
		.uid = terms->uid,
		.namespace_name = namespace_name,
		.device_count = terms->device_count,
		.limit_pct = p->limit_pct,
		.sms = terms->device[0].card->info.sms,
		.is_movable = terms->on_full == ON_FULL_SWAP,
		.has_leases = node->config.arbiter.policy == ARBITER_POLICY_LEASE,
		.missing = has_mps ? NULL : missing.text,
	};
	int r = sharing_choose(wanted, &facts, &terms->sharing, err);
	if (r < 0 || terms->sharing.way != SHARING_SPACE)
		return r;
	r = find_group(node, terms, &group, &number, err);
	return r >= 0 && group ? check_full(node, group, err) : r;
}

static struct mps_threads threads_of(const struct tenant *t)
{
	const struct tenant_device_terms *d = &t->terms.device[0];
	return mps_threads_for(d->promise.limit_pct, d->card->info.sms);
}

static int join_group(struct tenant *t, struct error *err)
{
	struct mps_record record = { .card = t->terms.device[0].card, .uid = t->terms.uid };
	struct mps_group *group;
	int r = find_group(t->node, &t->terms, &group, &record.number, err);
	if (r >= 0 && !group) {
		snprintf(record.id, sizeof(record.id), "%u-%u", record.card->index, record.number);
		strcpy(record.group, t->terms.sharing.group);
		r = add_group(t->node, &record, &group, err);
	}
	if (r < 0)
		return r;
	t->space = group;
	group->members++;
	r = lessee_set_space_group(t->device[0].lessee, group->record.number,
				   threads_of(t).part_pct);
	if (r < 0)
		return error_set_errno(err, -r, "group '%s'", group->record.group);
	return mps_group_start(group, err);
}

static int join(struct tenant *tenant, bool is_new, struct error *err)
{
	if (tenant->terms.sharing.way != SHARING_SPACE)
		return 0;
	int r = join_group(tenant, err);
	if (r < 0 && is_new)
		space_leave(tenant);
	return r;
}

/* An earlier daemon's tenant that cannot join its group stays, since its processes may run; space_fault says why. */
int space_tenant_added(struct tenant *tenant, bool is_new, struct error *err)
{
	struct error why = { 0 };
	int r = join(tenant, is_new, is_new ? err : &why);
	if (r >= 0 || is_new)
		return r;
	log_warning("tenant '%s' (%s): %s", tenant->terms.name, tenant->terms.id, why.text);
	snprintf(tenant->space_fault, sizeof(tenant->space_fault), "%.*s", SPACE_FAULT_MAX - 1,
		 why.text);
	return 0;
}

void space_leave(struct tenant *tenant)
{
	struct mps_group *group = tenant->space;
	if (!group)
		return;
	tenant->space = NULL;
	if (space_of(tenant->node)->is_closing)
		return;
	if (--group->members == 0)
		mps_group_end(group);
}

bool space_is_starting(const struct tenant *tenant)
{
	return tenant->space && mps_group_is_starting(tenant->space);
}

int space_check_process(const struct tenant *tenant, struct error *err)
{
	const struct mps_group *g = tenant->space;
	if (tenant->terms.sharing.way != SHARING_SPACE)
		return 0;
	if (!g || g->state == MPS_FAILED || g->state == MPS_OFF)
		return error_set(err, EHOSTDOWN, "MPS: %s",
				 g && *g->why
					 ? g->why
					 : "does not run for this group: allotd's log says why");
	return check_full(tenant->node, g, err);
}

bool space_is_client(const struct tenant *tenant)
{
	return tenant->terms.sharing.way == SHARING_SPACE;
}

bool space_pipe_dir(const struct tenant *tenant, char path[NODE_PATH_MAX])
{
	if (tenant->space)
		mps_path(tenant->node, tenant->space->record.id, "/pipe", path);
	return tenant->space != NULL;
}

/* The limits apply from a process's first context on: a running process keeps its limits, even if they are raised. */
int space_each_variable(const struct tenant *t, const char *pipe_dir, space_add add, void *data)
{
	const struct promise *p = &t->terms.device[0].promise;
	char text[64];
	if (!t->space)
		return 0;
	int r = add(data, "CUDA_MPS_PIPE_DIRECTORY", pipe_dir);
	snprintf(text, sizeof(text), "%g", threads_of(t).pct);
	if (r >= 0)
		r = add(data, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", text);
	/* MPS has two priorities, 0 (higher) and 1. */
	if (r >= 0)
		r = add(data, "CUDA_MPS_CLIENT_PRIORITY", t->terms.priority > 0 ? "0" : "1");
	/* Device 0 is the only card that the client sees. */
	snprintf(text, sizeof(text), "0=%" PRIu64 "M", (p->quota_bytes + MIB - 1) / MIB);
	if (r >= 0 && p->memory_given)
		r = add(data, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", text);
	return r;
}

static int add_variable(void *data, const char *name, const char *value)
{
	return json_object_set_new(data, name, json_string(value));
}

void space_describe(const struct tenant *t, json_t *reply)
{
	char path[NODE_PATH_MAX];
	json_object_set_new(reply, "sharing", json_string(sharing_way_name(t->terms.sharing.way)));
	if (!space_pipe_dir(t, path))
		return;
	json_t *environment = json_object();
	space_each_variable(t, path, add_variable, environment);
	json_object_set_new(reply, "environment", environment);
	json_object_set_new(reply, "space", space_to_json(t));
}

json_t *space_to_json(const struct tenant *t)
{
	const struct mps_group *g = t->space;
	if (!g)
		return json_null();
	return json_pack("{s:s, s:i, s:s, s:s*, s:i, s:o}", "group", g->record.group, "number",
			 (int)g->record.number, "state", mps_state_name(g->state), "why",
			 *g->why ? g->why : NULL, "tenants", (int)g->members, "fault",
			 *t->space_fault ? json_string(t->space_fault) : json_null());
}

const char *space_fault_name(unsigned kind)
{
	return mps_fault_name((enum mps_fault)kind);
}

struct space_figures space_figures(const struct node *node)
{
	struct space_figures f = { 0 };
	for (unsigned i = 0; i < MPS_FAULTS; i++)
		f.faults[i] = space_of(node)->faults[i];
	for (const struct mps_group *g = space_of(node)->groups; g; g = g->next) {
		f.groups++;
		f.tenants += g->members;
	}
	return f;
}
