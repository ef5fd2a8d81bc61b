#include "daemon/tasks/commands/device_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/util/nvidia_device.h"

/* name of the kernel program; a program that an earlier process left is found by this name */
#define NAME "allot_devices"
#define USER_BIT (INT64_C(1) << 63) /* keys: cgroup ids, and user ids with this bit */
#define MOST_KEYS 16384
#define PROGRAMS_MOST 64 /* most programs, of all owners, at one cgroup */

struct device_filter {
	int cgroup_fd, map_fd, program_fd;
	bool is_attached;
};

static int call_bpf(int command, union bpf_attr *attr)
{
	int r = (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
	return r < 0 ? -errno : r;
}

/* Returns the major number of /dev/nvidia-uvm, which the kernel chooses when the module is loaded; 195 if there is none. */
static int find_uvm_major(void)
{
	cleanup_file FILE *f = fopen("/proc/devices", "re");
	char line[128], name[64];
	int major;
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%d %63s", &major, name) == 2 && !strcmp(name, "nvidia-uvm"))
			return major;
	return NVIDIA_MAJOR;
}

#define INSTRUCTION(op, dst, src, offset, value) \
	((struct bpf_insn){ \
		.code = (op), .dst_reg = (dst), .src_reg = (src), .off = (offset), .imm = (value) })
#define LOAD_WORD(dst, src, offset) INSTRUCTION(BPF_LDX | BPF_W | BPF_MEM, dst, src, offset, 0)
#define STORE_LONG(dst, src, offset) INSTRUCTION(BPF_STX | BPF_DW | BPF_MEM, dst, src, offset, 0)
#define SET(dst, value) INSTRUCTION(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, value)
#define COPY(dst, src) INSTRUCTION(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0)
#define COPY_WORD(dst, src) INSTRUCTION(BPF_ALU | BPF_MOV | BPF_X, dst, src, 0, 0)
#define WITH(operation, dst, value) INSTRUCTION(BPF_ALU64 | (operation) | BPF_K, dst, 0, 0, value)
#define SKIP_IF(test, reg, value, count) INSTRUCTION(BPF_JMP | (test) | BPF_K, reg, 0, count, value)
#define CALL(function) INSTRUCTION(BPF_JMP | BPF_CALL, 0, 0, 0, function)
#define EXIT INSTRUCTION(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
#define RETURN(value) SET(BPF_REG_0, value), EXIT
/* one instruction in two parts */
#define SET_LONG(dst, kind, low, high) \
	INSTRUCTION(BPF_LD | BPF_DW | BPF_IMM, dst, kind, 0, low), INSTRUCTION(0, 0, 0, 0, high)
/* Returns 1 (allow) if the map has the key in register 0. */
#define ALLOW_IF_KNOWN(map_fd) \
	STORE_LONG(BPF_REG_10, BPF_REG_0, -8), SET_LONG(BPF_REG_1, BPF_PSEUDO_MAP_FD, map_fd, 0), \
		COPY(BPF_REG_2, BPF_REG_10), WITH(BPF_ADD, BPF_REG_2, -8), \
		CALL(BPF_FUNC_map_lookup_elem), SKIP_IF(BPF_JEQ, BPF_REG_0, 0, 2), RETURN(1)

static int load(struct device_filter *filter, struct error *err)
{
	const struct bpf_insn program[] = {
		/* Allow everything except reading and writing a character device. */
		LOAD_WORD(BPF_REG_2, BPF_REG_1, offsetof(struct bpf_cgroup_dev_ctx, access_type)),
		COPY(BPF_REG_3, BPF_REG_2),
		WITH(BPF_AND, BPF_REG_3, 0xffff),
		SKIP_IF(BPF_JEQ, BPF_REG_3, BPF_DEVCG_DEV_CHAR, 2),
		RETURN(1),
		WITH(BPF_RSH, BPF_REG_2, 16),
		SKIP_IF(BPF_JSET, BPF_REG_2, BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE, 2),
		RETURN(1),
		/* Allow devices of other drivers. */
		LOAD_WORD(BPF_REG_2, BPF_REG_1, offsetof(struct bpf_cgroup_dev_ctx, major)),
		SKIP_IF(BPF_JEQ, BPF_REG_2, NVIDIA_MAJOR, 3),
		SKIP_IF(BPF_JEQ, BPF_REG_2, find_uvm_major(), 2),
		RETURN(1),
		/* Allow root and users in the map. The function returns the user's id in the lower half. */
		CALL(BPF_FUNC_get_current_uid_gid),
		COPY_WORD(BPF_REG_0, BPF_REG_0),
		SKIP_IF(BPF_JNE, BPF_REG_0, 0, 2),
		RETURN(1),
		SET_LONG(BPF_REG_1, 0, 0, (int)(USER_BIT >> 32)),
		INSTRUCTION(BPF_ALU64 | BPF_OR | BPF_X, BPF_REG_0, BPF_REG_1, 0, 0),
		ALLOW_IF_KNOWN(filter->map_fd),
		CALL(BPF_FUNC_get_current_cgroup_id),
		ALLOW_IF_KNOWN(filter->map_fd),
		RETURN(0),
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE,
		.expected_attach_type = BPF_CGROUP_DEVICE,
		.insns = (uintptr_t)program,
		.insn_cnt = sizeof(program) / sizeof(program[0]),
		.license = (uintptr_t) "GPL", /* some helper functions require it */
		.prog_name = NAME,
	};
	int r = call_bpf(BPF_PROG_LOAD, &attr);
	if (r < 0)
		return error_set_errno(err, -r,
				       "the kernel refused to load the filter of devices (bpf)");
	filter->program_fd = r;
	return 0;
}

static int make_map(struct device_filter *filter, struct error *err)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_HASH,
		.key_size = sizeof(uint64_t),
		.value_size = sizeof(uint32_t),
		.max_entries = MOST_KEYS,
		.map_name = NAME,
	};
	int r = call_bpf(BPF_MAP_CREATE, &attr);
	if (r < 0)
		return error_set_errno(
			err, -r,
			"the kernel refused to make the table of the filter of devices (bpf)");
	filter->map_fd = r;
	return 0;
}

