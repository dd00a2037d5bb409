import Engine

/// Transactions that the store has refused since it last confirmed one, such as while its disk is full.
struct CommitRefusals {
    /// The number of milliseconds for which a refusal is remembered. After that the gateway counts as ready again, so
    /// that a load balancer sends it pushes: only they show whether the store accepts commits again.
    private static let memoryMax: Int64 = 10_000

    private var first: Int64?
    private var last: (moment: Int64, error: StoreError)?

    /// No refusals.
    init() {}

    /// - Parameter boot: milliseconds since the machine started.
    mutating func refused(_ error: StoreError, boot: Int64) {
        self.first = self.first ?? boot
        self.last = (boot, error)
    }

    mutating func confirmed() {
        self.first = nil
        self.last = nil
    }

    /// The cause of the last refusal, if the store has refused everything for at least `milliseconds`; nil otherwise.
    func cause(boot: Int64, after milliseconds: Int64) -> StoreError? {
        guard let first = self.first, let last = self.last, boot - first >= milliseconds,
            boot - last.moment < Self.memoryMax
        else { return nil }
        return last.error
    }
}
