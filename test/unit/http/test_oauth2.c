/* What an answer of the token endpoint means: a token, the other way to authenticate, or a back-off. */
#include "test/unit/http/http_world.h"

static int setup(void **state)
{
    *state = world_new(fake_new(), fake_new());
    return 0;
}

/* The call waits for its token; e->other is the token endpoint, and refuses what is not pushed. */
static void judges_answers(void **state)
{
    static const struct {
        struct fake_answer answer;
        unsigned token_requests;
        bool is_called; /* with the token */
    } cases[] = {
        {{.body = "{\"access_token\":\"t\"}"}, 1, true},
        {{.status = 201, .body = "{\"access_token\":\"t\"}"}, 1, true},
        {{.body = "{}"}, 1, false},
        {{.status = 302, .location = "/"}, 1, false},
        {{.status = 400}, 2, false},
        {{.status = 401}, 2, false},
        {{.status = 403}, 1, false},
        {{.status = 404}, 1, false},
        {{.status = 422}, 1, false},
        {{.status = 429}, 1, false},
        {{.status = 500}, 1, false},
        {{.status = 503}, 1, false},
        {{.mode = FAKE_RAW, .body = "SSH-2.0\r\n"}, 1, false},
    };
    struct env *e = *state;
    unsigned token_requests = 0, calls = 0;

    fake_default(e->other, (struct fake_answer){.status = 401});
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_request rq = rq_of(fake_url(e->server, "/"));
        char id[16];
        struct http_oauth2 oauth2 = {.token_url = fake_url(e->other, "/token"),
                                     .client_id = {id, (size_t)snprintf(id, sizeof(id), "client%zu", i)},
                                     .client_secret = STR("a secret"),
                                     .form = STR("grant_type=client_credentials")};
        struct got g;

        rq.oauth2 = &oauth2;
        fake_push(e->other, cases[i].answer);
        call(e, &rq, &g);
        if (cases[i].is_called)
            assert_ok(&g, 200);
        else
            assert_failed(&g, CAUSE_TOKEN);
        buf_done(&g.body);
        token_requests += cases[i].token_requests;
        calls += cases[i].is_called;
        assert_int_equal(fake_requests(e->other), token_requests);
        assert_int_equal(fake_requests(e->server), calls);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(judges_answers, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
