#include "daemon/containers/claims/injection.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/install.h"
#include "daemon/containers/claims/claims.h"
#include "daemon/containers/claims/claims_inside.h"
#include "daemon/space/space_groups.h"
#include "kube/hami/priority.h"

#define MIB (UINT64_C(1) << 20)
#define SIM_DIR "/run/allot/sim"
#define SIM_SOCKET "/run/allot/sim.sock"

static int no_memory(struct error *err)
{
	return error_set_errno(err, ENOMEM, "can't list a container's mounts and variables");
}

/* Returns the list with room for one more element, zeroed; the caller increments *count. Returns NULL if out of memory. */
static void *grow(void *list, size_t *count, size_t size)
{
	char *grown = realloc(list, (*count + 1) * size);
	if (grown)
		memset(grown + *count * size, 0, size);
	return grown;
}

static int add_env(struct injection *in, struct error *err, const char *name, const char *format,
		   ...) __attribute__((format(printf, 4, 5)));

static int add_env(struct injection *in, struct error *err, const char *name, const char *format,
		   ...)
{
	struct injection_env *list = grow(in->env, &in->env_count, sizeof(*list));
	va_list arguments;
	if (!list)
		return no_memory(err);
	in->env = list;
	struct injection_env *e = &list[in->env_count++];
	va_start(arguments, format);
	if (vasprintf(&e->value, format, arguments) < 0)
		e->value = NULL;
	va_end(arguments);
	e->name = strdup(name);
	return e->name && e->value ? 0 : no_memory(err);
}

static int add_path(struct injection_path **list, size_t *count, const char *container,
		    const char *host, bool is_read_only, struct error *err)
{
	struct injection_path *grown = grow(*list, count, sizeof(*grown));
	if (!grown)
		return no_memory(err);
	*list = grown;
	struct injection_path *p = &grown[(*count)++];
	*p = (struct injection_path){ strdup(container), strdup(host), is_read_only };
	return p->container_path && p->host_path ? 0 : no_memory(err);
}

static int add_mount(struct injection *in, const char *container, const char *host,
		     struct error *err)
{
	return add_path(&in->mount, &in->mount_count, container, host, true, err);
}

static int add_node(struct injection *in, const char *dev, const char *leaf, struct error *err)
{
	char host[PATHS_MAX], container[PATHS_MAX];
	struct stat st;
	snprintf(host, sizeof(host), "%s/%s", dev, leaf);
	snprintf(container, sizeof(container), "/dev/%s", leaf);
	if (stat(host, &st) < 0 || !S_ISCHR(st.st_mode))
		return 0;
	return add_path(&in->device, &in->device_count, container, host, false, err);
}

static void free_paths(struct injection_path *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(list[i].container_path);
		free(list[i].host_path);
	}
	free(list);
}

void injection_free(struct injection *in)
{
	for (size_t i = 0; i < in->env_count; i++) {
		free(in->env[i].name);
		free(in->env[i].value);
	}
	free(in->env);
	free_paths(in->mount, in->mount_count);
	free_paths(in->device, in->device_count);
	*in = (struct injection){ 0 };
}

static int add_cap(struct injection *in, unsigned minor, const char *dev, struct error *err)
{
	char leaf[48];
	snprintf(leaf, sizeof(leaf), "nvidia-caps/nvidia-cap%u", minor);
	return add_node(in, dev, leaf, err);
}

/* Adds the card's device node and, for a MIG instance, its two capability nodes. */
static int add_card(struct injection *in, const struct gpu_info *info, const char *dev,
		    struct error *err)
{
	char leaf[32];
	if (!info->minor_known)
		return 0;
	snprintf(leaf, sizeof(leaf), "nvidia%u", info->minor);
	int r = add_node(in, dev, leaf, err);
	if (r >= 0 && info->caps.is_known)
		r = add_cap(in, info->caps.gpu_instance, dev, err);
	if (r >= 0 && info->caps.is_known)
		r = add_cap(in, info->caps.compute_instance, dev, err);
	return r;
}

int injection_add_nodes(struct injection *in, const struct tenant_terms *terms, const char *dev,
			struct error *err)
{
	/* Every CUDA program needs these. nvidia-modeset (graphics) and mig-config (changes MIG) are omitted. */
	static const char *const common[] = { "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools" };
	int r = 0;
	for (size_t i = 0; r >= 0 && i < sizeof(common) / sizeof(common[0]); i++)
		r = add_node(in, dev, common[i], err);
	for (unsigned i = 0; r >= 0 && i < terms->device_count; i++)
		r = add_card(in, &terms->device[i].card->info, dev, err);
	return r;
}

