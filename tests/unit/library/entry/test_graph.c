/* Graphs that allocate on several devices: each device is charged for its own part. */
#include "../test.h"

#include <string.h>

#include "../fake_driver.h"
#include "../fake_process.h"
#include "library/entry/hook_graph.h"
#include "library/entry/hook_pool.h"
#include "library/entry/hooks.h"
#include "library/launch/gate.h"
#include "library/launch/inflight/inflight.h"
#include "library/memory/reserve_wait.h"
#include "library/memory/holding.h"
#include "library/memory/ledger.h"
#include "library/memory/reserved.h"

#define GRAPH ((CUgraph)0x10)
#define EXEC ((CUgraphExec)0x20)
#define DEVICES 2

static const size_t node_bytes[DEVICES] = { 3 * RESERVED_STEP, RESERVED_STEP - 5 };
static uint64_t mapped[DEVICES];  /* memory that the driver has reserved for graphs */
static uint64_t charged[DEVICES]; /* during the launch */
static unsigned launches, destroys;

/* ---- stand-ins for the rest of the library ---- */

void gate_enter_active(struct gate_pass *pass, const struct work *work)
{
}

void gate_leave_active(struct gate_pass *pass, const struct work *work, CUresult result)
{
}

bool inflight_is_capturing(const struct work *work)
{
	return false;
}

void hook_pool_trim(int index)
{
}

int charge_index(void)
{
	return 0;
}

bool reserve_wait(int index, uint64_t bytes, struct reserve_wait *wait)
{
	return false;
}

/* ---- the driver: a graph with one node for each device ---- */

static CUresult get_nodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	for (uintptr_t i = 0; nodes && i < DEVICES; i++)
		nodes[i] = (CUgraphNode)(i + 1);
	*count = DEVICES;
	return CUDA_SUCCESS;
}

static CUresult get_type(CUgraphNode node, CUgraphNodeType *type)
{
	*type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
	return CUDA_SUCCESS;
}

static CUresult get_params(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	int device = (int)(uintptr_t)node - 1;

	memset(params, 0, sizeof(*params));
	params->poolProps.location = (CUmemLocation){ CU_MEM_LOCATION_TYPE_DEVICE, device };
	params->bytesize = node_bytes[device];
	return CUDA_SUCCESS;
}

static CUresult get_reserved(CUdevice device, CUgraphMem_attribute which, void *value)
{
	*(cuuint64_t *)value = mapped[device];
	return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	*exec = EXEC;
	return CUDA_SUCCESS;
}

static CUresult destroy(CUgraphExec exec)
{
	destroys++;
	return CUDA_SUCCESS;
}

static uint64_t used(int device)
{
	return atomic_load(&fake_report->slot[0].device[device].used_bytes);
}

static CUresult launch(CUgraphExec exec, CUstream stream)
{
	launches++;
	for (int i = 0; i < DEVICES; i++) {
		charged[i] = used(i);
		mapped[i] = node_bytes[i];
	}
	return CUDA_SUCCESS;
}

static int start(void **state)
{
	fake_driver_start();
	fake_process_start(1);
	hook_graph_reset();
	fake_control->device_count = DEVICES;
	fake_control->device[1] = fake_control->device[0];
	real.cuGraphGetNodes = get_nodes;
	real.cuGraphNodeGetType = get_type;
	real.cuGraphMemAllocNodeGetParams = get_params;
	real.cuDeviceGetGraphMemAttribute = get_reserved;
	real.cuGraphExecDestroy = destroy;
	memset(mapped, 0, sizeof(mapped));
	memset(charged, 0, sizeof(charged));
	launches = destroys = 0;
	return 0;
}

/* ---- tests ---- */

static void test_each_device_is_charged(void **state)
{
	CUgraphExec exec;

	assert_int_equal(hook_graph_instantiate_flags(instantiate, &exec, GRAPH, 0), CUDA_SUCCESS);
	assert_int_equal(used(0) + used(1), 0);
	assert_int_equal(hook_graph_launch(launch, exec, NULL), CUDA_SUCCESS);
	/* Whole steps are reserved for the launch; the driver's actual allocation is charged afterwards. */
	assert_int_equal(charged[0], 3 * RESERVED_STEP);
	assert_int_equal(charged[1], RESERVED_STEP);
	assert_int_equal(used(0), node_bytes[0]);
	assert_int_equal(used(1), node_bytes[1]);
	assert_int_equal(hook_graph_exec_destroy(destroy, exec), CUDA_SUCCESS);
	/* The driver frees the memory later. */
	memset(mapped, 0, sizeof(mapped));
	hook_graph_refresh(1000 * NS_PER_S);
	assert_int_equal(used(0) + used(1), 0);
}

static void test_each_device_has_a_quota(void **state)
{
	CUgraphExec exec;

	/* No launch fits the second device. */
	fake_control->device[1].quota_bytes = RESERVED_STEP - 1;
	assert_int_equal(hook_graph_instantiate_flags(instantiate, &exec, GRAPH, 0),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_null(exec);
	assert_int_equal(destroys, 1);
	/* A launch fits, but not now: nothing stays reserved on the first. */
	fake_control->device[1].quota_bytes = RESERVED_STEP;
	assert_int_equal(hook_graph_instantiate_flags(instantiate, &exec, GRAPH, 0), CUDA_SUCCESS);
	assert_int_equal(ledger_reserve(1, 1, false), 0);
	assert_int_equal(hook_graph_launch(launch, exec, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(launches, 0);
	assert_int_equal(used(0), 0);
	ledger_release(1, 1);
	assert_int_equal(hook_graph_launch(launch, exec, NULL), CUDA_SUCCESS);
	assert_int_equal(launches, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_each_device_is_charged, start),
		cmocka_unit_test_setup(test_each_device_has_a_quota, start),
	};

	return cmocka_run_group_tests_name("graph", tests, NULL, NULL);
}
