/* Owns nothing. Called by the files of this folder that make conditions, and by nothing else. */
#include "controller/hub/follows/sentences.h"

#include "controller/hub/rules/work.h"
#include "exporter/base/text.h"

static void sentence_put_more(struct buf *b, size_t n)
{
    if (n > 1)
        buf_printf(b, " and %zu more", n - 1);
}

/* "a, b and 3 more" */
static void sentence_put_names(struct buf *b, const struct named_facts *names)
{
    for (size_t i = 0; i < names->n; i++) {
        if (i > 0)
            buf_puts(b, ", ");
        buf_puts(b, names->list[i]);
    }
    if (names->total > names->n)
        buf_printf(b, " and %zu more", names->total - names->n);
}

/* "2 of 3 clusters" */
static void sentence_put_share(struct buf *b, size_t n, size_t of)
{
    buf_printf(b, "%zu of ", n);
    text_count(b, of, "cluster");
}

void sentence_deleting(struct buf *b, const struct deleting_facts *f)
{
    buf_puts(b, "waiting for ");
    text_count(b, f->n, "ManifestWork");
    buf_puts(b, " to be deleted");
    if (f->first) {
        buf_puts(b, ": ");
        buf_puts(b, f->first);
        sentence_put_more(b, f->n);
    }
    if (f->failing)
        buf_printf(b, "; failed on %s: %s", f->failing, f->error);
}

void sentence_clusters(struct buf *b, const struct clusters_facts *f)
{
    buf_puts(b, f->what);
    buf_putc(b, ' ');
    sentence_put_share(b, f->n, f->of);
    if (!f->first)
        return;
    buf_puts(b, ": ");
    buf_puts(b, f->first);
    if (*cstr(f->why)) {
        buf_puts(b, ": ");
        buf_puts(b, f->why);
    }
}

void sentence_put_without_addon(struct buf *b, const struct without_addon_facts *f)
{
    buf_puts(b, "; not on ");
    text_count(b, f->n, "cluster");
    buf_printf(b, " without the add-on %s: %s", f->addon, f->first);
    sentence_put_more(b, f->n);
}

void sentence_summary(struct buf *b, const struct summary_facts *f)
{
    if (f->reason != EFFECTIVE_OK) {
        buf_puts(b, f->error);
        if (f->is_kept)
            buf_puts(b, "; the last valid summary stays active");
        return;
    }
    buf_puts(b, "the summary is valid");
    if (*f->warning) {
        buf_puts(b, f->is_harmless ? ", with a warning: " : ", but its rounds will fail: ");
        buf_puts(b, f->warning);
    }
    if (f->is_kept)
        buf_puts(b, "; the last one stays active until the new /config has been read");
}

void sentence_placement(struct buf *b, const struct placement_facts *f)
{
    if (f->error) {
        buf_puts(b, "cannot be read: ");
        buf_puts(b, f->error);
    } else if (!f->exists) {
        buf_puts(b, "does not exist in namespace ");
        buf_puts(b, f->namespace);
    } else {
        buf_puts(b, "selects no cluster");
        if (*f->says)
            buf_printf(b, ": %s", f->says);
    }
}

void sentence_contested(struct buf *b, const char *text, size_t others)
{
    buf_puts(b, text);
    if (others) {
        buf_puts(b, "; likewise for ");
        text_count(b, others, "other object");
    }
}

void sentence_distributed(struct buf *b, size_t n)
{
    buf_puts(b, n == 1 ? "distributed to " : "distributed to all ");
    text_count(b, n, "cluster");
}

static void sentence_put_warnings(struct buf *b, const struct masks_facts *f)
{
    for (size_t i = 0; i < f->n_warnings; i++) {
        if (i > 0)
            buf_puts(b, "; ");
        buf_put_str(b, f->warnings[i]);
    }
    if (f->idle > f->n_warnings)
        buf_printf(b, "; and %zu more", f->idle - f->n_warnings);
}

void sentence_masks(struct buf *b, const struct masks_facts *f)
{
    buf_printf(b, "%zu of ", f->idle);
    text_count(b, f->n, "mask");
    buf_puts(b, f->idle == 1 ? " matches nothing: " : " match nothing: ");
    sentence_put_warnings(b, f);
}

void sentence_adjustments(struct buf *b, const struct masks_facts *f)
{
    buf_printf(b, "%zu of ", f->idle);
    text_count(b, f->n, "adjustment");
    buf_puts(b, f->idle == 1 ? " changes nothing: " : " change nothing: ");
    sentence_put_warnings(b, f);
}

void sentence_no_room_for(struct buf *b, const struct named_facts *scorers)
{
    buf_puts(b, "no room for ");
    text_count(b, scorers->total, "DynamicScorer");
    buf_printf(b,
               " in the ManifestWorks of some clusters, which hold at most %d KiB: ", WORK_MAX_BYTES / 1024);
    sentence_put_names(b, scorers);
}