/* HAMi-core's variables, for tools that display them: liballot.so reads none. A running container keeps their values. */
static int add_hami(struct injection *in, const struct tenant_terms *terms, struct error *err)
{
	int r = 0;
	for (unsigned i = 0; r >= 0 && i < terms->device_count; i++) {
		const struct promise *p = &terms->device[i].promise;
		char name[48];
		if (!p->memory_given)
			continue;
		snprintf(name, sizeof(name), "CUDA_DEVICE_MEMORY_LIMIT_%u", i);
		r = add_env(in, err, name, "%" PRIu64 "m", p->quota_bytes / MIB);
	}
	/* HAMi has one limit for all devices, in whole percent: use the limit of the first device. */
	if (r >= 0 && terms->device[0].promise.limit_pct < 100)
		r = add_env(in, err, "CUDA_DEVICE_SM_LIMIT", "%.0f",
			    terms->device[0].promise.limit_pct);
	if (r >= 0 && terms->on_full == ON_FULL_SWAP)
		r = add_env(in, err, "CUDA_OVERSUBSCRIBE", "true");
	if (r >= 0)
		r = add_env(in, err, KUBE_PRIORITY_ENV, "%s", priority_env_text(terms->priority));
	return r;
}

static int add_preload(struct injection *in, const struct library *library, struct error *err)
{
	char host[PATHS_MAX], container[PATHS_MAX];
	snprintf(container, sizeof(container), "%s/%s", INJECTION_LIBRARY_DIR, library->name);
	snprintf(host, sizeof(host), "%s/ld.so.preload", library->dir);
	int r = add_mount(in, container, library->dir, err);
	return r < 0 ? r : add_mount(in, INJECTION_PRELOAD, host, err);
}

/* Sets the variable in which NVIDIA's container toolkit reads the cards' UUIDs. */
static int add_visible(struct injection *in, const struct tenant_terms *terms, struct error *err)
{
	char list[REGION_MAX_DEVICES * GPU_UUID_TEXT_MAX] = "";
	for (unsigned i = 0; i < terms->device_count; i++) {
		size_t n = strlen(list);
		snprintf(list + n, sizeof(list) - n, "%s%s", i ? "," : "",
			 terms->device[i].card->info.uuid_text);
	}
	return add_env(in, err, "NVIDIA_VISIBLE_DEVICES", "%s", list);
}

static int check_mirror(struct trust *trust, const char *dir, struct error *err)
{
	char path[PATHS_MAX];
	struct stat st;
	snprintf(path, sizeof(path), "%s/lib64/liballot.so", dir);
	if (*dir != '/')
		return error_set(err, EINVAL,
				 "container_driver: '%s': must be toolkit, or the full path of a "
				 "directory that allot mirror made",
				 dir);
	if (stat(path, &st) < 0)
		return error_set(err, ENOENT,
				 "container_driver: %s: no mirror: there is no %s; make it with "
				 "allot mirror",
				 dir, path);
	return trust_check(trust, path, err);
}

/* NVIDIA's images have this directory in LD_LIBRARY_PATH. Setting that variable here would replace the image's value. */
static int add_mirror(struct injection *in, struct trust *trust, const char *dir, struct error *err)
{
	int r = check_mirror(trust, dir, err);
	if (r >= 0)
		r = add_mount(in, INJECTION_MIRROR_DIR, dir, err);
	return r < 0 ? r : add_env(in, err, "NVIDIA_VISIBLE_DEVICES", "void");
}

/* All simulated cards are behind one socket, so only liballot.so restricts a container to its own cards. */
static int add_sim(struct injection *in, const struct node *node, const struct tenant_terms *terms,
		   struct error *err)
{
	char path[PATHS_MAX], list[REGION_MAX_DEVICES * 4] = "";
	int r = install_find(INSTALL_SIM_CUDA, path, err);
	if (r < 0)
		return r;
	*strrchr(path, '/') = '\0';
	for (unsigned i = 0; i < terms->device_count; i++) {
		size_t n = strlen(list);
		snprintf(list + n, sizeof(list) - n, "%s%u", i ? "," : "", i);
	}
	r = add_mount(in, SIM_DIR, path, err);
	if (r >= 0)
		r = add_mount(in, SIM_SOCKET, node->sim_socket, err);
	if (r >= 0)
		r = add_env(in, err, "LD_LIBRARY_PATH", "%s", SIM_DIR);
	if (r >= 0)
		r = add_env(in, err, "ALLOT_SIM_SOCKET", "%s", SIM_SOCKET);
	if (r >= 0)
		r = add_env(in, err, "CUDA_VISIBLE_DEVICES", "%s", list);
	return r;
}

static bool is_mirrored(const struct node *node)
{
	return !node->simulated && strcmp(node->config.container_driver, "toolkit") != 0;
}

static int find_source(const struct claims *claims, char ret_path[PATHS_MAX], struct error *err)
{
	const char *setting = claims->node->config.container_library;
	if (!strcmp(setting, "auto"))
		return install_find(INSTALL_LIBRARY, ret_path, err);
	snprintf(ret_path, PATHS_MAX, "%s", setting);
	return 0;
}

static int install(struct claims *claims, struct error *err)
{
	char path[PATHS_MAX];
	int r = find_source(claims, path, err);
	if (r >= 0)
		r = trust_check(claims->trust, path, err);
	if (r >= 0)
		r = state_dir_make(claims->node, claims->dir, err);
	if (r >= 0)
		r = library_install(path, claims->dir, &claims->library, err);
	return r == -EBADMSG ? trust_refuse(claims->trust, err) : r;
}

