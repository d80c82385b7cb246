"""Networks that are not part of the public internet.

The standard library also has such a table, but it differs between Python patch versions: some treated 192.0.0.0/24 and
3fff::/20 as public. Cloud metadata addresses are in neither registry.

Sources, as of 2026-11-01:
    IPv4: https://www.iana.org/assignments/iana-ipv4-special-registry and RFC 5771 (multicast)
    IPv6: https://www.iana.org/assignments/iana-ipv6-special-registry and RFC 4291; only 2000::/3 is assigned
    Clouds: the addresses from which virtual machines get their credentials and settings
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address

NOT_PUBLIC_V4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # shared by customers of a provider; Alibaba's 100.100.100.200 is in it
            "127.0.0.0/8",  # loopback
            "168.63.129.16/32",  # Azure's wire server
            "169.254.0.0/16",  # link-local; the metadata of most clouds is at 169.254.169.254
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments; Oracle's 192.0.0.192 is in it
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # relays of 6to4, deprecated
            "192.168.0.0/16",  # private
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
PUBLIC_V6 = IPv6Network("2000::/3")
NOT_PUBLIC_V6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
            "2001:db8::/32",  # documentation
            "3ffe::/16",  # the former test network
            "3fff::/20",  # documentation
        ),
    )
)
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_6TO4 = IPv6Network("2002::/16")
_ISATAP = (0x00005EFE, 0x02005EFE)  # the 32 bits before the IPv4 address: RFC 5214


def is_public(address: Address) -> bool:
    """Return True if an address and any IPv4 address embedded in it are public."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in NOT_PUBLIC_V4)
    inner = inner_address(address)
    if inner is not None and not is_public(inner):
        return False
    if address in _MAPPED or address in _NAT64:  # both lead to the IPv4 address, wherever their own prefix is
        return True
    return address in PUBLIC_V6 and not any(address in network for network in NOT_PUBLIC_V6)


def inner_address(address: Address) -> IPv4Address | None:
    """Return the IPv4 address embedded in an IPv6 address: mapped, translated (NAT64) or tunnelled (6to4, ISATAP)."""
    if isinstance(address, IPv4Address):
        return None
    number = int(address)
    if address in _6TO4:
        return IPv4Address(number >> 80 & 0xFFFFFFFF)
    if address in _MAPPED or address in _NAT64 or number >> 32 & 0xFFFFFFFF in _ISATAP:
        return IPv4Address(number & 0xFFFFFFFF)
    return None
