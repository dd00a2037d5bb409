import Glibc

/// An address of IPv4 or IPv6.
package struct IPAddress: Hashable, Sendable, CustomStringConvertible {
    /// 4 or 16 bytes in network order.
    package let bytes: [UInt8]

    /// - Returns: nil unless there are 4 or 16 bytes.
    package init?(bytes: [UInt8]) {
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        self.bytes = bytes
    }

    /// Reads every form that the system's resolver takes for an address, such as `10.1`, `0x7f000001` or `::1`; an
    /// IPv6 address may stand in brackets, and may name a zone.
    package init?(_ text: String) {
        // Room without an initializer: whether Glibc's or libcurl's module has it differs between builds.
        let four: [UInt8]? = unsafe withUnsafeTemporaryAllocation(of: in_addr.self, capacity: 1) { room in
            unsafe inet_aton(text, room.baseAddress) == 0 ? nil : Array(UnsafeRawBufferPointer(room))
        }
        if let four {
            self.bytes = four
            return
        }
        let isBracketed = text.hasPrefix("[") && text.hasSuffix("]")
        let plain = (isBracketed ? text.dropFirst().dropLast() : text[...]).prefix { $0 != "%" }
        var six = [UInt8](repeating: 0, count: 16)
        guard unsafe inet_pton(AF_INET6, String(plain), &six) == 1 else { return nil }
        self.bytes = six
    }

    package var description: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        let family = self.bytes.count == 4 ? AF_INET : AF_INET6
        guard unsafe inet_ntop(family, self.bytes, &text, socklen_t(text.count)) != nil else { return "" }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
