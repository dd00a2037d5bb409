package import Wire

extension DeviceToken {
    /// Whether its bytes come before those of `other`, as a database orders them.
    package func isBefore(_ other: DeviceToken) -> Bool {
        let (beginning, others) = (self.beginning, other.beginning)
        guard beginning == others else { return beginning < others }
        return self.withBytes { bytes in
            other.withBytes { bytes.array.lexicographicallyPrecedes($0.array) }
        }
    }

    /// The first eight bytes as a number that is ordered as they are.
    var beginning: UInt64 { self.withBytes { UInt64(bigEndian: $0.load(UInt64.self, at: 0)) } }
}
