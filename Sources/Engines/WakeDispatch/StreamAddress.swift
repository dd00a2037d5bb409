/// Where a worker's stream, or a request that waits for its answer, is found: which loop, connection and stream.
///
/// The dispatcher carries it and never looks inside.
package struct StreamAddress: Hashable, BitwiseCopyable, Sendable {
    package let loop: UInt32
    package let connectionIndex: UInt32
    package let connectionGeneration: UInt32
    package let stream: Int32

    package init(loop: UInt32, connectionIndex: UInt32, connectionGeneration: UInt32, stream: Int32) {
        self.loop = loop
        self.connectionIndex = connectionIndex
        self.connectionGeneration = connectionGeneration
        self.stream = stream
    }
}
