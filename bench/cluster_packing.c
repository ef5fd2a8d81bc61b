/*
 * How full a cluster gets by each policy, on the same tasks: prints a line of JSON for each policy, setting and experiment, of
 * all seeds together.
 *
 *     cluster-packing [--seeds N] [--scale N] [--experiment fill|day] [--setting sizes|models|cpus] [--policy NAME]...
 *
 * By default: fills at the cluster's full size, days on an eighth of it, all policies and settings.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packing/experiments.h"

#define SEEDS_MOST 100
#define FILL_DEMAND 1.2
#define SEED_FIRST 20231

static const struct {
	const char *name;
	bool has_models, has_cpus;
} settings[] = { { "sizes", false, false }, { "models", true, false }, { "cpus", false, true } };
#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

static const struct experiment {
	const char *name;
	struct packing_result (*run)(const struct packing_policy *, const struct packing_setting *,
				     double, uint64_t);
	double how_much; /* demand or load */
	unsigned scale;
} experiments[] = { { "fill", packing_fill, FILL_DEMAND, 1 },
		    { "day", packing_day, 0.9, 8 },
		    { "day", packing_day, 1.1, 8 } };
#define EXPERIMENTS (sizeof(experiments) / sizeof(experiments[0]))

struct options {
	unsigned seeds, scale;
	const char *experiment, *setting, *policy[16];
	unsigned policies;
};

/* Sums of several seeds, and the worst class of all. */
struct sums {
	double packed, least, most, at_first, at_demand, failed, tasks, wait_s, us, p99_us;
	struct packing_part of[PACKING_CLASSES];
	unsigned nodes, cards;
};

static void add(struct sums *s, const struct packing_result *r, unsigned seeds)
{
	s->least = s->tasks > 0 && s->least < r->packed ? s->least : r->packed;
	s->most = s->most > r->packed ? s->most : r->packed;
	s->packed += r->packed / seeds;
	s->at_first += r->at_first / seeds;
	s->at_demand += r->at_demand / seeds;
	s->failed += (double)r->failed / seeds;
	s->tasks += (double)r->tasks / seeds;
	s->wait_s += r->wait_s / seeds;
	s->us += r->decision_us / seeds;
	s->p99_us += r->decision_p99_us / seeds;
	for (unsigned c = 0; c < PACKING_CLASSES; c++) {
		s->of[c].asked += r->of[c].asked;
		s->of[c].got += r->of[c].got;
	}
	s->nodes = r->nodes;
	s->cards = r->cards;
}

static void print(const char *experiment, const char *setting, const char *policy, double how_much,
		  unsigned seeds, const struct sums *s)
{
	printf("{\"experiment\":\"%s\",\"setting\":\"%s\",\"policy\":\"%s\",\"demand\":%.2f,"
	       "\"seeds\":%u,\"nodes\":%u,\"gpus\":%u,\"packed_pct\":%.3f,\"least_pct\":%.3f,"
	       "\"most_pct\":%.3f,\"at_first_failure_pct\":%.2f,\"at_full_demand_pct\":%.3f,"
	       "\"tasks\":%.1f,\"failed\":%.1f,\"wait_s\":%.1f,\"decision_us\":%.1f,"
	       "\"decision_p99_us\":%.1f,\"placed_pct\":{",
	       experiment, setting, policy, how_much, seeds, s->nodes, s->cards, 100 * s->packed,
	       100 * s->least, 100 * s->most, 100 * s->at_first, 100 * s->at_demand, s->tasks,
	       s->failed, s->wait_s, s->us, s->p99_us);
	bool is_first = true;
	for (unsigned c = 0; c < PACKING_CLASSES; c++)
		if (s->of[c].asked > 0) {
			printf("%s\"%s\":%.2f", is_first ? "" : ",", packing_class_names[c],
			       100 * s->of[c].got / s->of[c].asked);
			is_first = false;
		}
	printf("}}\n");
	fflush(stdout);
}

static bool is_meant(const struct options *o, const char *policy)
{
	for (unsigned i = 0; i < o->policies; i++)
		if (!strcmp(o->policy[i], policy))
			return true;
	return !o->policies;
}

static void measure(const struct options *o, const struct experiment *e, unsigned setting)
{
	const struct packing_setting how = { .has_models = settings[setting].has_models,
					     .has_cpus = settings[setting].has_cpus,
					     .scale = o->scale ? o->scale : e->scale };
	for (size_t p = 0; p < packing_policy_count; p++) {
		const struct packing_policy *policy = &packing_policies[p];
		struct sums sums = { 0 };
		if (!is_meant(o, policy->name))
			continue;
		for (unsigned s = 0; s < o->seeds; s++) {
			struct packing_result r = e->run(policy, &how, e->how_much, SEED_FIRST + s);
			add(&sums, &r, o->seeds);
		}
		print(e->name, settings[setting].name, policy->name, e->how_much, o->seeds, &sums);
	}
}

static unsigned number(const char *option, const char *text, unsigned most)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);
	if (*end || value < 1 || value > most) {
		fprintf(stderr, "cluster-packing: %s: '%s': must be 1 to %u\n", option, text, most);
		exit(2);
	}
	return (unsigned)value;
}

static struct options read_options(int argc, char **argv)
{
	static const struct option known[] = { { "seeds", required_argument, NULL, 's' },
					       { "scale", required_argument, NULL, 'c' },
					       { "experiment", required_argument, NULL, 'e' },
					       { "setting", required_argument, NULL, 'm' },
					       { "policy", required_argument, NULL, 'p' },
					       { NULL, 0, NULL, 0 } };
	struct options o = { .seeds = 5 };
	for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;)
		switch (c) {
		case 's': o.seeds = number("--seeds", optarg, SEEDS_MOST); break;
		case 'c': o.scale = number("--scale", optarg, 1000); break;
		case 'e': o.experiment = optarg; break;
		case 'm': o.setting = optarg; break;
		case 'p':
			if (!packing_policy_find(optarg) || o.policies == 16) {
				fprintf(stderr,
					"cluster-packing: --policy: '%s': there is no such\n",
					optarg);
				exit(2);
			}
			o.policy[o.policies++] = optarg;
			break;
		default: exit(2);
		}
	return o;
}

int main(int argc, char **argv)
{
	const struct options o = read_options(argc, argv);
	bool was_any = false;
	for (size_t e = 0; e < EXPERIMENTS; e++)
		for (unsigned s = 0; s < SETTINGS; s++) {
			if ((o.experiment && strcmp(o.experiment, experiments[e].name) != 0) ||
			    (o.setting && strcmp(o.setting, settings[s].name) != 0))
				continue;
			was_any = true;
			measure(&o, &experiments[e], s);
		}
	if (!was_any)
		fprintf(stderr, "cluster-packing: no such experiment and setting\n");
	return was_any ? 0 : 2;
}
