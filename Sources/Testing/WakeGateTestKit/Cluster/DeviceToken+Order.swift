import Wire

extension DeviceToken {
    /// Returns true if this token comes before another token in a database's byte order.
    func precedes(_ other: DeviceToken) -> Bool {
        self.withBytes { left in
            other.withBytes { right in
                for index in 0..<min(left.count, right.count) where left[index] != right[index] {
                    return left[index] < right[index]
                }
                return left.count < right.count
            }
        }
    }
}

extension Sequence<DeviceToken> {
    /// The tokens in a database's byte order.
    var inOrder: [DeviceToken] { self.sorted { $0.precedes($1) } }
}
