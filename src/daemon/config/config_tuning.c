/* The values of `allotd --tuning FILE`: timings and gains, for tests, benchmarks and developers. */
#include <errno.h>

#include "daemon/config/config.h"
#include "daemon/config/config_rows.h"

#define OWN_GAIN ((int)FEEDBACK_OWN_GAIN)

static const char *const control_words[] = {
	[FEEDBACK_P] = "p", [FEEDBACK_PI] = "pi", [FEEDBACK_PID] = "pid", NULL
};
static const char *const sensor_words[] = {
	[ARBITER_SENSOR_BUSY] = "busy", [ARBITER_SENSOR_NVML] = "nvml", NULL
};

static const struct settings_row rows[] = {
	{ "adopt_wait", SETTINGS_DURATION, AT(adopt_wait_ns), "1s", MS(1), S(60),
	  "after a restart, how long reservations wait for processes to move over" },
	{ "adopt_grace", SETTINGS_DURATION, AT(adopt_grace_ns), "5s", MS(1), S(3600),
	  "after a restart, how long a tenant without processes is kept for the "
	  "allot run that started it" },
	{ "use_half_life", SETTINGS_DURATION, AT(use_half_life_ns), "10m", S(1), S(86400 * 365),
	  "tenants that wait for memory are ordered by GPU time used, which is halved after this time" },
	{ "context_bytes", SETTINGS_SIZE, AT(context_bytes), "518MiB", 16 * MIB, 4 * GIB,
	  "memory charged for a CUDA context, until it has been measured" },
	{ "urgent_window", SETTINGS_DURATION, AT(arbiter.urgent_window_ns), NULL, MS(1), S(60),
	  "longest time over which a tenant with priority saves up GPU time that it "
	  "may use ahead of others" },
	{ "urgent_slice", SETTINGS_DURATION, AT(arbiter.urgent_slice_ns), NULL, US(100), S(1),
	  "GPU time by which a tenant with priority may exceed what it has saved up "
	  "(urgent_window)" },
	{ "depth", SETTINGS_DURATION, AT(arbiter.depth_ns), NULL, US(10), S(1),
	  "most GPU work, in time, that a lease holder may have in flight" },
	{ "free_depth", SETTINGS_DURATION, AT(free_depth_ns), "10ms", US(10), S(10),
	  "most GPU work, in time, that a tenant which runs alone may have in flight" },
	{ "free_depth_alone", SETTINGS_DURATION, AT(free_depth_alone_ns), "100ms", US(10), S(10),
	  "free_depth while no other tenant has a process on the GPU" },
	{ "quantum_min", SETTINGS_DURATION, AT(arbiter.quantum_min_ns), NULL, US(100), S(1),
	  "shortest quantum, where caps leave time for more hand-overs" },
	{ "gang_quantum", SETTINGS_DURATION, AT(arbiter.gang_turn.quantum_ns), NULL, US(100), S(1),
	  "quantum while a tenant computes on this GPU and others at once, where that is more" },
	{ "gang_quantum_min", SETTINGS_DURATION, AT(arbiter.gang_turn.quantum_min_ns), NULL,
	  US(100), S(1), "quantum_min while a tenant on several GPUs computes, if this is longer" },
	{ "gang_depth", SETTINGS_DURATION, AT(arbiter.gang_turn.depth_ns), NULL, US(10), S(1),
	  "depth while a tenant on several GPUs computes, if this is more" },
	{ "long_work", SETTINGS_DURATION, AT(arbiter.long_work_ns), NULL, US(100), S(60),
	  "a lease holder begins nothing behind a piece of work that lasts this long" },
	{ "switch_cost", SETTINGS_DURATION, AT(arbiter.switch_ns), NULL, 0, S(1),
	  "time that the GPU needs to switch between tenants; charged to no tenant" },
	{ "min_lease", SETTINGS_DURATION, AT(arbiter.min_lease_ns), NULL, US(10), S(1),
	  "a lease is not cut short for a returning tenant before this" },
	{ "step_wait", SETTINGS_DURATION, AT(arbiter.step_most_ns), NULL, 0, S(1),
	  "longest step of a program at whose end its turn may end; 0: turns end when their time is over" },
	{ "slice_step", SETTINGS_DURATION, AT(arbiter.slice_step_ns), NULL, 0, S(1),
	  "longest step of a program that runs beside others by the hardware's time slices; 0: all take turns" },
	{ "cap_slice", SETTINGS_DURATION, AT(arbiter.cap_slice_ns), NULL, US(10), S(1),
	  "GPU time that a capped tenant, alone, gathers before it runs again" },
	{ "cap_slice_most", SETTINGS_DURATION, AT(arbiter.cap_slice_most_ns), NULL, US(10), S(1),
	  "cap_slice for a program that never waits for its GPU work" },
	{ "cap_window", SETTINGS_DURATION, AT(arbiter.window_ns), NULL, MS(1), S(60),
	  "longest time over which a capped tenant saves up unused GPU time" },
	{ "cap_idle_window", SETTINGS_DURATION, AT(arbiter.idle_window_ns), NULL, 0, S(60),
	  "cap_window for an idle tenant" },
	{ "idle", SETTINGS_DURATION, AT(arbiter.idle_ns), NULL, US(10), S(1),
	  "the longest time that an idle holder keeps a lease, if it often comes back soon; the "
	  "shortest for a holder on several GPUs" },
	{ "idle_min", SETTINGS_DURATION, AT(arbiter.idle_min_ns), NULL, US(10), S(1),
	  "the shortest time after which an idle holder loses its lease" },
	{ "free_after", SETTINGS_DURATION, AT(arbiter.free_after_ns), NULL, MS(1), S(60),
	  "the only active tenant runs free once all others have been idle for this long" },
	{ "start_grace", SETTINGS_DURATION, AT(arbiter.start_grace_ns), NULL, 0, S(1),
	  "longest time from getting a lease to the first work that is not charged" },
	{ "drain_min", SETTINGS_DURATION, AT(arbiter.drain_min_ns), NULL, US(100), S(10),
	  "shortest deadline of a drain" },
	{ "drain_max", SETTINGS_DURATION, AT(arbiter.drain_max_ns), NULL, US(100), S(60),
	  "longest deadline of a drain" },
	{ "poll_drain", SETTINGS_DURATION, AT(arbiter.poll_drain_ns), NULL, US(10), S(1),
	  "how often the arbiter reads the tenants' reports while a lease is being "
	  "drained" },
	{ "poll_lease", SETTINGS_DURATION, AT(arbiter.poll_lease_ns), NULL, US(10), S(1),
	  "how often the arbiter reads the tenants' reports while a tenant has a "
	  "lease" },
	{ "poll_free", SETTINGS_DURATION, AT(arbiter.poll_free_ns), NULL, US(10), S(1),
	  "how often the arbiter reads the tenants' reports while one tenant runs "
	  "free" },
	{ "poll_idle", SETTINGS_DURATION, AT(arbiter.poll_idle_ns), NULL, US(10), S(1),
	  "how often the arbiter reads the tenants' reports while no tenant computes" },
	{ "poll_rung", SETTINGS_DURATION, AT(arbiter.poll_rung_ns), NULL, US(10), S(1),
	  "how often the arbiter reads the reports of tenants that announce changes "
	  "by their doorbell" },
	{ "elastic_period", SETTINGS_DURATION, AT(elastic.period_ns), NULL, MS(100), S(1),
	  "how often it is decided which time is lent" },
	{ "elastic_fade", SETTINGS_DURATION, AT(elastic.fade_ns), NULL, MS(100), S(60),
	  "time constant by which an owner's demand fades" },
	{ "elastic_step", SETTINGS_PERCENT, AT(elastic.step_pct), NULL, PCT(1), PCT(100),
	  "points by which a limit may move in a period" },
	{ "elastic_reserve", SETTINGS_PERCENT, AT(elastic.reserve_pct), NULL, 0, PCT(100),
	  "percent of an owner's unused time that is not lent" },
	{ "claim_look", SETTINGS_DURATION, AT(claim_look_ns), "30s", MS(100), S(3600),
	  "how often allotd looks for claims that are no longer needed, and removes "
	  "them and their files" },
	{ "task_nodes", SETTINGS_TEXT, AT(task_nodes), "auto", 0, 0,
	  "device nodes whose opening begins GPU work; auto: /dev/nvidia-uvm" },
	{ "thaw_settle", SETTINGS_DURATION, AT(thaw_settle_ns), "2s", MS(1), S(3600),
	  "the next container is thawed when the last one's memory has not changed for this long" },
	{ "token_quota", SETTINGS_DURATION, AT(arbiter.token_quota_ns), NULL, MS(1), S(10),
	  "policy token: how long one tenant has the token" },
	{ "token_window", SETTINGS_DURATION, AT(arbiter.token_window_ns), NULL, MS(10), S(3600),
	  "policy token: window over which use is counted" },
	{ "feedback_control", SETTINGS_CHOICE, AT(arbiter.feedback.control), "pi", 0, 0,
	  "policy feedback: the control law, p, pi or pid", .words = control_words },
	{ "feedback_sensor", SETTINGS_CHOICE, AT(arbiter.feedback_sensor), "busy", 0, 0,
	  "policy feedback: what it measures, busy (time) or nvml", .words = sensor_words },
	{ "feedback_p", SETTINGS_NUMBER, AT(arbiter.feedback.gains.p), "auto", 0, 100,
	  "policy feedback: gain of the error; auto: by feedback_control", .automatic = OWN_GAIN },
	{ "feedback_i", SETTINGS_NUMBER, AT(arbiter.feedback.gains.i_per_s), "auto", 0, 1000,
	  "policy feedback: gain of its sum over time, a second; or auto", .automatic = OWN_GAIN },
	{ "feedback_d", SETTINGS_NUMBER, AT(arbiter.feedback.gains.d_s), "auto", 0, 10,
	  "policy feedback: gain of the share's slope, in seconds; or auto", .automatic = OWN_GAIN },
	{ "feedback_smooth", SETTINGS_DURATION, AT(arbiter.feedback.smooth_ns), NULL, MS(1), S(10),
	  "policy feedback: time constant of the measured share" },
	{ "feedback_period_min", SETTINGS_DURATION, AT(arbiter.feedback.period_min_ns), NULL, MS(1),
	  S(10), "policy feedback: shortest time between two measurements" },
	{ "feedback_period_max", SETTINGS_DURATION, AT(arbiter.feedback.period_max_ns), NULL, MS(1),
	  S(10), "policy feedback: longest time between two measurements" },
};

