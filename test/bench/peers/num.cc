// Printing by {fmt}, which has Dragonbox, and reading by the C++ library, which has fast_float. bench_num loads it.
#include <charconv>
#include <cstddef>
#include <fmt/compile.h>

extern "C" size_t peer_print(char *to, double v)
{
    return static_cast<size_t>(fmt::format_to(to, FMT_COMPILE("{}"), v) - to);
}

extern "C" double peer_parse(const char *p, size_t n)
{
    double v = 0;

    std::from_chars(p, p + n, v);
    return v;
}
