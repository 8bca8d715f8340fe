#include "remotewrite/body_v2.h"

#include "exporter/base/arena.h"
#include "exporter/base/hash.h"
#include "exporter/metric/series.h"
#include "remote_v1.pb-c.h"
#include "remote_v2.pb-c.h"

#include <errno.h>

enum { CHUNK_BYTES = 256 << 10 };

/* Memory for the message read: protobuf-c allocates a dozen pieces per series, all freed at once. */
static void *message_alloc(void *arg, size_t n)
{
    return arena_alloc(arg, n);
}

static void message_free(void *arg, void *p)
{
    (void)arg;
    (void)p;
}

/* The parts of a 2.0 message; strings stay where protobuf-c put them. */
struct v2_message {
    struct arena memory; /* of all below */
    Rw__V1__WriteRequest *v1;
    char **symbols;
    size_t n_symbols;
    uint32_t *slots; /* indices of symbols by hash; 0: free, because the empty string is never looked up */
    size_t mask;
    uint32_t *refs;
    Rw__V2__TimeSeries *series, **series_places;
    Rw__V2__Sample *samples, **sample_places;
    Rw__V2__Metadata *metadata; /* one per series; refer to help */
    const struct families *own;
};

static void v2_message_done(struct v2_message *m)
{
    arena_done(&m->memory);
}

static void v2_count(const Rw__V1__WriteRequest *rq, size_t *ret_labels, size_t *ret_samples)
{
    *ret_labels = *ret_samples = 0;
    for (size_t i = 0; i < rq->n_timeseries; i++) {
        *ret_labels += rq->timeseries[i]->n_labels;
        *ret_samples += rq->timeseries[i]->n_samples;
    }
}

static int v2_message_reserve(struct v2_message *m)
{
    size_t labels, samples, slots = 16, n = m->v1->n_timeseries;

    v2_count(m->v1, &labels, &samples);
    while (slots < (2 * labels + n + 2) * 2)
        slots *= 2;
    m->mask = slots - 1;
    if (!(m->slots = arena_alloc(&m->memory, slots * sizeof(m->slots[0]))) ||
        !(m->symbols = arena_alloc(&m->memory, (2 * labels + n + 2) * sizeof(char *))) ||
        !(m->refs = arena_alloc(&m->memory, 2 * labels * sizeof(m->refs[0]))) ||
        !(m->series = arena_alloc(&m->memory, n * sizeof(m->series[0]))) ||
        !(m->series_places = arena_alloc(&m->memory, n * sizeof(m->series_places[0]))) ||
        !(m->samples = arena_alloc(&m->memory, samples * sizeof(m->samples[0]))) ||
        !(m->metadata = arena_alloc(&m->memory, n * sizeof(m->metadata[0]))) ||
        !(m->sample_places = arena_alloc(&m->memory, samples * sizeof(m->sample_places[0]))))
        return -ENOMEM;
    memset(m->slots, 0, slots * sizeof(m->slots[0]));
    return 0;
}

static uint32_t v2_symbol(struct v2_message *m, char *text)
{
    size_t i;

    if (!*text)
        return 0;
    i = hash_bytes(str_of(text)) & m->mask;
    while (m->slots[i]) {
        if (strcmp(m->symbols[m->slots[i]], text) == 0)
            return m->slots[i];
        i = (i + 1) & m->mask;
    }
    m->symbols[m->n_symbols] = text;
    return m->slots[i] = (uint32_t)m->n_symbols++;
}

static const struct family score_family = {.type = FAMILY_GAUGE, .help = SCORE_HELP};

/* NULL if unknown: of own metrics from before a restart that relabelling renamed. */
static const struct family *v2_family(const struct v2_message *m, const Rw__V1__TimeSeries *s)
{
    if (!m->own)
        return &score_family;
    for (size_t i = 0; i < s->n_labels; i++)
        if (strcmp(s->labels[i]->name, "__name__") == 0)
            return families_find(m->own, str_of(s->labels[i]->value));
    return NULL;
}

static void v2_set_metadata(struct v2_message *m, const struct family *f, Rw__V2__TimeSeries *to,
                            Rw__V2__Metadata *metadata)
{
    rw__v2__metadata__init(metadata);
    metadata->has_type = metadata->has_help_ref = true;
    metadata->type = (Rw__V2__Metadata__Type)f->type;
    metadata->help_ref = v2_symbol(m, (char *)(uintptr_t)f->help);
    to->metadata = metadata;
}

static void v2_set_sample(const struct v2_message *m, const struct family *f, const Rw__V1__Sample *from,
                          Rw__V2__Sample *to)
{
    rw__v2__sample__init(to);
    to->has_value = to->has_timestamp = true;
    to->value = from->value;
    to->timestamp = from->timestamp;
    /* Samples from before are of an earlier process. */
    if (m->own && f && f->type != FAMILY_GAUGE && m->own->started_ms &&
        m->own->started_ms <= from->timestamp) {
        to->has_start_timestamp = true;
        to->start_timestamp = m->own->started_ms;
    }
}

/* Adds series i; refs and samples come from the shared arrays, from *refs and *samples on. */
static void v2_message_add(struct v2_message *m, size_t i, size_t *refs, size_t *samples)
{
    const Rw__V1__TimeSeries *from = m->v1->timeseries[i];
    Rw__V2__TimeSeries *to = m->series_places[i] = &m->series[i];
    const struct family *family = v2_family(m, from);

    rw__v2__time_series__init(to);
    to->labels_refs = m->refs + *refs;
    to->n_labels_refs = 2 * from->n_labels;
    for (size_t k = 0; k < from->n_labels; k++) {
        m->refs[(*refs)++] = v2_symbol(m, from->labels[k]->name);
        m->refs[(*refs)++] = v2_symbol(m, from->labels[k]->value);
    }
    if (family)
        v2_set_metadata(m, family, to, &m->metadata[i]);
    to->samples = m->sample_places + *samples;
    to->n_samples = from->n_samples;
    for (size_t k = 0; k < from->n_samples; k++, (*samples)++) {
        m->sample_places[*samples] = &m->samples[*samples];
        v2_set_sample(m, family, from->samples[k], &m->samples[*samples]);
    }
}

int body_v2_message(struct str v1, const struct families *own, struct buf *into)
{
    static char empty[] = "";
    CLEANUP(v2_message_done) struct v2_message m = {.memory = {.chunk_bytes = CHUNK_BYTES}, .own = own};
    ProtobufCAllocator memory = {.alloc = message_alloc, .free = message_free, .allocator_data = &m.memory};
    Rw__V2__Request rq = RW__V2__REQUEST__INIT;
    size_t refs = 0, samples = 0;
    char *room;
    int r;

    m.v1 = rw__v1__write_request__unpack(&memory, v1.n, (const uint8_t *)v1.p);
    if (!m.v1)
        return -EBADMSG;
    r = v2_message_reserve(&m);
    if (r < 0)
        return r;
    m.symbols[m.n_symbols++] = empty;
    for (size_t i = 0; i < m.v1->n_timeseries; i++)
        v2_message_add(&m, i, &refs, &samples);
    rq.symbols = m.symbols;
    rq.n_symbols = m.n_symbols;
    rq.timeseries = m.series_places;
    rq.n_timeseries = m.v1->n_timeseries;
    r = buf_room(into, rw__v2__request__get_packed_size(&rq), &room);
    if (r == 0)
        into->n += rw__v2__request__pack(&rq, (uint8_t *)room);
    return r;
}
