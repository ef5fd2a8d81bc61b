#include "daemon/util/container.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#define HEX_LEAST 12 /* least number of digits of an id after an engine's prefix */
/* digits of a whole id, in all four engines */
#define HEX_WHOLE 64

enum id_kind {
	ID_HEX,   /* at least HEX_LEAST digits */
	ID_WHOLE, /* HEX_WHOLE digits */
	ID_NAME,  /* any name: containerd's ids may be words */
};

/* One form of the path of a container's cgroup. A part of a path is the text between two slashes. */
struct pattern {
	const char *engine;
	/* text with which the part before the id's part begins (for ID_NAME: its whole text); NULL: any */
	const char *parent;
	bool is_inside; /* `before`, the text before the id, may stand anywhere in the part */
	const char *before, *after;
	enum id_kind id;
};

/*
 * The known forms. systemd's driver turns runc's "slice:prefix:id" into "<slice>/<prefix>-<id>.scope" (runc, docs/systemd.md).
 * With runc's cgroupfs driver, that string is itself one part of the path. Further sources are, for Docker: docs.docker.com,
 * "Runtime metrics", "Find the cgroup for a given container"; containerd's CRI: internal/cri/server/podsandbox/helpers.go,
 * getCgroupsPath; CRI-O: crio.conf(5), cgroup_manager; podman: podman-run(1), --cgroup-parent, and libpod's
 * container_internal_linux.go. The engines' monitor processes ("crio-conmon-<id>.scope", "libpod-conmon-<id>.scope") match no
 * row, because "conmon-<id>" is no id.
 */
static const struct pattern patterns[] = {
	{ "docker", NULL, false, "docker-", ".scope", ID_HEX },
	{ "docker", NULL, true, ":docker:", "", ID_HEX },
	{ "docker", "docker", false, "", "", ID_WHOLE },
	{ "containerd", NULL, false, "cri-containerd-", ".scope", ID_HEX },
	{ "containerd", NULL, true, ":cri-containerd:", "", ID_HEX },
	{ "containerd", NULL, false, "nerdctl-", ".scope", ID_HEX },
	{ "containerd", NULL, true, ":nerdctl:", "", ID_HEX },
	{ "cri-o", NULL, false, "crio-", ".scope", ID_HEX },
	{ "cri-o", NULL, false, "crio-", "", ID_HEX },
	{ "cri-o", NULL, true, ":crio:", "", ID_HEX },
	{ "podman", NULL, false, "libpod-", ".scope", ID_HEX },
	{ "podman", NULL, false, "libpod-payload-", "", ID_HEX },
	{ "podman", NULL, false, "libpod-", "", ID_HEX },
	{ "podman", NULL, true, ":libpod:", "", ID_HEX },
	/* In a pod, with the cgroupfs driver: containerd or dockershim. */
	{ "container", "pod", false, "", "", ID_WHOLE },
	{ "container", "kubepods", false, "", "", ID_WHOLE },
	/* ctr and nerdctl: "/<namespace>/<id>". */
	{ "containerd", "default", false, "", "", ID_NAME },
	/* docker run --cgroup-parent, and any other cgroup named by a whole id. */
	{ "container", NULL, false, "", "", ID_WHOLE },
};

/* Returns true if all characters are allowed in containerd's identifiers. */
static bool is_word(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)text[i]) && !memchr("._-", text[i], 3))
			return false;
	return true;
}

static bool is_id(const char *text, size_t length, enum id_kind kind)
{
	if (length == 0 || length >= CONTAINER_ID_MAX)
		return false;
	if (kind == ID_NAME)
		return is_word(text, length);
	for (size_t i = 0; i < length; i++)
		if (!isxdigit((unsigned char)text[i]))
			return false;
	return kind == ID_WHOLE ? length == HEX_WHOLE : length >= HEX_LEAST;
}

static const char *find_last(const char *part, size_t length, const char *word)
{
	size_t n = strlen(word);
	for (size_t at = length; at >= n; at--)
		if (!memcmp(part + at - n, word, n))
			return part + at;
	return NULL;
}

static bool fits(const struct pattern *p, const char *parent, size_t parent_length,
		 const char *part, size_t length, char id[CONTAINER_ID_MAX])
{
	const char *from = part, *end = part + length;
	size_t before = strlen(p->before), after = strlen(p->after);
	if (p->parent) {
		size_t n = strlen(p->parent);
		/* For ID_NAME, `p->parent` is a namespace of containerd, and must equal the whole parent part. */
		bool is_all = p->id == ID_NAME;
		if (parent_length < n || memcmp(parent, p->parent, n) != 0 ||
		    (is_all && parent_length != n))
			return false;
	}
	if (p->is_inside) {
		from = find_last(part, length, p->before);
		if (!from)
			return false;
	} else {
		if (length < before + after || memcmp(part, p->before, before) != 0)
			return false;
		from += before;
	}
	if ((size_t)(end - from) < after || memcmp(end - after, p->after, after) != 0)
		return false;
	end -= after;
	if (!is_id(from, (size_t)(end - from), p->id))
		return false;
	memcpy(id, from, (size_t)(end - from));
	id[end - from] = '\0';
	return true;
}

