#include "mirror/find_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/paths.h"
#include "mirror/elf_file.h"
#include "mirror/ld_cache.h"

struct mapping {
	void *bytes;
	size_t size;
};

static void unmap(struct mapping *m)
{
	if (m->bytes)
		munmap(m->bytes, m->size);
}

static int map_file(const char *path, struct mapping *ret)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size == 0)
		return -ENODATA;
	void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	*ret = (struct mapping){ bytes, (size_t)st.st_size };
	return 0;
}

/* NULL if nothing is there or the result is outside of root. The caller frees the result. */
static char *resolve(const char *root, const char *path)
{
	char whole[PATHS_MAX];
	cleanup_free char *real_root = *root ? realpath(root, NULL) : NULL;
	size_t length = real_root ? strlen(real_root) : 0;

	if (strlen(root) + strlen(path) >= sizeof(whole))
		return NULL;
	strcat(strcpy(whole, root), path);
	cleanup_free char *real = realpath(whole, NULL);
	if (!real || (length > 1 && (strncmp(real, real_root, length) != 0 || real[length] != '/')))
		return NULL;
	return steal_pointer(&real);
}

static char *join_needed(const struct elf_file *elf)
{
	size_t size = 1;

	for (unsigned i = 0; i < elf->needed_count; i++)
		size += strlen(elf->needed[i]) + 1;
	char *text = calloc(size, 1);
	for (unsigned i = 0; text && i < elf->needed_count; i++) {
		if (i)
			strcat(text, " ");
		strcat(text, elf->needed[i]);
	}
	return text;
}

/* `elf` is NULL for a program. Takes ownership of `path`, also on failure. */
static int append(struct mirror_files *files, char *path, const struct elf_file *elf,
		  struct error *err)
{
	struct mirror_file file = { .path = path };
	struct mirror_file *grown = realloc(files->file, (files->count + 1) * sizeof(*grown));

	if (!grown) {
		free(path);
		return error_set(err, ENOMEM, "out of memory");
	}
	files->file = grown;
	if (elf) {
		file.bits = elf->bits;
		file.machine = elf->machine;
		file.soname = elf->soname ? strdup(elf->soname) : NULL;
		file.needed = join_needed(elf);
	}
	grown[files->count++] = file;
	if (elf && (!file.needed || (elf->soname && !file.soname)))
		return error_set(err, ENOMEM, "out of memory");
	return 0;
}

struct search {
	const char *root;
	char *const *names;
	struct mirror_files *files;
};

/* "libcuda.so" matches libcuda.so and libcuda.so.1; "libcuda.so.1" does not match libcuda.so. */
static bool is_wanted(char *const *names, const char *name)
{
	for (; *names; names++) {
		size_t length = strlen(*names);
		if (strncmp(name, *names, length) == 0 && (!name[length] || name[length] == '.'))
			return true;
	}
	return false;
}

static bool is_known(const struct mirror_files *files, const char *path)
{
	for (size_t i = 0; i < files->count; i++)
		if (strcmp(files->file[i].path, path) == 0)
			return true;
	return false;
}

static int visit_library(void *context, const char *name, const char *path, struct error *err)
{
	struct search *s = context;
	cleanup(unmap) struct mapping m = { 0 };
	struct elf_file elf;

	if (*path != '/' || !is_wanted(s->names, name))
		return 0;
	cleanup_free char *real = resolve(s->root, path);
	if (!real || is_known(s->files, real) || map_file(real, &m) < 0 ||
	    elf_file_read(m.bytes, m.size, &elf) < 0)
		return 0;
	return append(s->files, steal_pointer(&real), &elf, err);
}

int mirror_find_libraries(const char *root, char *const *names, struct mirror_files *files,
			  struct error *err)
{
	cleanup(unmap) struct mapping m = { 0 };
	struct search search = { root, names, files };
	cleanup_free char *cache = resolve(root, "/etc/ld.so.cache");
	int r = cache ? map_file(cache, &m) : -ENOENT;

	if (r < 0)
		return error_set_errno(err, -r, "%s/etc/ld.so.cache", root);
	r = ld_cache_each(m.bytes, m.size, visit_library, &search, err);
	return r < 0 ? error_add(err, r, "%s", cache) : 0;
}

static char *find_in(const char *root, const char *dir, size_t length, const char *name)
{
	char path[PATHS_MAX];
	struct stat st;

	if (length + strlen(name) + 2 > sizeof(path) || dir[0] != '/')
		return NULL;
	memcpy(path, dir, length);
	path[length] = '/';
	strcpy(path + length + 1, name);
	cleanup_free char *real = resolve(root, path);
	if (!real || stat(real, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & 0111))
		return NULL;
	return steal_pointer(&real);
}

int mirror_find_binaries(const char *root, const char *search, char *const *names,
			 struct mirror_files *files, struct error *err)
{
	for (; names && *names; names++)
		for (const char *c = search; c && *c; c += strcspn(c, ":")) {
			c += strspn(c, ":");
			char *path = find_in(root, c, strcspn(c, ":"), *names);
			if (!path)
				continue;
			int r = append(files, path, NULL, err);
			if (r < 0)
				return r;
			break;
		}
	return 0;
}
