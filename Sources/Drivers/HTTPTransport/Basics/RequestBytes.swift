internal import Synchronization

/// The bytes of all requests that have arrived in part, on all loops together.
///
/// A request that arrives within one read, as nearly all do, is never counted here.
package final class RequestBytes: Sendable {
    private let bytesMax: Atomic<Int>
    private let count = Atomic<Int>(0)

    init(bytesMax: Int) {
        self.bytesMax = Atomic(bytesMax)
    }

    /// Sets another bound; what is held already stays.
    func setMax(_ bytesMax: Int) {
        self.bytesMax.store(bytesMax, ordering: .relaxed)
    }

    /// Whether so many more may be held.
    func hasRoom(for bytes: Int) -> Bool {
        self.count.load(ordering: .relaxed) + bytes <= self.bytesMax.load(ordering: .relaxed)
    }

    func change(by bytes: Int) {
        self.count.add(bytes, ordering: .relaxed)
    }

    /// The bytes of requests that have arrived in part.
    package var held: Int { self.count.load(ordering: .relaxed) }
}
