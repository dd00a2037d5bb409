/// Where a connection comes from, as far as it is counted: an IPv4 address, or the 64 bits of an IPv6 address that name
/// its network, since whoever has one of those addresses has them all; and the listener it came to, so that nobody is
/// kept from one by what happens at another.
package struct ClientNetwork: Hashable, Sendable {
    let listener: Int
    let bits: UInt64
}
