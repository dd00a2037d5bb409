package import Bytes
internal import Glibc

/// The content of a file, which is read as it is looked at.
///
/// Whoever cuts the file meanwhile ends this process.
@safe
package struct MappedFile: ~Copyable {
    private let base: UnsafeMutableRawPointer
    private let count: Int

    /// - Returns: nil when there is no such file, when it may not be read, and when it is empty.
    package init?(_ path: String) {
        guard let file = try? OpenFile(path, O_RDONLY | O_CLOEXEC), let status = try? file.status(),
            let base = unsafe mmap(nil, status.size, PROT_READ, MAP_SHARED, file.descriptor, 0),
            unsafe base != MAP_FAILED
        else { return nil }
        unsafe self.base = base
        self.count = status.size
    }

    deinit { unsafe munmap(self.base, self.count) }

    /// Calls `body` with the bytes.
    package borrowing func withView<Result>(_ body: (ByteView) -> Result) -> Result {
        body(unsafe ByteView(UnsafeRawBufferPointer(start: self.base, count: self.count)))
    }
}
