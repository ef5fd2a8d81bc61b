#include "cli/commands/topo_text.h"

#include <stdbool.h>
#include <string.h>

#include "base/json.h"

#define CELL_MAX 16

static const struct {
	const char *word, *meaning;
} ways[] = {
	{ "PSB", "on one board" },
	{ "PIX", "one PCIe switch" },
	{ "PXB", "several PCIe switches" },
	{ "PHB", "one host bridge" },
	{ "NODE", "several host bridges of one NUMA node" },
	{ "SYS", "across NUMA nodes" },
};
#define WAY_COUNT (sizeof(ways) / sizeof(ways[0]))

static const char *meaning_of(const char *word)
{
	for (size_t i = 0; word && i < WAY_COUNT; i++)
		if (!strcmp(ways[i].word, word))
			return ways[i].meaning;
	return "distance unknown";
}

static void write_device(const json_t *device, int indent, FILE *out)
{
	fprintf(out, "%*sGPU%-3d %-12s  %s\n", indent, "",
		(int)json_integer_value(json_object_get(device, "index")),
		json_string_or(device, "pci", "-"), json_string_or(device, "name", "?"));
}

static bool has_device(const json_t *group, json_int_t index)
{
	const json_t *list = json_object_get(group, "devices");
	for (size_t i = 0; i < json_array_size(list); i++)
		if (json_integer_value(json_array_get(list, i)) == index)
			return true;
	return false;
}

static bool is_in_a_part(const json_t *group, json_int_t index)
{
	const json_t *parts = json_object_get(group, "groups");
	for (size_t i = 0; i < json_array_size(parts); i++)
		if (has_device(json_array_get(parts, i), index))
			return true;
	return false;
}

/* Writes a group, then its subgroups. `around` is the enclosing group's NUMA node, which is not repeated. */
static void write_group(const json_t *group, const json_t *devices, const json_t *around,
			int indent, FILE *out)
{
	const json_t *numa = json_object_get(group, "numa");
	const json_t *parts = json_object_get(group, "groups");
	const char *way = json_string_or(group, "pcie", NULL);

	if (json_array_size(json_object_get(group, "devices")) > 1) {
		fprintf(out, "%*s", indent, "");
		if (json_is_integer(numa) && !json_equal(numa, around))
			fprintf(out, "NUMA node %d: ", (int)json_integer_value(numa));
		fprintf(out, "%s%s%s%s\n", meaning_of(way), way ? " (" : "", way ? way : "",
			way ? ")" : "");
		indent += 2;
	}
	for (size_t i = 0; i < json_array_size(devices); i++) {
		const json_t *device = json_array_get(devices, i);
		json_int_t index = json_integer_value(json_object_get(device, "index"));
		if (has_device(group, index) && !is_in_a_part(group, index))
			write_device(device, indent, out);
	}
	for (size_t i = 0; i < json_array_size(parts); i++)
		write_group(json_array_get(parts, i), devices, numa, indent, out);
}

/* Writes "NV4" for 4 NVLinks. Without NVLinks, writes the PCIe path, such as "PIX", or "?" if it is unknown. */
static void link_cell(const json_t *links, json_int_t a, json_int_t b, char ret[CELL_MAX])
{
	snprintf(ret, CELL_MAX, "%s", a == b ? "X" : "?");
	for (size_t i = 0; i < json_array_size(links); i++) {
		const json_t *link = json_array_get(links, i), *pair;
		json_int_t nvlinks = json_integer_value(json_object_get(link, "nvlinks"));
		pair = json_object_get(link, "devices");
		json_int_t c = json_integer_value(json_array_get(pair, 0));
		json_int_t d = json_integer_value(json_array_get(pair, 1));
		if (!(a == c && b == d) && !(a == d && b == c))
			continue;
		if (nvlinks > 0)
			snprintf(ret, CELL_MAX, "NV%d", (int)nvlinks);
		else
			snprintf(ret, CELL_MAX, "%s", json_string_or(link, "pcie", "?"));
	}
}

static void write_matrix(const json_t *reply, FILE *out)
{
	const json_t *devices = json_object_get(reply, "devices");
	const json_t *links = json_object_get(reply, "links");
	size_t count = json_array_size(devices);

	fprintf(out, "%-5s", "");
	for (size_t i = 0; i < count; i++)
		fprintf(out, "  GPU%-2d", (int)i);
	fprintf(out, "  NUMA\n");
	for (size_t i = 0; i < count; i++) {
		const json_t *numa = json_object_get(json_array_get(devices, i), "numa");
		fprintf(out, "GPU%-2d", (int)i);
		for (size_t j = 0; j < count; j++) {
			char cell[CELL_MAX];
			link_cell(links, (json_int_t)i, (json_int_t)j, cell);
			fprintf(out, "  %-5s", cell);
		}
		if (json_is_integer(numa))
			fprintf(out, "  %d\n", (int)json_integer_value(numa));
		else
			fprintf(out, "  -\n");
	}
}

void topo_text_write(const json_t *reply, FILE *out)
{
	const json_t *devices = json_object_get(reply, "devices");

	write_group(json_object_get(reply, "tree"), devices, NULL, 0, out);
	fputc('\n', out);
	write_matrix(reply, out);
	if (json_array_size(devices) < 2)
		return;
	fprintf(out,
		"\n%-5s  number of NVLinks between the two GPUs; without, the path over PCIe:\n",
		"NV#");
	for (size_t i = 0; i < WAY_COUNT; i++)
		fprintf(out, "%-5s  %s\n", ways[i].word, ways[i].meaning);
}
