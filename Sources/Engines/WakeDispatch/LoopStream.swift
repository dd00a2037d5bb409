/// A stream of a connection: which loop has the connection, and which of its streams it is.
package struct LoopStream: Hashable, BitwiseCopyable, Sendable {
    package let connectionIndex: UInt32
    package let connectionGeneration: UInt32
    package let number: Int32
    package let loop: UInt16

    package init(loop: UInt16, connectionIndex: UInt32, connectionGeneration: UInt32, number: Int32) {
        self.connectionIndex = connectionIndex
        self.connectionGeneration = connectionGeneration
        self.number = number
        self.loop = loop
    }
}