bool container_match(const char *path, unsigned *ret_length, const char **ret_engine,
		     char ret_id[CONTAINER_ID_MAX])
{
	const char *parent = "", *part = path;
	size_t parent_length = 0;
	bool found = false;
	while (*part == '/') {
		part++;
		size_t length = strcspn(part, "/");
		/* Go on after a match: the last match is the innermost container. */
		for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
			const struct pattern *p = &patterns[i];
			char id[CONTAINER_ID_MAX];
			if (p->id == ID_NAME && parent != path + 1)
				continue;
			if (!fits(p, parent, parent_length, part, length, id))
				continue;
			*ret_length = (unsigned)(part + length - path);
			*ret_engine = p->engine;
			strcpy(ret_id, id);
			found = true;
			break;
		}
		parent = part;
		parent_length = length;
		part += length;
	}
	return found;
}

const char *container_engine(const char *name)
{
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		if (!strcmp(patterns[i].engine, name))
			return patterns[i].engine;
	return NULL;
}

/* Parses the next line of /proc/PID/cgroup. Returns false at the end; *path is NULL if the line is malformed. */
static bool next_line(const char **text, const char **controllers, size_t *controllers_length,
		      const char **path, size_t *path_length)
{
	const char *line = *text, *colon;
	size_t length = strcspn(line, "\n");
	if (!*line)
		return false;
	*text = line + length + (line[length] == '\n');
	*path = NULL;
	colon = memchr(line, ':', length);
	if (!colon)
		return true;
	*controllers = colon + 1;
	colon = memchr(*controllers, ':', (size_t)(line + length - *controllers));
	if (!colon)
		return true;
	*controllers_length = (size_t)(colon - *controllers);
	*path = colon + 1;
	*path_length = (size_t)(line + length - *path);
	return true;
}

/* Returns true if the list "a,b,c" contains `name`. The list of cgroup version 2 is empty, and matches "". */
static bool has_controller(const char *list, size_t length, const char *name)
{
	size_t n = strlen(name);
	if (!n)
		return length == 0;
	while (length) {
		const char *comma = memchr(list, ',', length);
		size_t word = comma ? (size_t)(comma - list) : length;
		if (word == n && !memcmp(list, name, n))
			return true;
		if (!comma)
			return false;
		list += word + 1;
		length -= word + 1;
	}
	return false;
}

bool container_read_path(const char *text, const char *controller, char ret_path[CONTAINER_PATH_MAX])
{
	const char *controllers, *path;
	size_t controllers_length, path_length;
	while (next_line(&text, &controllers, &controllers_length, &path, &path_length))
		if (path && path_length < CONTAINER_PATH_MAX &&
		    has_controller(controllers, controllers_length, controller)) {
			memcpy(ret_path, path, path_length);
			ret_path[path_length] = '\0';
			return true;
		}
	return false;
}

bool container_from_cgroups(const char *text, struct container *ret)
{
	struct container c = { 0 };
	const char *controllers, *path;
	size_t controllers_length, path_length;
	bool found = false;
	while (next_line(&text, &controllers, &controllers_length, &path, &path_length)) {
		char own[CONTAINER_PATH_MAX], id[CONTAINER_ID_MAX];
		const char *engine;
		unsigned length;
		if (!path || path_length >= sizeof(own))
			continue;
		memcpy(own, path, path_length);
		own[path_length] = '\0';
		if (!container_match(own, &length, &engine, id))
			continue;
		/* If lines name different containers, the first one counts. */
		if (found && strcmp(c.id, id) != 0)
			continue;
		if (!found || !strcmp(c.engine, "container"))
			c.engine = engine;
		strcpy(c.id, id);
		found = true;
		own[length] = '\0';
		if (!controllers_length)
			strcpy(c.v2_path, own);
		else if (has_controller(controllers, controllers_length, "freezer"))
			strcpy(c.v1_path, own);
	}
	if (found)
		*ret = c;
	return found;
}

bool container_may_freeze(const char *path, const char *own)
{
	size_t n = strlen(path);
	if (n < 2 || path[0] != '/')
		return false;
	return strncmp(own, path, n) != 0 || (own[n] != '/' && own[n] != '\0');
}
