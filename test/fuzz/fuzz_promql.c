/* A query is either refused with its place, or makes a plan within its limits whose regular expressions can
 * be matched; white space and comments around it change nothing. */
#include "exporter/base/buf.h"
#include "exporter/base/regex.h"
#include "exporter/promql/plan.h"
#include "exporter/promql/promql.h"

#include <errno.h>

static void require(bool good)
{
    if (!good)
        abort();
}

static void check_plan(const struct promql_plan *plan)
{
    struct regex_matcher *m = NULL;

    require(regex_matcher_new(&m) == 0);
    require(plan->n_matchers > 0 && plan->n_matchers <= PLAN_MAX_MATCHERS);
    for (size_t i = 0; i < plan->n_matchers; i++) {
        const struct tsdb_matcher *x = &plan->matchers[i];

        require((x->regex != NULL) == (x->op == TSDB_RE || x->op == TSDB_NRE));
        if (x->regex)
            require(regex_match(m, x->regex, STR("a")) != -EINVAL);
    }
    for (size_t i = 0; i < plan->n_aggregations; i++)
        for (size_t k = 1; k < plan->aggregations[i]->n_labels; k++)
            require(str_cmp(plan->aggregations[i]->labels[k - 1], plan->aggregations[i]->labels[k]) < 0);
    require(promql_reach(plan) >= 1);
    (void)regex_matcher_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str query = {(const char *)data, size};
    struct promql_plan *plan = NULL, *again = NULL;
    char why[PROMQL_WHY_BYTES] = "";
    int r = promql_parse(&plan, query, query, why);
    BUF_AUTO(text, 64u << 20);

    require(r == 0 || (r == -EINVAL && strncmp(why, "line ", 5) == 0));
    if (plan)
        check_plan(plan);
    require(buf_puts(&text, "# a\n\t") == 0 && buf_put_str(&text, query) == 0);
    require(buf_puts(&text, "\n#b") == 0);
    if (plan) {
        require(promql_parse(&again, buf_str(&text), buf_str(&text), why) == 0);
        require(again->n_matchers == plan->n_matchers && again->function == plan->function);
        require(again->range_ms == plan->range_ms && again->n_aggregations == plan->n_aggregations);
    }
    (void)promql_free(plan);
    (void)promql_free(again);
    return 0;
}
