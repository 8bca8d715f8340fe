/* Printing and reading numbers of three kinds, next to the C library and, where a peer is given, to the
 * fastest libraries: `bench_num [PEER.so]`, see peers/num.cc. */
#include "exporter/num/num.h"
#include "test/bench/gen.h"
#include "test/bench/measure.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>

enum { NUMBERS = 100000, REPEATS = 15 };

struct work {
    double values[NUMBERS];
    char texts[NUMBERS][NUM_MAX + 1];
    size_t sizes[NUMBERS];
    size_t (*print)(char *, double);
    double (*parse)(const char *, size_t);
};

static size_t ours_print(char *to, double v)
{
    return num_put_double(to, v);
}

static double ours_parse(const char *p, size_t n)
{
    double v = 0;

    must(num_parse((struct str){p, n}, &v) == NUM_OK);
    return v;
}

static size_t c_print(char *to, double v)
{
    return (size_t)snprintf(to, 40, "%.17g", v);
}

static double c_parse(const char *p, size_t n)
{
    (void)n;
    return strtod(p, NULL);
}

static void print_all(void *arg)
{
    const struct work *w = arg;
    char to[64];

    for (int i = 0; i < NUMBERS; i++) {
        (void)w->print(to, w->values[i]);
        measure_keep(to);
    }
}

static void parse_all(void *arg)
{
    const struct work *w = arg;

    for (int i = 0; i < NUMBERS; i++)
        must(w->parse(w->texts[i], w->sizes[i]) == w->values[i]);
}

static void measure(struct work *w, const char *who, const char *kind)
{
    measure_print(measure_ms(print_all, w, REPEATS) * 1e6 / NUMBERS, "%s_print_%s", who, kind);
    measure_print(measure_ms(parse_all, w, REPEATS) * 1e6 / NUMBERS, "%s_parse_%s", who, kind);
}

static uint64_t random_u64(void)
{
    static uint64_t x = 88172645463325252;

    x ^= x << 13;
    x ^= x >> 7;
    return x ^= x << 17;
}

static double number_of(const char *kind)
{
    double fraction = (double)(random_u64() >> 11) / 9007199254740992.0, v;

    if (strcmp(kind, "any") != 0)
        return strcmp(kind, "short") == 0 ? floor(fraction * 10000) / 100 : fraction;
    do {
        v = double_of(random_u64() >> 1);
    } while (!isfinite(v));
    return v;
}

int main(int argc, char **argv)
{
    static struct work w;
    void *peer = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;

    measure_init();
    for (const char *const *kind = (const char *const[]){"short", "long", "any", NULL}; *kind; kind++) {
        for (int i = 0; i < NUMBERS; i++) {
            w.values[i] = number_of(*kind);
            w.sizes[i] = num_put_double(w.texts[i], w.values[i]);
            w.texts[i][w.sizes[i]] = '\0';
        }
        w.print = ours_print;
        w.parse = ours_parse;
        measure(&w, "ours", *kind);
        w.print = c_print;
        w.parse = c_parse;
        measure(&w, "c", *kind);
        if (!peer)
            continue;
        *(void **)&w.print = dlsym(peer, "peer_print");
        *(void **)&w.parse = dlsym(peer, "peer_parse");
        must(w.print && w.parse);
        measure(&w, "peer", *kind);
    }
    return 0;
}
