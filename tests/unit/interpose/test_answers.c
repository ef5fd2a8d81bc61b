/* answers.c: what was asked is answered the same, and nothing else is. */
#include "test.h"

#include "interpose/answers.h"

static char driver, other_driver, function;

static struct question asked = { &driver, "cuMemAlloc", 12000, 0 };
static const struct answer answer = { &function, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SUCCESS };

static void test_an_answer_is_found_again(void **state)
{
	struct answer found;
	char name[] = "cuMemAlloc"; /* the same by its text, not by its place */
	struct question again = { &driver, name, 12000, 0 };

	assert_false(answers_find(&asked, &found));
	answers_keep(&asked, &answer);
	assert_true(answers_find(&again, &found));
	assert_memory_equal(&found, &answer, sizeof(found));
}

static void test_every_part_of_the_question_counts(void **state)
{
	struct question others[] = {
		{ &other_driver, "cuMemAlloc", 12000, 0 }, { &driver, "cuMemAllo", 12000, 0 },
		{ &driver, "cuMemAllocX", 12000, 0 },      { &driver, "cuMemAlloc", 12010, 0 },
		{ &driver, "cuMemAlloc", 12000, 2 },       { &driver, "", 12000, 0 },
	};
	struct answer found;

	answers_keep(&asked, &answer);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(answers_find(&others[i], &found));
}

static void test_what_is_not_there_is_an_answer_too(void **state)
{
	struct question q = { &driver, "cuNoSuchFunction", 12000, 0 };
	const struct answer none = { NULL, CUDA_ERROR_NOT_FOUND,
				     CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND };
	struct answer found;

	answers_keep(&q, &none);
	assert_true(answers_find(&q, &found));
	assert_null(found.pfn);
	assert_int_equal(found.result, CUDA_ERROR_NOT_FOUND);
}

static void test_a_name_may_be_of_any_length(void **state)
{
	struct answer found;
	char name[300];

	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	struct question q = { &driver, name, 12000, 0 };
	answers_keep(&q, &answer);
	assert_false(answers_find(&q, &found));
}

/* More than there is room for: the first stay, the last are asked again, and no search goes on forever. */
static void test_it_fills_up(void **state)
{
	struct answer found;
	int found_count = 0;

	for (int i = 0; i < 10000; i++) {
		struct question q = { &driver, "cuLaunchKernel", i, 0 };
		struct answer a = { (void *)(uintptr_t)(i + 1), CUDA_SUCCESS, 0 };
		answers_keep(&q, &a);
	}
	for (int i = 0; i < 10000; i++) {
		struct question q = { &driver, "cuLaunchKernel", i, 0 };
		if (!answers_find(&q, &found))
			continue;
		assert_ptr_equal(found.pfn, (void *)(uintptr_t)(i + 1));
		found_count++;
	}
	assert_in_range(found_count, 1000, 9999);
	assert_true(answers_find(&asked, &found));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_answer_is_found_again),
		cmocka_unit_test(test_every_part_of_the_question_counts),
		cmocka_unit_test(test_what_is_not_there_is_an_answer_too),
		cmocka_unit_test(test_a_name_may_be_of_any_length),
		cmocka_unit_test(test_it_fills_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
