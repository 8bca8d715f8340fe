/* Owns nothing. Called by status.c as it computes conditions, and by nothing else. */
#include "controller/hub/state/sentences.h"

#include "exporter/base/text.h"

static void sentence_put_more(struct buf *b, size_t n)
{
    if (n > 1)
        buf_printf(b, " and %zu more", n - 1);
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
    buf_printf(b, "%s %zu of ", f->what, f->n);
    text_count(b, f->of, "cluster");
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
