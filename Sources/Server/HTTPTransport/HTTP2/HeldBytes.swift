/// The bytes of the requests of one connection that have arrived in part.
package struct HeldBytes {
    /// How many are held.
    package private(set) var count = 0
    /// What of them is of the field block that is being read.
    private var ofBlock = 0
    /// What of them is counted with all others'.
    private var counted = 0

    /// None is held.
    package init() {}

    package mutating func hold(_ bytes: Int) {
        self.count += bytes
    }

    package mutating func letGo(_ bytes: Int) {
        self.count -= bytes
    }

    /// So many are of the block, none of which was held.
    package mutating func holdBlock(_ bytes: Int) {
        self.ofBlock = bytes
        self.count += bytes
    }

    /// The block goes on, or the connection has ended.
    @inline(__always)
    package mutating func letGoOfBlock() {
        self.count -= self.ofBlock
        self.ofBlock = 0
    }

    /// What there is no room in for so many more.
    ///
    /// - Parameters:
    ///   - bytes: how many more.
    ///   - connectionMax: the most of one connection.
    ///   - all: those of all connections.
    @inline(__always)
    package func shortage(for bytes: Int, connectionMax: Int, all: RequestBytes) -> RequestShortage {
        if self.count + bytes > connectionMax { return .connection }
        return all.hasRoom(for: self.count - self.counted + bytes) ? .none : .server
    }

    /// Brings the count of all loops up to date: once a read, and not at all for requests that came whole.
    @inline(__always)
    package mutating func tell(_ all: RequestBytes) {
        guard self.count != self.counted else { return }
        all.change(by: self.count - self.counted)
        self.counted = self.count
    }
}
