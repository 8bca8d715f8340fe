/* Which addresses the public Internet has. */
#ifndef DS_BASE_ADDRESS_H
#define DS_BASE_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

/* Whether the address is globally reachable by IANA's special-purpose registries (RFC 6890): not loopback,
 * private, shared, link-local, reserved, multicast, for documentation or benchmarks. An IPv6 address that
 * embeds an IPv4 address (mapped, NAT64, 6to4) is judged by that one. Anything but IP is not public. */
bool address_is_public(const struct sockaddr *a);

#endif
