"""The table of public networks agrees with the registries, and with the standard library where that is right."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield_fetch import FetchConfig, is_public
from jackfield_fetch.networks import NOT_PUBLIC_V4, NOT_PUBLIC_V6, PUBLIC_V6, inner_address


@pytest.mark.parametrize(
    "address",
    [
        *("0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.255", "168.63.129.16"),
        *("169.254.169.254", "172.31.255.255", "192.0.0.1", "192.0.0.9", "192.0.0.192", "192.0.2.1", "192.88.99.1"),
        *("192.168.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1"),
        *("255.255.255.255", "::", "::1", "::7f00:1", "::8.8.8.8", "64:ff9b:1::8.8.8.8", "100::1", "2001::1"),
        *(
            "2001:0:808:808::",
            "2001:2::1",
            "2001:10::1",
            "2001:1ff:ffff::1",
            "2001:20::1",
            "2001:db8::1",
            "3ffe::1",
            "3fff::1",
        ),
        *("3fff:fff:ffff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fd20:ce::254", "fe80::1", "fec0::1", "ff02::1"),
        *("::ffff:10.0.0.1", "::ffff:168.63.129.16", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a83f:8110::1"),
        *("2a00::5efe:10.0.0.1", "2a00::200:5efe:127.0.0.1", "fe80::5efe:8.8.8.8", "4000::1", "1fff::1"),
    ],
)
def test_an_address_that_is_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        *("1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.0", "168.63.129.15", "168.63.129.17", "172.32.0.0"),
        *("192.0.1.0", "192.31.196.1", "192.88.98.255", "192.88.100.0", "223.255.255.255", "93.184.216.34"),
        *("2001:200::1", "2001:4860:4860::8888", "2606:4700::1111", "2a00:1450::1", "3ffd::1", "3fff:1000::1"),
        *("::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1", "2a00::5efe:8.8.8.8"),
    ],
)
def test_an_address_that_is_public(address: str) -> None:
    assert is_public(ip_address(address))


def _edges() -> list[IPv4Address | IPv6Address]:
    edges: list[IPv4Address | IPv6Address] = []
    for network in (*NOT_PUBLIC_V4, *NOT_PUBLIC_V6, PUBLIC_V6):
        first, last = int(network.network_address), int(network.broadcast_address)
        kind = IPv4Address if network.version == 4 else IPv6Address
        edges += [
            kind(number) for number in (first - 1, first, last, last + 1) if 0 <= number < 2 ** kind(0).max_prefixlen
        ]
    return edges


# Networks that a patch version of Python calls public, or not, and the registry the other way round.
_DIFFER = (
    *("168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24", "2001::/23", "2002::/16", "3ffe::/16", "3fff::/20"),
    *("fec0::/10", "::ffff:0:0/96", "64:ff9b::/96"),
)


def _differs(address: IPv4Address | IPv6Address) -> bool:
    from ipaddress import ip_network

    is_isatap = address.version == 6 and int(address) >> 32 & 0xFDFFFFFF == 0x5EFE
    return is_isatap or any(address in ip_network(network) for network in _DIFFER)


def _agree(address: IPv4Address | IPv6Address) -> None:
    if not _differs(address):
        theirs = address.is_global and not address.is_multicast and not address.is_reserved
        assert is_public(address) == theirs, address


@pytest.mark.parametrize("address", _edges(), ids=str)
def test_the_edges_of_each_network_are_where_python_has_them(address: IPv4Address | IPv6Address) -> None:
    _agree(address)


@given(st.ip_addresses())
@example(ip_address("3ffe:ffff::"))
def test_any_address_is_as_public_as_python_says(address: IPv4Address | IPv6Address) -> None:
    _agree(address)


@given(st.ip_addresses(v=4))
def test_an_address_inside_another_is_allowed_with_its_network(address: IPv4Address) -> None:
    number = int(address)
    allowing = FetchConfig(allow=(f"{address}/32",))
    for form in (f"::ffff:{address}", f"64:ff9b::{address}", IPv6Address((0x2002 << 112) | (number << 80))):
        outer = ip_address(str(form))
        assert inner_address(outer) == address
        assert allowing.allows("a.test", outer)
