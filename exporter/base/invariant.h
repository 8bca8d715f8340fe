/* What must hold whatever a peer, a file or the machine does. It stays on in every build:
 *
 *     invariant(record->refs > 0);
 *     invariant(!node->is_listed);
 *
 * A failed one writes its file, line and words to stderr and aborts; the next start recovers from that as it
 * does from kill -9. For what our own code has promised, at locks, threads, reference counts, lists and state
 * transitions. What comes from a file or the network is input: a failed check there is an error. Any thread;
 * allocates nothing. */
#pragma once

#define invariant(condition) \
    (__builtin_expect(!!(condition), 1) ? (void)0 : invariant_failed(__FILE__, __LINE__, #condition))

_Noreturn void invariant_failed(const char *file, int line, const char *words);

/* Writes "dynamic-scoring: " and the formatted text as one line to stderr, cut after 512 bytes, and aborts.
 * The text must not contain a secret, since nothing is hidden in it. */
_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
