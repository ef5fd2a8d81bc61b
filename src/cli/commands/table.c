#include "cli/commands/table.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/container_name.h"
#include "cli/format.h"
#include "cli/selection.h"

#define GAP 2
#define NAME_MIN 8
#define DELTA_LEAST 1.0 /* percentage points; a smaller deviation is not shown */
#define LENT_LEAST 0.5  /* percent; a smaller lent share is not shown: it would be rounded to 0 */

enum column {
	COLUMN_TENANT,
	COLUMN_GPU,
	COLUMN_STATE,
	COLUMN_MEMORY_ASKED,
	COLUMN_MEMORY_GOT,
	COLUMN_SWAPPED,
	COLUMN_CORES_ASKED,
	COLUMN_CORES_LIMIT,
	COLUMN_GOT_1S,
	COLUMN_GOT_60S,
	COLUMN_DELTA,
	COLUMN_STEP_P50,
	COLUMN_STEP_P99,
	COLUMN_STEP_RATE,
	COLUMN_PRIORITY,
	COLUMN_REFUSED,
	COLUMN_WAITED,
	COLUMN_VIOLATIONS,
	COLUMN_SHARING,
	COLUMN_USE,
	COLUMN_CONTAINER,
	COLUMN_COUNT,
};

struct column_head {
	/* title above this column and the following ones whose `group` is NULL; "" for no title */
	const char *group;
	const char *title;
	bool is_text; /* aligned left */
	bool hide_if_empty;
};

static const struct column_head heads[COLUMN_COUNT] = {
	[COLUMN_TENANT] = { "", "TENANT", .is_text = true },
	[COLUMN_GPU] = { "", "GPU" },
	[COLUMN_STATE] = { "", "STATE", .is_text = true },
	[COLUMN_MEMORY_ASKED] = { "MEMORY", "ASKED" },
	[COLUMN_MEMORY_GOT] = { NULL, "GOT" },
	[COLUMN_SWAPPED] = { NULL, "SWAPPED", .hide_if_empty = true },
	[COLUMN_CORES_ASKED] = { "COMPUTE %", "ASKED" },
	[COLUMN_CORES_LIMIT] = { NULL, "LIMIT" },
	[COLUMN_GOT_1S] = { NULL, "1s" },
	[COLUMN_GOT_60S] = { NULL, "60s" },
	[COLUMN_DELTA] = { NULL, "DELTA", .hide_if_empty = true },
	[COLUMN_STEP_P50] = { "STEP", "p50" },
	[COLUMN_STEP_P99] = { NULL, "p99" },
	[COLUMN_STEP_RATE] = { NULL, "per s" },
	[COLUMN_PRIORITY] = { "", "PRIORITY", .hide_if_empty = true },
	[COLUMN_REFUSED] = { "", "REFUSED" },
	[COLUMN_WAITED] = { "", "WAITED" },
	[COLUMN_VIOLATIONS] = { "", "VIOLATIONS", .is_text = true, .hide_if_empty = true },
	[COLUMN_SHARING] = { "", "SHARING", .is_text = true, .hide_if_empty = true },
	[COLUMN_USE] = { "", "USE" },
	[COLUMN_CONTAINER] = { "", "CONTAINER", .is_text = true, .hide_if_empty = true },
};

#define CELL_MAX \
	(CONTAINER_LABEL_MAX + \
	 24) /* the longest label of a container, and " +N" for N further containers */

struct row {
	char cell[COLUMN_COUNT][CELL_MAX];
};

struct table {
	struct row *rows;
	size_t count;
	int width[COLUMN_COUNT]; /* 0 if the column is hidden */
	bool has_waiters;
};

static void put_bytes(const json_t *object, const char *key, char *cell)
{
	const json_t *value = json_object_get(object, key);
	json_int_t bytes = json_integer_value(value);

	if (!json_is_integer(value) || bytes < 0 || bytes == INT64_MAX)
		strcpy(cell, "-");
	else
		format_bytes((uint64_t)bytes, cell);
}

static void put_number(const json_t *object, const char *key,
		       void (*format)(double value, char text[FORMAT_MAX]), char *cell)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_number(value))
		strcpy(cell, "-");
	else
		format(json_number_value(value), cell);
}

