import Glibc

/// Unpredictable bits, drawn from the kernel in blocks: one at a time costs a system call each.
package struct RandomBits {
    private static let blockCount = 512
    private var block: [UInt64] = []

    package init() {}

    /// 128 unpredictable bits.
    package mutating func next() -> (UInt64, UInt64) {
        if self.block.count < 2 {
            self.block = Array(repeating: 0, count: Self.blockCount)
            unsafe self.block.withUnsafeMutableBytes { bytes in
                unsafe arc4random_buf(bytes.baseAddress.unsafelyUnwrapped, bytes.count)
            }
        }
        return (self.block.removeLast(), self.block.removeLast())
    }
}