void sentence_put_outdated(struct buf *b, const struct outdated_facts *f)
{
    static const char *const instead[FEATURES] = {
        [FEATURE_SCORE_ITEMS] = "scoreItems and use the first only",
        [FEATURE_REVERSED_RANGE] = "a scoreRange whose min is above its max and do not get this scorer",
        [FEATURE_SCORE_TOLERANCE] = "scoreTolerance and write every change",
        [FEATURE_SCORING_CLUSTER] = "${cluster} in the scoring endpoint and send it as it is",
        [FEATURE_ADJUSTMENTS] = "adjustments and write scores as they are",
    };

    buf_puts(b, "; agents on ");
    sentence_put_share(b, f->clusters->total, f->of);
    buf_puts(b, " are too old for ");
    buf_puts(b, instead[f->feature]);
    buf_puts(b, ": ");
    sentence_put_names(b, f->clusters);
}

void sentence_reported(struct buf *b, const struct reported_facts *f)
{
    if (!f->unhealthy) {
        buf_puts(b, "healthy on ");
        sentence_put_share(b, f->healthy, f->selected);
        return;
    }
    buf_puts(b, "unhealthy on ");
    sentence_put_share(b, f->unhealthy, f->selected);
    buf_printf(b, ": %s", f->first);
    if (f->error)
        buf_printf(b, ": %.*s", SENTENCE_REASON_BYTES, f->error);
    buf_printf(b, "; healthy on %zu", f->healthy);
}

void sentence_put_verdict(struct buf *b, const struct verdict_facts *f)
{
    if (f->is_kept) {
        buf_puts(b, "; still distributed, as --keep-unhealthy is set");
    } else if (f->scored_meanwhile) {
        buf_puts(b, "; agents on ");
        sentence_put_share(b, f->scored_meanwhile, f->selected);
        buf_puts(b, " have called it successfully since: if only the hub cannot reach it, set "
                    "spec.healthCheck to Agents");
    }
}

void sentence_synced(struct buf *b, const struct synced_facts *f)
{
    if (!f->error) {
        buf_puts(b, "the configuration was read from the scoring API");
        if (f->overrides.n) {
            buf_puts(b, "; in mode Full it overrides ");
            buf_put_str(b, f->overrides);
        }
        return;
    }
    buf_puts(b, f->error);
    if (f->has_last)
        buf_puts(b, "; the last valid configuration stays active");
    else if (f->uses_spec)
        buf_puts(b, "; none has been read yet, so the fields of the DynamicScorer are active");
    else
        buf_puts(b, "; no configuration has been read yet");
}

void sentence_spec(struct buf *b, const struct spec_facts *f)
{
    buf_puts(b, f->error);
    if (f->has_last_spec)
        buf_puts(b, "; the last valid spec stays active");
    else if (f->has_last_summary)
        buf_puts(b, "; the last valid summary stays active");
}

void sentence_duplicate(struct buf *b, const struct duplicate_facts *f)
{
    const char *age = f->is_other_older ? "older" : "younger";

    if (f->other_score_name) {
        buf_printf(b, "score name %.256s maps to AddOnPlacementScore %s", f->score_name, f->object);
        buf_printf(b, ", as does score name %.256s of the %s DynamicScorer %s", f->other_score_name, age,
                   f->other);
        buf_puts(b, f->is_other_older ? "; this one is not distributed"
                                      : "; the younger one is not distributed");
    } else if (f->is_other_older) {
        buf_printf(b, "score name %s belongs to the older DynamicScorer %s", f->score_name, f->other);
        buf_puts(b, "; this one is not distributed");
    } else {
        buf_printf(b, "score name %s is also used by the younger DynamicScorer %s", f->score_name, f->other);
        buf_puts(b, ", which is not distributed");
    }
}

void sentence_put_class(struct buf *b, const struct class_facts *f)
{
    buf_printf(b, "%s on ", f->word);
    if (f->of)
        sentence_put_share(b, f->n, f->of);
    else
        buf_printf(b, "%zu", f->n);
    if (!f->first)
        return;
    buf_printf(b, ": %s: %.*s", f->first, SENTENCE_REASON_BYTES, f->why);
    if (f->n > 1)
        buf_printf(b, ", and %zu more", f->n - 1);
}

enum { READY_SYNCED_BYTES = 300, READY_DISTRIBUTED_BYTES = 300 }; /* of parts of a message */

void sentence_ready(struct buf *b, const struct ready_facts *f)
{
    if (f->unsynced)
        buf_printf(b, "%.*s; ", READY_SYNCED_BYTES, f->unsynced);
    if (f->partly_distributed)
        buf_printf(b, "%.*s; ", READY_DISTRIBUTED_BYTES, f->partly_distributed);
    buf_puts(b, f->scoring);
}
