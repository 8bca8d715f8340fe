#include "controller/agent_once.h"

#include "controller/terminal.h"
#include "exporter/agent/scorer.h"
#include "exporter/agent/status.h"
#include "exporter/base/buf.h"
#include "exporter/base/loop.h"
#include "exporter/metric/page.h"
#include "exporter/score/error.h"
#include "exporter/ui/list.h"

#include <errno.h>
#include <stdio.h>

enum { OUTPUT_MAX_BYTES = 1 << 30 };

static int agent_print(const struct agent_state *a, enum output output)
{
    const struct list_query all = list_query_all();
    BUF_AUTO(text, OUTPUT_MAX_BYTES);
    int r = output == OUTPUT_JSON   ? status_json(a, &all, &text)
            : output == OUTPUT_PROM ? page_print(a->page, &text)
                                    : status_table(a, terminal_width(), &text);

    if (r < 0) {
        (void)fprintf(stderr, "cannot print: %s\n", strerror(-r));
        return 1;
    }
    if (fwrite(text.p, 1, text.n, stdout) != text.n || fflush(stdout) != 0) {
        (void)fprintf(stderr, "cannot print: %s\n", strerror(errno));
        return 1;
    }
    for (size_t i = 0; i < a->n_scorers; i++)
        if (scorer_status(a->scorers[i])->rounds == 0 || scorer_status(a->scorers[i])->error != ROUND_OK)
            return 1;
    return 0;
}

/* Without a configuration the loop waits for that of a cluster; it ends without one after an error. */
int agent_run_once(const struct agent_state *a, enum output output)
{
    if ((a->n_scorers || !a->config) && loop_run(a->loop) < 0)
        return 1;
    return a->config ? agent_print(a, output) : 1;
}