static void copy_path(const struct claims *claims, char ret[STATE_DIR_MAX + LIBRARY_NAME_MAX + 32])
{
	snprintf(ret, STATE_DIR_MAX + LIBRARY_NAME_MAX + 32, "%s/" TRUST_LIBRARY,
		 claims->library.dir);
}

int claims_install_library(struct claims *claims, struct error *err)
{
	char copy[STATE_DIR_MAX + LIBRARY_NAME_MAX + 32];
	copy_path(claims, copy);
	/* Check on every call, since the manifest may have changed. If the copy is rejected, a newer file may be accepted. */
	if (*claims->library.name && trust_is_good(claims->trust, copy))
		return 0;
	claims->library.name[0] = '\0';
	int r = install(claims, err);
	copy_path(claims, copy);
	return r < 0 ? r : trust_check(claims->trust, copy, err);
}

int claims_prepare_library(struct claims *claims, struct error *err)
{
	return is_mirrored(claims->node) ? 0 : claims_install_library(claims, err);
}

int claims_check_library(struct claims *claims, struct error *err)
{
	const struct node *node = claims->node;
	char path[PATHS_MAX];
	if (is_mirrored(node))
		return check_mirror(claims->trust, node->config.container_driver, err);
	int r = find_source(claims, path, err);
	return r < 0 ? r : trust_check(claims->trust, path, err);
}

struct adding {
	struct injection *in;
	struct error *err;
};

static int add_variable(void *data, const char *name, const char *value)
{
	const struct adding *a = data;
	return add_env(a->in, a->err, name, "%s", value);
}

/* Mounts the MPS pipe directory of the tenant's group, and sets CUDA's variables for it. CUDA's MPS client writes there. */
static int add_space(struct injection *in, const struct tenant *tenant, struct error *err)
{
	struct adding adding = { in, err };
	char path[NODE_PATH_MAX];
	if (!space_pipe_dir(tenant, path))
		return 0;
	int r = add_path(&in->mount, &in->mount_count, INJECTION_PIPE_DIR, path, false, err);
	return r < 0 ? r : space_each_variable(tenant, INJECTION_PIPE_DIR, add_variable, &adding);
}

static int add_control(struct claims *claims, const struct claim *claim, struct injection *in,
		       struct error *err)
{
	char socket_dir[NODE_PATH_MAX];
	tenant_path(claim->tenant, NULL, socket_dir);
	int r = add_mount(in, INJECTION_SOCKET_DIR, socket_dir, err);
	if (r >= 0)
		r = add_env(in, err, "ALLOT_SOCKET", "%s/allot.sock", INJECTION_SOCKET_DIR);
	if (r >= 0)
		r = add_hami(in, claim_terms(claim), err);
	if (r >= 0)
		r = add_space(in, claim->tenant, err);
	if (r >= 0)
		r = claims_prepare_library(claims, err);
	if (r >= 0 && !is_mirrored(claims->node))
		r = add_preload(in, &claims->library, err);
	return r;
}

static int fill(struct claims *claims, const struct claim *claim, struct injection *in,
		struct error *err)
{
	const struct tenant_terms *terms = claim_terms(claim);
	const struct node *node = claims->node;
	const char *driver = node->config.container_driver;
	int r = 0;
	if (!terms->claim.is_uncontrolled)
		r = add_control(claims, claim, in, err);
	if (r < 0)
		return r;
	if (node->simulated)
		return add_sim(in, node, terms, err);
	r = is_mirrored(node) ? add_mirror(in, claims->trust, driver, err)
			      : add_visible(in, terms, err);
	return r < 0 ? r : injection_add_nodes(in, terms, "/dev", err);
}

int injection_make(struct claims *claims, const struct claim *claim, struct injection *ret,
		   struct error *err)
{
	struct injection in = { 0 };
	int r = claim_check_in_force(claim, err);
	if (r < 0)
		return r;
	r = fill(claims, claim, &in, err);
	if (r < 0) {
		injection_free(&in);
		return error_add(err, r, "claim '%s'", claim_terms(claim)->claim.key);
	}
	*ret = in;
	return 0;
}

json_t *injection_to_json(const struct injection *in)
{
	json_t *env = json_array(), *mounts = json_array(), *nodes = json_array();
	for (size_t i = 0; i < in->env_count; i++)
		json_array_append_new(env, json_pack("{s:s, s:s}", "name", in->env[i].name, "value",
						     in->env[i].value));
	for (size_t i = 0; i < in->mount_count; i++)
		json_array_append_new(mounts, json_pack("{s:s, s:s, s:b}", "container_path",
							in->mount[i].container_path, "host_path",
							in->mount[i].host_path, "read_only",
							in->mount[i].is_read_only));
	for (size_t i = 0; i < in->device_count; i++)
		json_array_append_new(nodes, json_pack("{s:s, s:s}", "container_path",
						       in->device[i].container_path, "host_path",
						       in->device[i].host_path));
	return json_pack("{s:o, s:o, s:o}", "env", env, "mounts", mounts, "device_nodes", nodes);
}