/* Writes "30", or "30+42" while 42 % are lent to the tenant. */
static void put_limit(const json_t *device, char *cell)
{
	double lent = json_number_value(json_object_get(device, "lent_pct"));
	size_t used;

	put_number(device, "cores_limit_pct", format_asked_pct, cell);
	used = strlen(cell);
	if (lent >= LENT_LEAST)
		snprintf(cell + used, CELL_MAX - used, "+%.0f", lent);
}

static void put_delta(const json_t *device, char *cell)
{
	if (json_number_value(json_object_get(device, "delta_60s_pct")) < DELTA_LEAST)
		strcpy(cell, "-");
	else
		put_number(device, "delta_60s_pct", format_got_pct, cell);
}

static void put_text(const json_t *object, const char *key, char *cell)
{
	snprintf(cell, CELL_MAX, "%s", json_string_or(object, key, "-"));
}

/* Writes "60 (50)" if 60 % were requested but only 50 % are in force, because guarantees sum to over 100 %. */
static void put_effective(const json_t *device, char cell[CELL_MAX])
{
	double asked = json_number_value(json_object_get(device, "cores_pct"));
	const json_t *effective = json_object_get(device, "cores_effective_pct");
	size_t used = strlen(cell);

	if (json_is_number(effective) && json_number_value(effective) < asked)
		snprintf(cell + used, CELL_MAX - used, " (%.4g)", json_number_value(effective));
}

/* For a tenant in the queue for memory, adds its place there and the time waited: "queued #2 1m05s". */
static void put_state(const json_t *tenant, char cell[CELL_MAX])
{
	const json_t *wait = json_object_get(tenant, "memory_wait");
	char since[FORMAT_MAX];
	size_t used;

	put_text(tenant, "state", cell);
	if (!json_is_object(wait))
		return;
	used = strlen(cell);
	format_seconds(json_number_value(json_object_get(wait, "waited_s")), since);
	snprintf(cell + used, CELL_MAX - used, " #%lld %s",
		 (long long)json_integer_value(json_object_get(wait, "place")), since);
}

static void put_swapped(const json_t *tenant, char *cell)
{
	const json_t *swap = json_object_get(tenant, "swap");

	if (json_is_object(swap))
		put_bytes(swap, "swapped_bytes", cell);
	else
		strcpy(cell, "-");
}

static void put_priority(const json_t *tenant, char *cell)
{
	json_int_t priority = json_integer_value(json_object_get(tenant, "priority"));

	if (priority)
		snprintf(cell, CELL_MAX, "%lld", (long long)priority);
	else
		strcpy(cell, "-");
}

static void put_containers(const json_t *tenant, char cell[CELL_MAX])
{
	const json_t *list = json_object_get(tenant, "containers");
	size_t count = json_array_size(list);
	char label[CONTAINER_LABEL_MAX];

	if (!count) {
		strcpy(cell, "-");
		return;
	}
	container_label(json_array_get(list, 0), label, sizeof(label));
	if (count > 1)
		snprintf(cell, CELL_MAX, "%s +%zu", label, count - 1);
	else
		snprintf(cell, CELL_MAX, "%s", label);
}

/* Writes for example "2 frozen": violations, and the action on the last offending process; "gone" if none lives. */
static void put_violations(const json_t *tenant, char cell[CELL_MAX])
{
	json_int_t count = json_integer_value(json_object_get(tenant, "violations"));
	const json_t *list = json_object_get(tenant, "offenders");
	size_t offenders = json_array_size(list);
	const json_t *last = offenders ? json_array_get(list, offenders - 1) : NULL;
	const char *action = json_string_or(last, "action", "gone");

	if (count > 0)
		snprintf(cell, CELL_MAX, "%lld %.40s", (long long)count, action);
	else
		strcpy(cell, "-");
}

/* Writes for example "space user/1000 hung": the group that shares by space, and its state unless "ready". */
static void put_sharing(const json_t *tenant, char cell[CELL_MAX])
{
	const json_t *space = json_object_get(tenant, "space");
	const char *group = json_string_value(json_object_get(space, "group"));
	const char *state = json_string_value(json_object_get(space, "state"));
	bool is_ready = state && strcmp(state, "ready") == 0;

	if (!group)
		strcpy(cell, "-");
	else
		snprintf(cell, CELL_MAX, "space %.100s%s%.10s", group, is_ready ? "" : " ",
			 is_ready ? ""
			 : state  ? state
				  : "?");
}

