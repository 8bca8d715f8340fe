/* Sentences of conditions that have parts which may be absent. Each is a pure function of its facts: it
 * appends to the buffer, and reads nothing else. test_sentences.c has facts and words. Any thread. */
#pragma once

#include "controller/hub/rules/effective.h"
#include "exporter/base/buf.h"
#include "exporter/score/feature.h"

/* Room for all parts of a sentence; the message of a condition cuts it. */
enum { SENTENCE_BYTES = 4096 };
enum { SENTENCE_REASON_BYTES = 250 }; /* of a reason, in a sentence that gives several */

/* Names in a sentence: the first n of `total`. */
struct named_facts {
    const char *const *list;
    size_t n, total;
};

/* "waiting for 3 ManifestWorks to be deleted: c1 and 2 more; failed on c1: forbidden" */
struct deleting_facts {
    size_t n;            /* ManifestWorks that are still there */
    const char *first;   /* a cluster that has one; NULL: not known */
    const char *failing; /* a cluster whose ManifestWork cannot be deleted, NULL for none, */
    const char *error;   /* and why */
};
void sentence_deleting(struct buf *b, const struct deleting_facts *f);

/* "ManifestWork not written on 2 of 300 clusters: c1: no such namespace" */
struct clusters_facts {
    const char *what; /* "ManifestWork not written on" */
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

/* What is wrong with a Placement: "selects no cluster: no ManagedClusterSet" */
struct placement_facts {
    const char *error; /* why Placements cannot be read; NULL: they can */
    bool exists;
    const char *namespace;
    const char *says; /* what its own condition says; "": nothing */
};
void sentence_placement(struct buf *b, const struct placement_facts *f);

/* "... keeps changing the status of ...; likewise for 2 other objects" */
void sentence_contested(struct buf *b, const char *text, size_t others);

/* "distributed to all 3 clusters" */
void sentence_distributed(struct buf *b, size_t n);

/* "2 of 9 masks match nothing: no cluster matches clusterName "c1"; ...; and 3 more" */
struct masks_facts {
    size_t n, idle;
    const struct str *warnings; /* of the first of those that are idle */
    size_t n_warnings;
};
void sentence_masks(struct buf *b, const struct masks_facts *f);

/* "no room for 7 DynamicScorers in the ManifestWorks of some clusters, which hold at most 500 KiB: a, b,
 * c, d, e and 2 more" */
void sentence_no_room_for(struct buf *b, const struct named_facts *scorers);

/* Likewise: "1 of 2 adjustments changes nothing: "hour": until has passed" */
void sentence_adjustments(struct buf *b, const struct masks_facts *f);

/* What agents do that are too old for a part of a scorer, or for adjustments: "; agents on 3 of 5 clusters
 * are too old for scoreItems and use the first only: c1, c2 and 1 more" */
struct outdated_facts {
    enum feature feature;
    const struct named_facts *clusters;
    size_t of;
};
void sentence_put_outdated(struct buf *b, const struct outdated_facts *f);

/* "unhealthy on 1 of 3 clusters: c1: timed out; healthy on 2" */
struct reported_facts {
    size_t unhealthy, healthy, selected;
    const char *first; /* a cluster on which it is unhealthy */
    const char *error; /* there; NULL: not known */
};
void sentence_reported(struct buf *b, const struct reported_facts *f);

/* What the verdict that a scoring API is unhealthy means for the clusters, or what speaks against it:
 * "; still distributed, as --keep-unhealthy is set" */
struct verdict_facts {
    bool is_kept;            /* --keep-unhealthy */
    size_t scored_meanwhile; /* clusters whose agents have called it successfully since */
    size_t selected;
};
void sentence_put_verdict(struct buf *b, const struct verdict_facts *f);

/* What was made of /config: "the configuration was read from the scoring API; in mode Full it overrides
 * spec.source.host" */
struct synced_facts {
    const char *error;    /* of the last attempt; NULL: it succeeded */
    struct str overrides; /* fields of the DynamicScorer; empty: none */
    bool has_last;        /* an earlier configuration stays active */
    bool uses_spec;       /* without any, the fields of the DynamicScorer are enough */
};
void sentence_synced(struct buf *b, const struct synced_facts *f);

/* "spec.configURL: expected a string, got 3; the last valid spec stays active" */
struct spec_facts {
    const char *error;
    bool has_last_spec, has_last_summary;
};
void sentence_spec(struct buf *b, const struct spec_facts *f);

/* Two DynamicScorers of one score name, or of names that lead to one AddOnPlacementScore. */
struct duplicate_facts {
    const char *score_name;
    const char *other;            /* the other DynamicScorer */
    const char *other_score_name; /* leads to the same object; NULL: it is the same name */
    const char *object;           /* the AddOnPlacementScore of both */
    bool is_other_older;          /* so that this one is not distributed */
};
void sentence_duplicate(struct buf *b, const struct duplicate_facts *f);

/* One class of clusters: "failing on 2 of 9 clusters: c1: timed out, and 1 more" */
struct class_facts {
    const char *word;
    size_t n;
    size_t of;         /* 0: not said, as another class has */
    const char *first; /* one of them; NULL: none is named */
    const char *why;   /* of that one */
};
void sentence_put_class(struct buf *b, const struct class_facts *f);

/* Why a scorer is ready, and what about it is not as it should be. NULL for each part that is. */
struct ready_facts {
    const char *unsynced, *partly_distributed;
    const char *scoring;
};
void sentence_ready(struct buf *b, const struct ready_facts *f);
