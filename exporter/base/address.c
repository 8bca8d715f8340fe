#include "exporter/base/address.h"

#include "exporter/base/def.h"

#include <netinet/in.h>
#include <string.h>

struct prefix {
    uint8_t bytes[16];
    unsigned bits;
};

static const struct prefix not_public_4[] = {
    {{0}, 8},             /* this network */
    {{10}, 8},            /* private */
    {{100, 64}, 10},      /* shared: carriers, pods of some clouds */
    {{127}, 8},           /* loopback */
    {{169, 254}, 16},     /* link-local: the clouds' metadata services */
    {{172, 16}, 12},      /* private */
    {{192, 0, 0}, 24},    /* protocol assignments */
    {{192, 0, 2}, 24},    /* documentation */
    {{192, 88, 99}, 24},  /* 6to4 relays, deprecated */
    {{192, 168}, 16},     /* private */
    {{198, 18}, 15},      /* benchmarks */
    {{198, 51, 100}, 24}, /* documentation */
    {{203, 0, 113}, 24},  /* documentation */
    {{224}, 3},           /* multicast, reserved, broadcast */
};

/* IPv6 prefixes of addresses that embed an IPv4 address at byte `at`. */
static const struct {
    struct prefix prefix;
    unsigned at;
} embedded[] = {
    {{{[10] = 0xff, 0xff}, 96}, 12},      /* ::ffff:0:0/96, mapped */
    {{{0x00, 0x64, 0xff, 0x9b}, 96}, 12}, /* 64:ff9b::/96, NAT64 */
    {{{0x20, 0x02}, 16}, 2},              /* 2002::/16, 6to4 */
};

/* Global unicast, and its parts that are not public. All other addresses are special or unassigned. */
static const struct prefix unicast_6 = {{0x20}, 3};
static const struct prefix not_public_6[] = {
    {{0x20, 0x01, 0x00}, 23},       /* protocol assignments, Teredo */
    {{0x20, 0x01, 0x0d, 0xb8}, 32}, /* documentation */
    {{0x3f, 0xff}, 20},             /* documentation */
};

static bool has_prefix(const uint8_t *address, const struct prefix *p)
{
    unsigned whole = p->bits / 8, rest = p->bits % 8;
    uint8_t mask = (uint8_t)(0xff00u >> rest);

    return memcmp(address, p->bytes, whole) == 0 &&
           (rest == 0 || (address[whole] & mask) == (p->bytes[whole] & mask));
}

static bool has_any(const uint8_t *address, const struct prefix *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (has_prefix(address, &list[i]))
            return true;
    return false;
}

static bool is_public_4(const uint8_t *address)
{
    return !has_any(address, not_public_4, ARRAY_SIZE(not_public_4));
}

static bool is_public_6(const uint8_t *address)
{
    for (size_t i = 0; i < ARRAY_SIZE(embedded); i++)
        if (has_prefix(address, &embedded[i].prefix))
            return is_public_4(address + embedded[i].at);
    return has_prefix(address, &unicast_6) && !has_any(address, not_public_6, ARRAY_SIZE(not_public_6));
}

bool address_is_public(const struct sockaddr *a)
{
    struct sockaddr_in in4;
    struct sockaddr_in6 in6;

    switch (a->sa_family) {
    case AF_INET:
        memcpy(&in4, a, sizeof(in4));
        return is_public_4((const uint8_t *)&in4.sin_addr);
    case AF_INET6:
        memcpy(&in6, a, sizeof(in6));
        return is_public_6(in6.sin6_addr.s6_addr);
    default:
        return false;
    }
}
