#include "cli/commands/tasks_table.h"

#include <stdbool.h>

#include "cli/container_name.h"
#include "cli/format.h"

static double sum_of(const json_t *object, const char *key)
{
	const json_t *devices = json_object_get(object, "devices");
	double sum = 0;
	for (size_t i = 0; i < json_array_size(devices); i++)
		sum += json_number_value(json_object_get(json_array_get(devices, i), key));
	return sum;
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text && *text ? text : "-";
}

static double number_of(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static void write_container(const json_t *c, FILE *out)
{
	char memory[FORMAT_MAX], used[FORMAT_MAX], frozen[FORMAT_MAX], name[CONTAINER_LABEL_MAX];
	container_name(c, name, sizeof(name));
	format_bytes((uint64_t)sum_of(c, "memory_used_bytes"), memory);
	format_seconds(sum_of(c, "used_s"), used);
	format_seconds(number_of(c, "frozen_s"), frozen);
	fprintf(out, "%-12.*s  %-10s  %-8s  %5d  %9s  %8s  %7s%s%s\n", CONTAINER_SHORT_ID,
		text_of(c, "id"), text_of(c, "engine"), text_of(c, "state"),
		(int)number_of(c, "tasks"), memory, used, frozen, *name ? "  " : "", name);
}

static void write_task(const json_t *t, FILE *out)
{
	char memory[FORMAT_MAX], used[FORMAT_MAX], lasted[FORMAT_MAX];
	bool ended = json_is_true(json_object_get(t, "ended"));
	const json_t *violation = json_object_get(t, "violation");
	const char *tenant = text_of(t, "tenant");
	char state[64];
	snprintf(state, sizeof(state), "%s", ended ? "ended" : "runs");
	if (json_is_object(violation)) {
		snprintf(state, sizeof(state), "%.20s: %.20s", text_of(violation, "reason"),
			 text_of(violation, "action"));
		tenant = text_of(violation, "tenant");
	}
	format_bytes((uint64_t)sum_of(t, ended ? "memory_most_bytes" : "memory_used_bytes"), memory);
	format_seconds(sum_of(t, "used_s"), used);
	format_seconds(number_of(t, "lasted_s"), lasted);
	fprintf(out, "%7d  %-15s  %-12.*s  %-15.15s  %9s  %8s  %8s  %s\n", (int)number_of(t, "pid"),
		text_of(t, "name"), CONTAINER_SHORT_ID, text_of(t, "container"), tenant, memory,
		used, lasted, state);
}

void tasks_table_write(const json_t *reply, FILE *out)
{
	const json_t *containers = json_object_get(reply, "containers");
	const json_t *tasks = json_object_get(reply, "tasks");
	if (json_array_size(containers)) {
		fprintf(out, "%-12s  %-10s  %-8s  %5s  %9s  %8s  %7s  %s\n", "CONTAINER", "ENGINE",
			"STATE", "TASKS", "MEMORY", "GPU TIME", "FROZEN", "NAME");
		for (size_t i = 0; i < json_array_size(containers); i++)
			write_container(json_array_get(containers, i), out);
		fputc('\n', out);
	}
	fprintf(out, "%7s  %-15s  %-12s  %-15s  %9s  %8s  %8s  %s\n", "PID", "NAME", "CONTAINER",
		"TENANT", "MEMORY", "GPU TIME", "LASTED", "STATE");
	for (size_t i = 0; i < json_array_size(tasks); i++)
		write_task(json_array_get(tasks, i), out);
}
