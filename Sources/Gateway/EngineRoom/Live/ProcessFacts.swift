import Platform

/// How the gateway's process is, as those who watch are told each second.
package struct ProcessFacts: Sendable {
    /// Connections open on all listeners.
    let connections: Int
    let uptimeSeconds: Int64
    /// Memory that is resident.
    let memoryBytes: Int64
    /// Processor time spent, of all threads, in milliseconds.
    let cpuMilliseconds: Int64

    /// How it is now.
    ///
    /// - `startedAt`: when it started, on the monotonic clock in milliseconds.
    package init(connections: Int, startedAt: Int64) {
        self.connections = connections
        self.uptimeSeconds = (SystemClock.monotonic - startedAt) / 1000
        self.memoryBytes = ProcessFigures.residentBytes
        self.cpuMilliseconds = Int64(ProcessFigures.processorSeconds * 1000)
    }
}
