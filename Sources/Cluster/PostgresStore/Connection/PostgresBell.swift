private import Glibc
package import Platform

/// Ends a wait for descriptors, from any thread.
package final class PostgresBell: Sendable {
    /// Readable once it was rung, until it is silenced.
    package let descriptor: Int32
    private let writing: Int32

    /// - Throws: `SystemError` when the process may open no further descriptors.
    package init() throws(SystemError) {
        (self.descriptor, self.writing) = try Descriptor.pipe()
    }

    deinit {
        close(self.descriptor)
        close(self.writing)
    }

    /// Ends the wait, now or when it next begins.
    package func ring() {
        // A pipe that is full was rung, too.
        _ = try? Descriptor.write(self.writing, [1])
    }

    /// Forgets that it was rung; by the thread that waits, before it looks at what it was rung for.
    package func silence() {
        var rings = [UInt8](repeating: 0, count: 256)
        while (try? Descriptor.read(self.descriptor, into: &rings)) == rings.count {}
    }
}
