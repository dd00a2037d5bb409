import Wire

extension DeviceToken {
    /// Whether it comes before another in the order in which a database has bytes.
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
    /// In the order in which a database has bytes.
    var inOrder: [DeviceToken] { self.sorted { $0.precedes($1) } }
}
