/* Sentences of conditions that have parts which may be absent. Each is a pure function of its facts: it
 * appends to the buffer, and reads nothing else. Any thread. */
#pragma once

#include "controller/hub/rules/rules.h"
#include "exporter/base/buf.h"

/* "waiting for 3 ManifestWorks to be deleted: c1 and 2 more; failed on c1: forbidden" */
struct deleting_facts {
    size_t n;            /* ManifestWorks that are still there */
    const char *first;   /* a cluster that has one; NULL: not known */
    const char *failing; /* a cluster whose ManifestWork cannot be deleted, NULL for none, */
    const char *error;   /* and why */
};
void sentence_deleting(struct buf *b, const struct deleting_facts *f);

/* "not distributed to 2 of 300 clusters: c1: no such namespace" */
struct clusters_facts {
    const char *what; /* "not distributed to" */
    size_t n, of;
    const char *first; /* one of the n; NULL: none is named */
    const char *why;   /* of that one; NULL or "": not known */
};
void sentence_clusters(struct buf *b, const struct clusters_facts *f);

/* "; not on 3 clusters without the add-on dynamic-scoring: c1 and 2 more" */
struct without_addon_facts {
    size_t n;
    const char *addon, *first;
};
void sentence_put_without_addon(struct buf *b, const struct without_addon_facts *f);

/* "the summary is valid, with a warning: ...; the last one stays active until the new /config has been
 * read" */
struct summary_facts {
    enum effective_reason reason;
    const char *error;   /* unless the reason is EFFECTIVE_OK */
    const char *warning; /* "" for none */
    bool is_harmless;    /* rounds succeed in spite of the warning */
    bool is_kept;        /* an earlier summary is in force */
};
void sentence_summary(struct buf *b, const struct summary_facts *f);
