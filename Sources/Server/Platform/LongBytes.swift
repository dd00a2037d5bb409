// The only file that uses the C library's comparison of bytes.
internal import Glibc
package import Wire

extension ByteView {
    /// Returns the same as `==`. Faster for hundreds of bytes or more, because the C library compares as many bytes at
    /// a time as the processor can.
    package func equalsLong(_ other: ByteView) -> Bool {
        guard self.count == other.count else { return false }
        guard let left = unsafe self.buffer.baseAddress, let right = unsafe other.buffer.baseAddress else {
            return self.isEmpty
        }
        return unsafe memcmp(left, right, self.count) == 0
    }
}
