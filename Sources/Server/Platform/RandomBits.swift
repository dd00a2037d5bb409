// The only file that asks the kernel for random bits.
internal import Glibc

/// A generator of unpredictable bits, which it reads from the kernel in blocks to save system calls.
///
/// The first block has 64 bytes, so that a single use reads little. Each further block is twice as long, up to 4096
/// bytes.
package struct RandomBits: RandomNumberGenerator, Sendable {
    private static let blockCountFirst = 8
    private static let blockCountMax = 512
    private var block: [UInt64] = []
    private var blockCount = Self.blockCountFirst

    package init() {}

    /// Returns 64 unpredictable bits.
    package mutating func next() -> UInt64 {
        if self.block.isEmpty { self.draw() }
        return self.block.removeLast()
    }

    /// Returns 128 unpredictable bits.
    package mutating func pair() -> (UInt64, UInt64) {
        (self.next(), self.next())
    }

    /// Returns `count` unpredictable bytes.
    package mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: self.next()) }
    }

    private mutating func draw() {
        self.block = Array(repeating: 0, count: self.blockCount)
        unsafe self.block.withUnsafeMutableBytes { bytes in
            unsafe arc4random_buf(bytes.baseAddress.unsafelyUnwrapped, bytes.count)
        }
        self.blockCount = min(Self.blockCountMax, self.blockCount * 2)
    }
}