/* The value named `first` must not be above the value named `second`. */
static int check_order(const struct config *config, const char *first, const char *second,
		       struct error *err)
{
	const struct settings_row *less = settings_find(&config_tuning, first);
	const struct settings_row *more = settings_find(&config_tuning, second);
	uint64_t low = *(const uint64_t *)(const void *)((const char *)config + less->offset);
	uint64_t high = *(const uint64_t *)(const void *)((const char *)config + more->offset);
	char low_text[32], high_text[32];
	if (low <= high)
		return 0;
	settings_format(less, low, low_text, sizeof(low_text));
	settings_format(more, high, high_text, sizeof(high_text));
	return error_set(err, EINVAL, "%s: '%s': must be at most the value of %s, '%s'", first,
			 low_text, second, high_text);
}

static int check_drain(const struct config *config, struct error *err)
{
	return check_order(config, "drain_min", "drain_max", err);
}

static int check_feedback_period(const struct config *config, struct error *err)
{
	return check_order(config, "feedback_period_min", "feedback_period_max", err);
}

static int refuse_name(const char *key, struct error *err)
{
	if (settings_find(&config_settings, key))
		return error_set(err, ENOENT,
				 "%s: is a setting, so --tuning can't set it: write it to the file of "
				 "--config",
				 key);
	return error_set(err, ENOENT, "%.60s: no such tuning (allotd --list-tuning lists all)", key);
}

const struct settings_table config_tuning = {
	.row = rows,
	.count = sizeof(rows) / sizeof(rows[0]),
	.check = (const settings_check[]){ check_drain, check_feedback_period, NULL },
	.unknown = refuse_name,
};
