/* Addresses of the public Internet. */
#ifndef DS_BASE_ADDRESS_H
#define DS_BASE_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

/* Whether the address is globally reachable according to IANA's special-purpose registries (RFC 6890): not
 * loopback, private, shared, link-local, reserved, multicast, documentation or benchmarking. For an IPv6
 * address that embeds an IPv4 address (mapped, NAT64, 6to4) the IPv4 address decides. False for other
 * families. */
bool address_is_public(const struct sockaddr *a);

#endif
