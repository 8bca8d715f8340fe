/* What the tests of remote write share: sets of series, an endpoint's configuration, folders, decoding. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/doc.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/metric/series.h"
#include "remote_v1.pb-c.h"
#include "remotewrite/body.h"
#include "remotewrite/config.h"
#include "remotewrite/labels.h"
#include "remotewrite/relabel.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* A batch of series with nodes prefix00000, ...; values are i + add. */
static inline struct batch *rw_batch_from(struct batch_builder *b, const char *prefix, size_t n, double add,
                                          int64_t at)
{
    struct batch *batch;
    char name[64];

    batch_begin(b, 0, 0);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(name, sizeof(name), "%s%05zu", prefix, i);
        struct batch_labels l = {.value = {[DS_NODE] = str_of(name)}};
        for (int k = 0; k < DS_LABELS; k++)
            if (!l.value[k].p)
                l.value[k] = STR("");
        assert_int_equal(batch_add(b, &l, (double)i + add), 0);
    }
    batch_seal(b, (unix_ms){at}, &batch, NULL);
    return batch;
}

static inline struct batch_builder *rw_builder(const char *score_name)
{
    struct batch_builder *b;

    b = batch_builder_new("c1", score_name, 1000000);
    return b;
}

static inline struct batch *rw_batch(const char *score_name, size_t n, int64_t at)
{
    struct batch_builder *b = rw_builder(score_name);
    struct batch *batch = rw_batch_from(b, "n", n, 0, at);

    (void)batch_builder_free(b);
    return batch;
}

/* The first endpoint of a `remoteWrite` section, written in YAML's flow style. */
static inline struct rw_endpoint_config *rw_endpoint(const char *yaml)
{
    struct problems p;
    struct doc *d;
    void *section = NULL;
    struct rw_endpoint_config *c;

    char text[8192];

    /* What begins with a bracket would be read as JSON. */
    (void)snprintf(text, sizeof(text), "remoteWrite: %s", yaml);
    problems_init(&p, "test");
    assert_int_equal(doc_parse(&d, str_of(text), &p), 0);
    assert_int_equal(rw_config_section.parse(node_get(d->root, "remoteWrite"), &p, &section), 0);
    assert_int_equal(p.errors, 0);
    c = rw_endpoint_config_ref(((struct rw_config *)section)->list[0]);
    rw_config_section.done(section);
    (void)doc_free(d);
    problems_done(&p);
    return c;
}

/* The metric's name and labels of `name;a=1;b=2`. */
static inline size_t rw_split_labels(const char *text, struct label *ret)
{
    const char *p = text + strcspn(text, ";");
    size_t n = 0;

    ret[n++] = (struct label){STR("__name__"), {text, (size_t)(p - text)}};
    while (*p == ';') {
        size_t name, end;

        p++;
        name = strcspn(p, "=");
        end = strcspn(p, ";");
        ret[n++] = (struct label){{p, name}, {p + name + 1, end - name - 1}};
        p += end;
    }
    return n;
}

/* Packs such labels with what the endpoint's configuration has beside its URL: 1, 0 if a rule drops them,
 * -EINVAL if they are invalid, -ELOOP if an expression exceeds its limits. */
static inline int rw_pack(const char *labels, const char *config, struct buf *into)
{
    char yaml[4096];
    struct label list[2 * LABELS_MAX];
    struct rw_endpoint_config *c;
    struct label_maker *m;
    struct label_bytes *l;
    int r;

    (void)snprintf(yaml, sizeof(yaml), "[{url: 'http://h/'%s}]", config);
    c = rw_endpoint(yaml);
    m = label_maker_new(c);
    r = label_maker_add(m, list, rw_split_labels(labels, list), 0);
    l = label_maker_end(m);
    r = l->invalid ? -EINVAL : l->over_limit ? -ELOOP : r;
    if (r == 1)
        buf_put_str(into, label_bytes_at(l, 0));
    assert_int_equal(buf_failed(into), 0);
    (void)label_bytes_free(l);
    (void)label_maker_free(m);
    (void)rw_endpoint_config_unref(c);
    return r;
}

/* The packed labels as `name=value;...`, terminated. */
static inline void rw_print_labels(struct str packed, struct buf *into)
{
    Rw__V1__TimeSeries *s = rw__v1__time_series__unpack(NULL, packed.n, (const uint8_t *)packed.p);

    assert_non_null(s);
    for (size_t i = 0; i < s->n_labels; i++)
        buf_printf(into, "%s=%s;", s->labels[i]->name, s->labels[i]->value);
    buf_putc(into, '\0');
    assert_int_equal(buf_failed(into), 0);
    rw__v1__time_series__free_unpacked(s, NULL);
}

static inline Rw__V1__WriteRequest *rw_decode(struct str block)
{
    BUF_AUTO(message, BODY_MAX);
    Rw__V1__WriteRequest *rq;

    assert_int_equal(body_unpack(block, &message), 0);
    rq = rw__v1__write_request__unpack(NULL, message.n, (const uint8_t *)message.p);
    assert_non_null(rq);
    return rq;
}

static inline uint64_t rw_bits(double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    return bits;
}

static inline double rw_double(uint64_t bits)
{
    double v;

    memcpy(&v, &bits, sizeof(v));
    return v;
}

/* An empty folder, and its end. */
static inline char *rw_folder(void)
{
    char *path = strdup("/tmp/ds-rw-XXXXXX");

    assert_non_null(mkdtemp(path));
    return path;
}

static inline void rw_folder_done(char *path)
{
    char command[256];

    (void)snprintf(command, sizeof(command), "rm -rf '%s'", path);
    assert_int_equal(system(command), 0);
    free(path);
}
