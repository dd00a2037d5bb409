// The one file that has the C library compare bytes.
internal import Glibc
package import Wire

extension ByteView {
    /// As `==`, for bytes of which there are hundreds: the C library compares as many at a time as the processor can.
    package func equalsLong(_ other: ByteView) -> Bool {
        guard self.count == other.count else { return false }
        guard let left = unsafe self.buffer.baseAddress, let right = unsafe other.buffer.baseAddress else {
            return self.isEmpty
        }
        return unsafe memcmp(left, right, self.count) == 0
    }
}