static void put_steps(const json_t *device, struct row *row)
{
	const json_t *steps = json_object_get(device, "steps");

	put_number(steps, "p50_ms", format_ms, row->cell[COLUMN_STEP_P50]);
	put_number(steps, "p99_ms", format_ms, row->cell[COLUMN_STEP_P99]);
	put_number(steps, "per_second", format_rate, row->cell[COLUMN_STEP_RATE]);
}

static void fill_row(struct row *row, const json_t *tenant, const json_t *device, bool is_first)
{
	json_int_t index = device_index(device);
	json_int_t denied = json_integer_value(json_object_get(device, "denied"));

	if (is_first) {
		put_text(tenant, "name", row->cell[COLUMN_TENANT]);
		put_state(tenant, row->cell[COLUMN_STATE]);
		put_number(tenant, "use_s", format_seconds, row->cell[COLUMN_USE]);
		put_swapped(tenant, row->cell[COLUMN_SWAPPED]);
		put_priority(tenant, row->cell[COLUMN_PRIORITY]);
		put_containers(tenant, row->cell[COLUMN_CONTAINER]);
		put_violations(tenant, row->cell[COLUMN_VIOLATIONS]);
		put_sharing(tenant, row->cell[COLUMN_SHARING]);
	}
	snprintf(row->cell[COLUMN_GPU], CELL_MAX, "%lld", (long long)index);
	put_bytes(device, "memory_quota_bytes", row->cell[COLUMN_MEMORY_ASKED]);
	put_bytes(device, "memory_used_bytes", row->cell[COLUMN_MEMORY_GOT]);
	put_number(device, "cores_pct", format_asked_pct, row->cell[COLUMN_CORES_ASKED]);
	put_effective(device, row->cell[COLUMN_CORES_ASKED]);
	put_limit(device, row->cell[COLUMN_CORES_LIMIT]);
	put_number(device, "got_1s_pct", format_got_pct, row->cell[COLUMN_GOT_1S]);
	put_number(device, "got_60s_pct", format_got_pct, row->cell[COLUMN_GOT_60S]);
	put_delta(device, row->cell[COLUMN_DELTA]);
	put_steps(device, row);
	put_number(device, "waited_s", format_seconds, row->cell[COLUMN_WAITED]);
	snprintf(row->cell[COLUMN_REFUSED], CELL_MAX, "%lld", (long long)denied);
	/* Without a guarantee, show "-". */
	if (strcmp(row->cell[COLUMN_CORES_ASKED], "0") == 0)
		strcpy(row->cell[COLUMN_CORES_ASKED], "-");
}

static bool fill_rows(struct table *table, const json_t *tenants)
{
	size_t most = 0, i, j;
	json_t *tenant, *device;

	json_array_foreach((json_t *)tenants, i, tenant)
		most += json_array_size(json_object_get(tenant, "devices"));
	table->rows = calloc(most + 1, sizeof(*table->rows));
	if (!table->rows)
		return false;
	json_array_foreach((json_t *)tenants, i, tenant)
	{
		const char *on_full = json_string_value(json_object_get(tenant, "on_full"));

		table->has_waiters |= on_full && strcmp(on_full, "wait") == 0;
		json_array_foreach(json_object_get(tenant, "devices"), j, device)
			fill_row(&table->rows[table->count++], tenant, device, j == 0);
	}
	return true;
}

static int total_width(const struct table *table)
{
	int total = -GAP;

	for (int c = 0; c < COLUMN_COUNT; c++)
		total += table->width[c] ? table->width[c] + GAP : 0;
	return total;
}

static bool has_values(const struct table *table, enum column column)
{
	for (size_t i = 0; i < table->count; i++)
		if (*table->rows[i].cell[column] && strcmp(table->rows[i].cell[column], "-") != 0)
			return true;
	return false;
}

static void hide_steps(struct table *table)
{
	for (int c = COLUMN_STEP_P50; c <= COLUMN_STEP_RATE; c++)
		table->width[c] = 0;
}

static void set_widths(struct table *table, int width)
{
	int over;

	for (int c = 0; c < COLUMN_COUNT; c++) {
		if (heads[c].hide_if_empty && !has_values(table, c))
			continue;
		table->width[c] = (int)strlen(heads[c].title);
		for (size_t i = 0; i < table->count; i++) {
			int length = (int)strlen(table->rows[i].cell[c]);

			if (length > table->width[c])
				table->width[c] = length;
		}
	}
	if (!table->has_waiters)
		table->width[COLUMN_USE] = 0;
	if (!has_values(table, COLUMN_STEP_RATE))
		hide_steps(table);
	if (total_width(table) > width)
		table->width[COLUMN_WAITED] = 0;
	if (total_width(table) > width)
		table->width[COLUMN_CONTAINER] = 0;
	if (total_width(table) > width)
		hide_steps(table);
	over = total_width(table) - width;
	if (over > 0) {
		int *name = &table->width[COLUMN_TENANT];
		int least = *name < NAME_MIN ? *name : NAME_MIN;

		*name = *name - over < least ? least : *name - over;
	}
}

