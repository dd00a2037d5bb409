import Glibc
package import Platform

/// The lines of a file, read a block at a time.
package final class LineReader: Sequence, IteratorProtocol {
    private let descriptor: Int32
    private var block: [UInt8] = []
    private var start = 0
    private var isAtEnd = false
    /// Why the lines ended before the file did; nil when they did not.
    package private(set) var failure: SystemError?

    package init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// The next line without its line end; a last line needs none.
    package func next() -> String? {
        var searched = self.start
        while true {
            if let end = self.block[searched...].firstIndex(of: 0x0A) {
                defer { self.start = end + 1 }
                return String(decoding: self.block[self.start..<end], as: UTF8.self)
            }
            if self.isAtEnd {
                guard self.start < self.block.count else { return nil }
                defer { self.start = self.block.count }
                return String(decoding: self.block[self.start...], as: UTF8.self)
            }
            self.block.removeFirst(self.start)
            self.start = 0
            searched = self.block.count
            self.fill()
        }
    }

    private func fill() {
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        do throws(SystemError) {
            let count = try Descriptor.read(self.descriptor, into: &chunk)
            self.block += chunk[..<count]
            self.isAtEnd = count == 0
        } catch {
            guard error.number != EINTR else { return }
            self.isAtEnd = true
            self.failure = error
        }
    }
}
