/* answers.c: a repeated question gets the same answer, and a different question does not. */
#include "../../test.h"

#include "library/entry/start/answers.h"
#include "library/loader/name.h"

/* A driver's functions lie near the function that returns them; ours are far from any driver's. */
static char driver[1024];
#define ASKED (&driver[256])
#define FUNCTION (&driver[512])
#define FAR_DRIVER ((void *)16)

static const struct answer answer = { FUNCTION, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SUCCESS };

static struct question ask(const char *name, int version, cuuint64_t flags)
{
	return (struct question){ ASKED, name_hash(name, strlen(name)), version, flags };
}

static struct question of_far_driver(const char *name)
{
	struct question q = ask(name, 12000, 0);

	q.asked = FAR_DRIVER;
	return q;
}

/* The answer to a question is kept, and is given to the same question; nothing is kept before the first question. */
static void keep(struct question q, const struct answer *a)
{
	struct answer found;

	assert_false(answers_find(&q, &found));
	answers_store(&q, a);
	assert_true(answers_find(&q, &found));
	assert_ptr_equal(found.pfn, a->pfn);
	assert_int_equal(found.result, a->result);
	assert_int_equal(found.status, a->status);
}

static void test_an_answer_is_found_again(void **state)
{
	char name[] = "cuMemAlloc"; /* the same by its text, not by its place */
	struct question again = ask(name, 12000, 0);
	struct answer found;

	keep(ask("cuMemAlloc", 12000, 0), &answer);
	assert_true(answers_find(&again, &found));
	assert_ptr_equal(found.pfn, FUNCTION);
	const struct answer before = { driver, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SUCCESS };
	keep(ask("cuMemAlloc", 13000, 0), &before);
}

static void test_every_part_of_the_question_counts(void **state)
{
	struct question others[] = {
		of_far_driver("cuMemFree"), ask("cuMemFre", 12000, 0),  ask("cuMemFreeX", 12000, 0),
		ask("cuMemFree", 12010, 0), ask("cuMemFree", 12000, 2), ask("", 12000, 0),
	};
	struct answer found;

	keep(ask("cuMemFree", 12000, 0), &answer);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(answers_find(&others[i], &found));
}

/* Of two runtimes that ask for different versions, the last answer is kept. */
static void test_the_last_answer_counts(void **state)
{
	const struct answer newer = { FUNCTION + 1, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SUCCESS };
	struct question older = ask("cuStreamQuery", 11080, 0);
	struct answer found;

	keep(older, &answer);
	keep(ask("cuStreamQuery", 13000, 2), &newer);
	assert_false(answers_find(&older, &found));
}

static void test_what_is_not_there_is_an_answer_too(void **state)
{
	const struct answer none = { NULL, CUDA_ERROR_NOT_FOUND,
				     CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND };
	const struct answer too_new = { NULL, CUDA_ERROR_NOT_FOUND,
					CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT };
	const struct answer nowhere = { NULL, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND };

	keep(ask("cuNoSuchFunction", 12000, 0), &none);
	keep(ask("cuGreenCtxCreate", 11080, 0), &too_new);
	keep(ask("cuNoSuchFunction", 13000, 0), &nowhere);
}

/* Our own functions are far from the driver's, and are kept as well. */
static void test_hooks_are_kept(void **state)
{
	const struct answer hook = { (void *)answers_store, CUDA_SUCCESS,
				     CU_GET_PROC_ADDRESS_SUCCESS };
	struct question q = of_far_driver("cuLaunchKernel");

	keep(q, &hook);
}

/* Asked again rather than answered wrongly. */
static void test_what_has_no_room_is_not_kept(void **state)
{
	const struct answer far_off = { FAR_DRIVER, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SUCCESS };
	const struct answer strange = { FUNCTION, CUDA_SUCCESS,
					(CUdriverProcAddressQueryResult)200 };
	struct {
		struct question question;
		const struct answer *answer;
	} all[] = {
		{ ask("cuCtxCreate", 12000, 0), &far_off },
		{ ask("cuCtxCreate", 1 << 22, 0), &answer },
		{ ask("cuCtxCreate", 12000, 4), &answer },
		{ ask("cuCtxCreate", -10, 0), &answer },
		{ ask("cuCtxCreate", INT32_MAX, 0), &answer },
		{ ask("cuCtxCreate", 12000, 0), &strange },
	};
	struct answer found;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_false(answers_find(&all[i].question, &found));
		answers_store(&all[i].question, all[i].answer);
		assert_false(answers_find(&all[i].question, &found));
	}
}

/* With more than two drivers in a process, the others are asked each time. */
static void test_a_third_driver_is_not_mixed_up(void **state)
{
	static char drivers[3][64];
	struct answer found;

	for (int i = 0; i < 3; i++) {
		struct question q = { drivers[i], 99, 12000, 0 };
		const struct answer own = { &drivers[i][8], CUDA_SUCCESS, 0 };
		assert_false(answers_find(&q, &found));
		answers_store(&q, &own);
		assert_true(!answers_find(&q, &found) || found.pfn == own.pfn);
	}
}

/* More unknown names than the table holds: the driver is asked again, and every search ends. */
static void test_unknown_names_fill_up(void **state)
{
	int found_count = 0;
	char name[32];

	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 10000; i++) {
			snprintf(name, sizeof(name), "cuNew%d", i);
			struct question q = ask(name, 12000, 0);
			struct answer a = { driver + i % 500, CUDA_SUCCESS, 0 }, found;
			if (answers_find(&q, &found)) {
				assert_ptr_equal(found.pfn, a.pfn);
				found_count++;
			} else {
				answers_store(&q, &a);
			}
		}
	assert_in_range(found_count, 200, 600);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_answer_is_found_again),
		cmocka_unit_test(test_every_part_of_the_question_counts),
		cmocka_unit_test(test_the_last_answer_counts),
		cmocka_unit_test(test_what_is_not_there_is_an_answer_too),
		cmocka_unit_test(test_hooks_are_kept),
		cmocka_unit_test(test_what_has_no_room_is_not_kept),
		cmocka_unit_test(test_a_third_driver_is_not_mixed_up),
		cmocka_unit_test(test_unknown_names_fill_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