static void write_cell(const char *text, int width, bool to_the_left, FILE *out)
{
	if ((int)strlen(text) > width)
		fprintf(out, "%.*s~", width - 1, text);
	else
		fprintf(out, to_the_left ? "%-*s" : "%*s", width, text);
}

static void write_line(const struct table *table, const struct row *row, FILE *out)
{
	char line[COLUMN_COUNT * (CELL_MAX + GAP) + 1];
	FILE *memory = fmemopen(line, sizeof(line), "w");
	size_t length;

	if (!memory)
		return;
	for (int c = 0; c < COLUMN_COUNT; c++) {
		if (!table->width[c])
			continue;
		if (c)
			fprintf(memory, "%*s", GAP, "");
		write_cell(row->cell[c], table->width[c], heads[c].is_text, memory);
	}
	fclose(memory);
	length = strlen(line);
	while (length && line[length - 1] == ' ')
		length--;
	fprintf(out, "%.*s\n", (int)length, line);
}

/* Each group's title begins where the title of its first column begins. */
static void write_groups(const struct table *table, FILE *out)
{
	int position = 0, written = 0;

	for (int c = 0; c < COLUMN_COUNT; c++) {
		if (!table->width[c])
			continue;
		if (heads[c].group && *heads[c].group) {
			int start = position + table->width[c] - (int)strlen(heads[c].title);

			written += fprintf(out, "%*s%s", start - written, "", heads[c].group);
		}
		position += table->width[c] + GAP;
	}
	fputc('\n', out);
}

static void write_health(const json_t *device, FILE *out)
{
	const char *health = json_string_value(json_object_get(device, "health"));
	const char *reason = json_string_or(device, "health_reason", "?");

	if (health && strcmp(health, "healthy") != 0)
		fprintf(out, ", %s: %s", health, reason);
	if (json_is_true(json_object_get(device, "cordoned")))
		fputs(", cordoned", out);
}

static void write_devices(const json_t *devices, FILE *out)
{
	size_t i;
	json_t *device;

	json_array_foreach((json_t *)devices, i, device)
	{
		const char *name = json_string_or(device, "name", "?");
		const json_t *busy = json_object_get(device, "busy_pct");
		char total[FORMAT_MAX], used[FORMAT_MAX];

		put_bytes(device, "memory_bytes", total);
		put_bytes(device, "memory_used_bytes", used);
		fprintf(out, "GPU %lld: %s, %s, %s used", (long long)device_index(device), name,
			total, used);
		if (json_is_number(busy))
			fprintf(out, ", %.0f %% busy", json_number_value(busy));
		write_health(device, out);
		fputc('\n', out);
	}
	if (i)
		fputc('\n', out);
}

/* Writes the MPS faults of tenants that share by space, because their programs get only an error code. */
static void write_space_faults(const json_t *tenants, FILE *out)
{
	size_t i;
	json_t *tenant;

	json_array_foreach((json_t *)tenants, i, tenant)
	{
		const json_t *space = json_object_get(tenant, "space");
		const char *fault = json_string_value(json_object_get(space, "fault"));
		const char *name = json_string_or(tenant, "name", "?");

		if (fault)
			fprintf(out, "\n%s: %s\n", name, fault);
	}
}

void table_write(const json_t *list, int width, FILE *out)
{
	const json_t *tenants = json_object_get(list, "tenants");
	struct table table = { 0 };
	struct row titles;

	write_devices(json_object_get(list, "devices"), out);
	if (json_array_size(tenants) == 0) {
		fprintf(out, "no tenants\n");
		return;
	}
	if (!fill_rows(&table, tenants))
		return;
	set_widths(&table, width);
	for (int c = 0; c < COLUMN_COUNT; c++)
		strcpy(titles.cell[c], heads[c].title);
	write_groups(&table, out);
	write_line(&table, &titles, out);
	for (size_t i = 0; i < table.count; i++)
		write_line(&table, &table.rows[i], out);
	write_space_faults(tenants, out);
	free(table.rows);
}