static int attach(const struct device_filter *filter)
{
	union bpf_attr attr = {
		.target_fd = (uint32_t)filter->cgroup_fd,
		.attach_bpf_fd = (uint32_t)filter->program_fd,
		.attach_type = BPF_CGROUP_DEVICE,
		/* Programs of systemd and of container engines stay in force beside this one. */
		.attach_flags = BPF_F_ALLOW_MULTI,
	};
	return call_bpf(BPF_PROG_ATTACH, &attr);
}

static int detach(int cgroup_fd, int program_fd)
{
	union bpf_attr attr = {
		.target_fd = (uint32_t)cgroup_fd,
		.attach_bpf_fd = (uint32_t)program_fd,
		.attach_type = BPF_CGROUP_DEVICE,
	};
	return call_bpf(BPF_PROG_DETACH, &attr);
}

/* Returns what the kernel tells of the program; all 0 if it tells nothing. */
static struct bpf_prog_info info_of(int program_fd)
{
	struct bpf_prog_info info = { 0 };
	union bpf_attr attr = { .info = { .bpf_fd = (uint32_t)program_fd,
					  .info_len = sizeof(info),
					  .info = (uintptr_t)&info } };
	call_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
	return info;
}

/* Detaches all filters of this kind, except the program `own_fd` (-1: none). */
static void remove_others(int cgroup_fd, int own_fd)
{
	uint32_t id[PROGRAMS_MOST];
	uint32_t own_id = own_fd >= 0 ? info_of(own_fd).id : 0;
	union bpf_attr query = { .query = { .target_fd = (uint32_t)cgroup_fd,
					    .attach_type = BPF_CGROUP_DEVICE,
					    .prog_ids = (uintptr_t)id,
					    .prog_cnt = PROGRAMS_MOST } };
	if ((own_fd >= 0 && !own_id) || call_bpf(BPF_PROG_QUERY, &query) < 0)
		return;
	for (uint32_t i = 0; i < query.query.prog_cnt; i++) {
		union bpf_attr attr = { .prog_id = id[i] };
		cleanup_fd int fd = id[i] != own_id ? call_bpf(BPF_PROG_GET_FD_BY_ID, &attr) : -1;
		if (fd >= 0 && !strcmp(info_of(fd).name, NAME))
			detach(cgroup_fd, fd);
	}
}

void device_filter_remove_left(const char *dir)
{
	cleanup_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		remove_others(fd, -1);
}

int device_filter_open(const char *dir, struct device_filter **ret, struct error *err)
{
	struct device_filter *filter = malloc(sizeof(*filter));
	if (!filter)
		return error_set_errno(err, ENOMEM, "a filter of devices");
	*filter = (struct device_filter){ -1, -1, -1, false };
	int r = 0;
	filter->cgroup_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (filter->cgroup_fd < 0)
		r = error_set_errno(err, errno, "%s", dir);
	if (r >= 0)
		r = make_map(filter, err);
	if (r >= 0)
		r = load(filter, err);
	if (r < 0) {
		device_filter_close(filter);
		return r;
	}
	*ret = filter;
	return 0;
}

int device_filter_attach(struct device_filter *filter, struct error *err)
{
	int r = attach(filter);
	if (r < 0)
		return error_set_errno(
			err, -r,
			"guard_devices: can't attach the device filter (bpf) to user.slice, the "
			"cgroup of all users' sessions");
	filter->is_attached = true;
	/* Remove the old filter only now, so that there is always one. Until then a process must pass both. */
	remove_others(filter->cgroup_fd, filter->program_fd);
	return 0;
}

struct device_filter *device_filter_close(struct device_filter *filter)
{
	if (!filter)
		return NULL;
	if (filter->is_attached)
		detach(filter->cgroup_fd, filter->program_fd);
	close_fd(&filter->program_fd);
	close_fd(&filter->map_fd);
	close_fd(&filter->cgroup_fd);
	free(filter);
	return NULL;
}

static int add(struct device_filter *filter, uint64_t key)
{
	uint32_t value = 1;
	union bpf_attr attr = { .map_fd = (uint32_t)filter->map_fd,
				.key = (uintptr_t)&key,
				.value = (uintptr_t)&value };
	return call_bpf(BPF_MAP_UPDATE_ELEM, &attr);
}

int device_filter_allow_cgroup(struct device_filter *filter, uint64_t id)
{
	return add(filter, id);
}

void device_filter_forget_cgroup(struct device_filter *filter, uint64_t id)
{
	union bpf_attr attr = { .map_fd = (uint32_t)filter->map_fd, .key = (uintptr_t)&id };
	call_bpf(BPF_MAP_DELETE_ELEM, &attr);
}

int device_filter_allow_user(struct device_filter *filter, uid_t uid)
{
	return add(filter, uid | (uint64_t)USER_BIT);
}
