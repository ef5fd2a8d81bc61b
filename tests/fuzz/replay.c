/* Gives a fuzz target the inputs of files, or of all files of directories: replay PATH... */
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

static unsigned inputs;

static int run_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	struct stat st;

	if (!file || fstat(fileno(file), &st) < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return 1;
	}
	uint8_t *data = malloc((size_t)st.st_size + 1);
	size_t size = data ? fread(data, 1, (size_t)st.st_size, file) : 0;
	fclose(file);
	if (!data)
		return 1;
	LLVMFuzzerTestOneInput(data, size);
	inputs++;
	free(data);
	return 0;
}

static int run_path(const char *path)
{
	struct dirent *entry;
	DIR *dir = opendir(path);
	int bad = 0;

	if (!dir)
		return run_file(path);
	while ((entry = readdir(dir))) {
		char file[PATH_MAX];
		if (entry->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		bad += run_file(file);
	}
	closedir(dir);
	return bad;
}

int main(int argc, char **argv)
{
	int bad = 0;

	for (int i = 1; i < argc; i++)
		bad += run_path(argv[i]);
	/* A folder that is gone would pass for ever. */
	if (!inputs)
		fprintf(stderr, "replay: no inputs\n");
	return bad || !inputs;
}
