/* What an answer of a language model's server means for the question, and for the others. */
#include "exporter/base/def.h"
#include "exporter/http/cause.h"
#include "exporter/models/llm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct {
    long status;
    enum http_error error;
    enum llm_verdict verdict;
} cases[] = {
    {100, HTTP_OK, LLM_GIVE_UP_ALL},  {200, HTTP_OK, LLM_ANSWER},      {299, HTTP_OK, LLM_ANSWER},
    {302, HTTP_OK, LLM_GIVE_UP_ALL},  {400, HTTP_OK, LLM_GIVE_UP},     {401, HTTP_OK, LLM_GIVE_UP_ALL},
    {403, HTTP_OK, LLM_GIVE_UP_ALL},  {404, HTTP_OK, LLM_GIVE_UP_ALL}, {408, HTTP_OK, LLM_RETRY},
    {413, HTTP_OK, LLM_GIVE_UP},      {422, HTTP_OK, LLM_GIVE_UP},     {425, HTTP_OK, LLM_RETRY},
    {429, HTTP_OK, LLM_RETRY},        {430, HTTP_OK, LLM_GIVE_UP_ALL}, {500, HTTP_OK, LLM_RETRY},
    {503, HTTP_OK, LLM_RETRY},        {599, HTTP_OK, LLM_RETRY},       {600, HTTP_OK, LLM_GIVE_UP_ALL},
    {0, HTTP_URL, LLM_GIVE_UP_ALL},   {0, HTTP_DNS, LLM_RETRY},        {0, HTTP_CONNECT, LLM_RETRY},
    {0, HTTP_FORBIDDEN, LLM_RETRY},   {0, HTTP_TLS, LLM_GIVE_UP_ALL},  {0, HTTP_TIMEOUT, LLM_RETRY},
    {0, HTTP_TOO_LARGE, LLM_GIVE_UP}, {0, HTTP_BROKEN, LLM_RETRY},     {0, HTTP_REDIRECT, LLM_GIVE_UP_ALL},
    {0, HTTP_MEMORY, LLM_RETRY},      {0, HTTP_AUTH, LLM_RETRY},
};

static void judges_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(llm_judge(cases[i].status, cases[i].error), cases[i].verdict);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(judges_answers)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
