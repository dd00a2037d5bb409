import Bytes
import Glibc
import Platform

/// Lines on standard error, one a `write`.
package struct StandardError: LogSink {
    /// The descriptor that is written to.
    private let descriptor: Int32

    package init(descriptor: Int32 = STDERR_FILENO) {
        self.descriptor = descriptor
    }

    package func write(_ line: LogLine, _ format: LogFormat) -> Bool {
        let text = format == .json ? line.json : line.text
        return "\(text)\n".withByteView { Descriptor.writeAll(self.descriptor, $0) }
    }
}
